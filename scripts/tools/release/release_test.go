package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	sources = "../../.."
	version = "0.0.0-test"
)

// out is the folder of a release for the Linux target of this computer, with
// CI=1 or SOAK=1 for every target.
var out string

var building = sync.OnceValues(func() (*release, error) {
	r := &release{root: sources, out: out, version: version, image: localImage, npm: "weir", targets: targetsOf(everyTarget())}
	return r, r.build()
})

func TestMain(m *testing.M) {
	var err error
	if out, err = os.MkdirTemp("", "weir-release-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(out)
	os.Exit(code)
}

func everyTarget() bool { return os.Getenv("CI") != "" || os.Getenv("SOAK") != "" }

func targetsOf(every bool) []target {
	if every {
		return parseTargets(allTargets)
	}
	return []target{hostTarget()}
}

// released returns the release, which is built once for all tests.
func released(t *testing.T) *release {
	t.Helper()
	r, err := building()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// file returns the content of a file of the release.
func (r *release) file(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.out, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// copySources copies the files that a clean clone would have, with other times.
func copySources(t *testing.T) string {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = sources
	out, err := list.Output()
	if err != nil {
		t.Skip("the sources are no clone: ", err)
	}
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		copyFile(t, filepath.Join(sources, name), filepath.Join(dir, name))
	}
	return dir
}

// copyFile copies a file if it exists: git lists deleted ones, too.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if os.IsNotExist(err) {
		return
	}
	content, err := os.ReadFile(from)
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, err := range []error{err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, content, info.Mode()), os.Chtimes(to, old, old)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// repeated returns the targets of a release that are built a second time: of each kind of
// file one, this computer's and a foreign program among them.
func repeated(first []target) []target {
	if len(first) == 1 {
		return first
	}
	return parseTargets("linux/amd64,linux/arm64,windows/arm64")
}

func TestSameSourcesMakeTheSameBytes(t *testing.T) {
	first := released(t)
	root := copySources(t)
	// A clone does not have the built dashboard.
	pages := filepath.Join(sources, filepath.Dir(page))
	err := filepath.WalkDir(pages, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(sources, path)
			copyFile(t, path, filepath.Join(root, name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(mustAbs(t, filepath.Join(sources, "node_modules")), filepath.Join(root, "node_modules")); err != nil {
		t.Fatal(err)
	}
	second := &release{root: root, out: t.TempDir(), version: version, image: localImage, npm: "weir", targets: repeated(first.targets)}
	if err := second.build(); err != nil {
		t.Fatal(err)
	}
	sums := slices.Collect(strings.Lines(string(first.file(t, "SHA256SUMS"))))
	again := slices.Collect(strings.Lines(string(second.file(t, "SHA256SUMS"))))
	if left := len(first.targets) - len(second.targets); len(sums) != len(again)+2*left { // an archive and an npm package each
		t.Fatalf("files are %q, then %q", sums, again)
	}
	for _, sum := range again { // has the name of its file
		if !slices.Contains(sums, sum) {
			t.Errorf("%q is not the first time's", sum)
		}
	}
}

// vet vets packages as the release compiles them, with what it has compiled.
func vet(t *testing.T, root, packages string, env ...string) {
	t.Helper()
	cmd := exec.Command("go", "vet", packages)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), append(env, "CGO_ENABLED=0", "GOFLAGS=-trimpath")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", env, err, out)
	}
}

func TestEverySystemIsCompiledAndVetted(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		vet(t, sources, "./server/...", "GOOS="+system)
	}
}

func TestCleanCloneIsVetted(t *testing.T) { vet(t, copySources(t), "./...") }

func TestChecksumsAreThoseOfTheFiles(t *testing.T) {
	r := released(t)
	sums := map[string]string{}
	for line := range strings.Lines(string(r.file(t, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		sums[name] = sum
	}
	files, err := os.ReadDir(r.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() == "SHA256SUMS" {
			continue
		}
		if want := fmt.Sprintf("%x", sha256.Sum256(r.file(t, f.Name()))); sums[f.Name()] != want {
			t.Errorf("%s: %s is listed, want %s", f.Name(), sums[f.Name()], want)
		}
		delete(sums, f.Name())
	}
	if len(sums) > 0 {
		t.Errorf("files that do not exist are listed: %v", sums)
	}
}

// unpack returns the files of an archive by their name without its folder.
func (r *release) unpack(t *testing.T, target target) map[string][]byte {
	t.Helper()
	folder := "weir-" + r.version + "-" + target.os + "-" + target.arch
	files := map[string][]byte{}
	add := func(name string, mode os.FileMode, modified time.Time, from io.Reader) {
		short, ok := strings.CutPrefix(name, folder+"/")
		if !ok || !modified.Equal(epoch) {
			t.Errorf("%s: outside its folder, or of %v", name, modified)
		}
		if program := short == target.program(); short != "" && (mode.Perm() == 0o755) != program {
			t.Errorf("%s has mode %v", name, mode)
		}
		content, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		if short != "" {
			files[short] = content
		}
	}
	if target.os == "windows" {
		b := r.file(t, folder+".zip")
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			content, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, f.Mode(), f.Modified, content)
		}
		return files
	}
	z, err := gzip.NewReader(bytes.NewReader(r.file(t, folder+".tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	for a := tar.NewReader(z); ; {
		h, err := a.Next()
		if err == io.EOF {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s belongs to %d %s", h.Name, h.Uid, h.Uname)
		}
		add(h.Name, h.FileInfo().Mode(), h.ModTime, a)
	}
}

func TestArchivesHaveTheirFiles(t *testing.T) {
	r := released(t)
	for _, target := range r.targets {
		want := []string{"LICENSE", "NOTICE", "README.txt", "THIRD-PARTY.txt", target.program()}
		if target.os == "linux" {
			want = append(want, "weir.service", "weir.socket")
		}
		slices.Sort(want)
		files := r.unpack(t, target)
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
			t.Errorf("%v: files are %v, want %v", target, got, want)
		}
		info, err := buildinfo.Read(bytes.NewReader(files[target.program()]))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range info.Settings {
			if s.Key == "GOOS" && s.Value != target.os || s.Key == "GOARCH" && s.Value != target.arch || s.Key == "CGO_ENABLED" && s.Value != "0" {
				t.Errorf("%v is compiled with %s=%s", target, s.Key, s.Value)
			}
		}
		if bytes.Contains(files[target.program()], []byte(mustAbs(t, sources))) {
			t.Errorf("%v: the program contains the path of its sources", target)
		}
	}
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// The list of `go version -m` is compared with the SBOM and with the licences.
func TestEveryModuleIsInTheSBOMAndHasALicence(t *testing.T) {
	r := released(t)
	var bom struct {
		SerialNumber string
		Metadata     struct{ Timestamp string }
		Components   []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(r.file(t, "weir-"+version+".cdx.json"), &bom); err != nil {
		t.Fatal(err)
	}
	if bom.SerialNumber != "" || bom.Metadata.Timestamp != "" {
		t.Error("the SBOM has a serial number or a time, which differ between builds")
	}
	listed := map[string]bool{}
	for _, c := range bom.Components {
		listed[c.Name+" "+c.Version] = true
	}
	want := []string{"std " + strings.TrimPrefix(runtime.Version(), "go")}
	for _, target := range r.targets {
		bin := filepath.Join(t.TempDir(), target.program())
		if err := os.WriteFile(bin, r.unpack(t, target)[target.program()], 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("go", "version", "-m", bin).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); f[0] == "dep" {
				want = append(want, f[1]+" "+f[2])
			}
		}
	}
	if len(want) < 2 {
		t.Error("the program has no modules")
	}
	if _, err := os.Stat(filepath.Join(sources, page)); err == nil {
		for _, p := range pagePackages {
			if !strings.Contains(fmt.Sprint(bom.Components), "pkg:npm/"+p+"@") {
				t.Errorf("%s of the dashboard is not in the SBOM", p)
			}
		}
	}
	licences := string(r.unpack(t, r.targets[0])["THIRD-PARTY.txt"])
	for _, m := range want {
		if !listed[m] {
			t.Errorf("%s is not in the SBOM", m)
		}
		if !strings.Contains(licences, "\n"+m+"\n\n--- ") {
			t.Errorf("%s has no licence in THIRD-PARTY.txt", m)
		}
	}
}

// An import stands on a line of its own that ends with a semicolon and has no
// escape: those of the examples that the dashboard shows are not meant.
func TestPagePackagesAreThoseThatThePagesImport(t *testing.T) {
	imports := regexp.MustCompile(`(?m)^import (?:[^"\n]* from )?"((?:@[\w-]+/)?[\w-]+)[^"\n]*";$`)
	shown := []string{"openai", "@anthropic-ai"}
	var found []string
	err := filepath.WalkDir(filepath.Join(sources, "worker/dashboard/src"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range imports.FindAllSubmatch(text, -1) {
			name := string(m[1])
			if !slices.Contains(shown, strings.Split(name, "/")[0]) {
				found = append(found, name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	if found = slices.Compact(found); !slices.Equal(found, pagePackages) {
		t.Errorf("the pages import %v, the SBOM has %v", found, pagePackages)
	}
}

func TestOldReleaseIsNotOverwritten(t *testing.T) {
	r := &release{root: sources, out: t.TempDir(), version: version, image: localImage, npm: "weir"}
	if err := os.WriteFile(filepath.Join(r.out, "old"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.build(); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("error is %v", err)
	}
	r = &release{root: sources, out: t.TempDir(), version: "a/b", image: localImage, npm: "weir"}
	if err := r.build(); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("error is %v", err)
	}
}
