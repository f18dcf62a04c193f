package upgrade

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// published is a release on a file server.
type published struct {
	dir, key string
	Source
}

// publish makes a release of one program for two systems, signed by ssh-keygen.
func publish(t *testing.T, program string) *published {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	p := &published{dir: t.TempDir(), key: filepath.Join(t.TempDir(), "key")}
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", p.key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	public, err := os.ReadFile(p.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "weir-v1.3.0-linux-amd64.tar.gz", tarOf(t, "weir-v1.3.0-linux-amd64/", program))
	p.write(t, "weir-v1.3.0-windows-amd64.zip", zipOf(t, "weir-v1.3.0-windows-amd64/", program))
	p.seal(t)
	s := httptest.NewServer(http.StripPrefix("/latest/download", http.FileServer(http.Dir(p.dir))))
	t.Cleanup(s.Close)
	p.Source = Source{Releases: s.URL, Signer: string(public), System: "linux-amd64", Client: NewClient()}
	return p
}

func (p *published) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// seal writes the checksums of all archives, and their signature.
func (p *published) seal(t *testing.T) {
	t.Helper()
	archives, _ := filepath.Glob(filepath.Join(p.dir, "weir-*"))
	var sums bytes.Buffer
	for _, a := range archives {
		content, err := os.ReadFile(a)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), filepath.Base(a))
	}
	p.write(t, "SHA256SUMS", sums.Bytes())
	p.sign(t, "weir-release")
}

func (p *published) sign(t *testing.T, purpose string) {
	t.Helper()
	file := filepath.Join(p.dir, "SHA256SUMS")
	os.Remove(file + ".sig")
	if out, err := exec.Command("ssh-keygen", "-Y", "sign", "-f", p.key, "-n", purpose, file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
}

func tarOf(t *testing.T, folder, program string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range []struct{ name, text string }{{"README.txt", "read"}, {"weir", program}} {
		if err := w.WriteHeader(&tar.Header{Name: folder + f.name, Typeflag: tar.TypeReg, Size: int64(len(f.text)), Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, f.text)
	}
	w.Close()
	z.Close()
	return b.Bytes()
}

func zipOf(t *testing.T, folder, program string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range []struct{ name, text string }{{"README.txt", "read"}, {"weir.exe", program}} {
		one, err := w.Create(folder + f.name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(one, f.text)
	}
	w.Close()
	return b.Bytes()
}

func TestReleaseIsFoundAndVerified(t *testing.T) {
	p := publish(t, "the program")
	for _, system := range []string{"linux-amd64", "windows-amd64"} {
		p.System = system
		r, err := p.Find(context.Background(), "")
		if err != nil || r.Version != "v1.3.0" {
			t.Fatalf("%s: %+v, %v", system, r, err)
		}
		if program, err := r.Program(context.Background()); err != nil || string(program) != "the program" {
			t.Errorf("%s: %q, %v", system, program, err)
		}
	}
}

func TestVersionIsFoundWithoutItsV(t *testing.T) {
	p := publish(t, "the program")
	p.From = p.Releases + "/latest/download"
	for _, given := range []string{"v1.3.0", "1.3.0"} {
		if r, err := p.Find(context.Background(), given); err != nil || r.Version != "v1.3.0" {
			t.Errorf("%s is %+v, %v", given, r, err)
		}
		elsewhere := Source{Releases: "http://127.0.0.1:1/releases", System: p.System, Client: NewClient()}
		_, err := elsewhere.Find(context.Background(), given)
		if want := "http://127.0.0.1:1/releases/download/v1.3.0/SHA256SUMS cannot"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is looked for elsewhere: %v", given, err)
		}
	}
}

func TestReleaseIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		before  func(*published)
		version string
		want    string
	}{
		"changed archive": {func(p *published) { p.write(t, "weir-v1.3.0-linux-amd64.tar.gz", []byte("another")) }, "",
			"the checksum of weir-v1.3.0-linux-amd64.tar.gz is not that of the release"},
		"changed checksums": {func(p *published) { p.write(t, "SHA256SUMS", []byte("00  weir-v1.3.0-linux-amd64.tar.gz\n")) }, "",
			"the text was changed"},
		"no signature":     {func(p *published) { os.Remove(filepath.Join(p.dir, "SHA256SUMS.sig")) }, "", "SHA256SUMS.sig cannot be downloaded: status 404"},
		"empty signature":  {func(p *published) { p.write(t, "SHA256SUMS.sig", nil) }, "", "it has another format"},
		"another key":      {func(p *published) { p.Signer = publish(t, "").Signer }, "", "it is of another key or purpose"},
		"another purpose":  {func(p *published) { p.sign(t, "file") }, "", "it is of another key or purpose"},
		"RSA key":          {func(p *published) { p.Signer = "ssh-rsa AAAA" }, "", "is not an Ed25519 key"},
		"unknown system":   {func(p *published) { p.System = "plan9-mips" }, "", "has no program for plan9-mips"},
		"absent version":   {func(p *published) { p.From = p.Releases + "/latest/download" }, "v9.0.0", "has no program for linux-amd64 of version v9.0.0"},
		"no such release":  {nil, "v9.0.0", "/download/v9.0.0/SHA256SUMS cannot be downloaded: status 404"},
		"no address":       {func(p *published) { p.Releases = "" }, "", "--from ADDRESS"},
		"no server":        {func(p *published) { p.Releases = "http://127.0.0.1:1" }, "", "behind a proxy, set HTTPS_PROXY"},
		"several versions": {func(p *published) { p.write(t, "weir-v1.2.0-linux-amd64.tar.gz", nil); p.seal(t) }, "", "has several versions"},
		"no program": {func(p *published) {
			p.write(t, "weir-v1.3.0-linux-amd64.tar.gz", tarOf(t, "weir/deeper/", ""))
			p.seal(t)
		}, "", "the archive has no program"},
	} {
		t.Run(name, func(t *testing.T) {
			p := publish(t, "the program")
			if tt.before != nil {
				tt.before(p)
			}
			r, err := p.Find(context.Background(), tt.version)
			if err == nil {
				_, err = r.Program(context.Background())
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// An installed program knows the key by which it was released. It refuses releases of another one,
// and takes the last of its own key, which says so; a program of the new key goes on
// (docs/security.md).
func TestKeyOfReleasesIsReplaced(t *testing.T) {
	p, fresh := publish(t, "the last by the old key"), publish(t, "the first by the new key")
	for name, tt := range map[string]struct {
		program, releases *published
		want              string
	}{
		"old program, old key": {p, p, "the last by the old key"},
		"old program, new key": {p, fresh, ""},
		"new program, new key": {fresh, fresh, "the first by the new key"},
		"new program, old key": {fresh, p, ""},
	} {
		from := tt.program.Source
		from.Releases = tt.releases.Releases
		r, err := from.Find(context.Background(), "")
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), "it is of another key or purpose; if weir has announced another key, run install.sh of that release") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if program, err := r.Program(context.Background()); err != nil || string(program) != tt.want {
			t.Errorf("%s: %q, %v", name, program, err)
		}
	}
}

// A cut signature is refused at every length.
func TestCutSignatureIsRefused(t *testing.T) {
	p := publish(t, "")
	signature, err := os.ReadFile(filepath.Join(p.dir, "SHA256SUMS.sig"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSpace(string(signature)), "\n")
	if err := verify(p.Signer, text, signature); err != nil || len(lines) < 4 {
		t.Fatal(err)
	}
	for i := 1; i < len(lines)-1; i++ {
		cut := strings.Join(lines[:i], "") + lines[len(lines)-1]
		if err := verify(p.Signer, text, []byte(cut)); err == nil {
			t.Errorf("%d lines are accepted", i)
		}
	}
}

func TestHTTPSNeverLeadsToHTTP(t *testing.T) {
	s := httptest.NewTLSServer(http.RedirectHandler("http://127.0.0.1:1/SHA256SUMS", http.StatusFound))
	defer s.Close()
	client := NewClient()
	client.Transport = s.Client().Transport
	_, err := Source{Releases: s.URL, Client: client}.Find(context.Background(), "")
	if err == nil || !strings.Contains(err.Error(), "which is not https") {
		t.Errorf("error is %v", err)
	}
}

func TestProxyOfTheEnvironmentIsUsed(t *testing.T) {
	if NewClient().Transport != nil || http.DefaultTransport.(*http.Transport).Proxy == nil {
		t.Error("the client ignores the proxy of the environment")
	}
}

func TestNewer(t *testing.T) {
	order := []string{"v0.9.9", "v1.0.0-alpha", "1.0.0-alpha.1", "v1.0.0-alpha.beta", "v1.0.0-beta.2", "v1.0.0-beta.11",
		"v1.0.0", "v1.0.1", "v1.10.0", "v2.0.0"}
	for i, a := range order {
		for j, b := range order {
			if Newer(a, b) != (i > j) {
				t.Errorf("%s newer than %s is %t", a, b, i <= j)
			}
		}
	}
	if Newer("v1.0.0+1", "v1.0.0+2") {
		t.Error("a note on the build counts")
	}
	for _, v := range []string{"", "(devel)", "v1", "1.2", "v1.x.0", "(unknown version)"} {
		if IsRelease(v) {
			t.Errorf("%q is a release", v)
		}
	}
}

func TestProgramsOfPackageManagersAreFound(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/bin/weir": "the system", "/opt/homebrew/Cellar/weir/1.2.0/bin/weir": "Homebrew",
		"/home/me/node_modules/weir-linux-x64/bin/weir": "npm", "/nix/store/abc-weir/bin/weir": "Nix",
		"/usr/local/bin/weir": "", "/home/me/.local/bin/weir": "", "/home/me/usr/bin/weir": "",
	} {
		if got, command := Manager(path); got != want || (command == "") != (want == "") {
			t.Errorf("%s: %q, %q", path, got, command)
		}
	}
}

func TestReplaceKeepsTheProgramBefore(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are scripts")
	}
	path := filepath.Join(t.TempDir(), "weir")
	content := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	const good = "#!/bin/sh\n# "
	if err := os.WriteFile(path, []byte(good+"1"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, next := range []string{"2", "3"} { // the second replaces weir.old too
		before := content(path)
		old, err := Replace(path, []byte(good+next))
		if err != nil || old != path+".old" || content(old) != before || content(path) != good+next {
			t.Errorf("%d: %q, %v: %q, %q", i, old, err, content(path), content(old))
		}
	}
	if _, err := Replace(path, []byte("#!/bin/sh\nexit 1")); err == nil || content(path) != good+"3" || content(path+".old") != good+"2" {
		t.Errorf("a program that does not run: %v", err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 2 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}
