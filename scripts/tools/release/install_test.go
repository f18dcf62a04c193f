//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// pretend stands for the program in these tests.
const pretend = `#!/bin/sh
case $1 in
version) echo 'weir %s test' ;;
serve) echo "served beside $(ls -A "${0%%/*}")" ;;
*) exit 2 ;;
esac
`

// published is a release of pretended programs on a file server.
type published struct {
	*release
	url     string
	proxied int // requests that came by the proxy
}

// publish makes a release with a signature.
func publish(t *testing.T, version string) *published {
	t.Helper()
	for _, tool := range []string{"ssh-keygen", "curl"} {
		if _, err := exec.LookPath(tool); err != nil && os.Getenv("CI") == "" {
			t.Skip(err)
		}
	}
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	p := &published{release: &release{root: sources, out: t.TempDir(), version: version, key: key,
		repository: "https://git.example/owner/weir"}}
	for _, to := range parseTargets(allTargets) {
		if err := p.archive(to, fmt.Appendf(nil, pretend, version), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.writeInstallers(); err != nil {
		t.Fatal(err)
	}
	p.seal(t)
	files := http.FileServer(http.Dir(p.out))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.IsAbs() {
			p.proxied++
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

// seal writes the checksums and their signature.
func (p *published) seal(t *testing.T) {
	t.Helper()
	for _, name := range []string{"SHA256SUMS", "SHA256SUMS.sig"} {
		os.Remove(filepath.Join(p.out, name))
	}
	if err := p.writeSums(); err != nil {
		t.Fatal(err)
	}
	if err := p.sign(); err != nil {
		t.Fatal(err)
	}
}

// computer is where weir is installed: a home folder, and programs that take the place of
// those of the system.
type computer struct {
	home string
	dir  string // where the script runs; may be ""
	env  []string
	as   *syscall.SysProcAttr // another user; may be nil
}

// shells are those of this computer that may run the script. A busybox that prefers its own tools to
// those of PATH would take the computer's user for that of the test: see bareRoot for it.
func shells() (list [][]string) {
	for _, shell := range [][]string{{"sh"}, {"dash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		out, err := exec.Command(shell[0], append(shell[1:len(shell):len(shell)], "-c", "command -v id")...).Output()
		if err == nil && out[0] == '/' {
			list = append(list, shell)
		}
	}
	return list
}

func (c *computer) stub(t *testing.T, name, script string) {
	t.Helper()
	folder := filepath.Join(c.home, "stubs")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// run runs the script of a release as `curl … | sh -s -- args` does.
func (c *computer) run(t *testing.T, p *published, shell []string, args ...string) (output string, ok bool) {
	t.Helper()
	script, err := os.Open(filepath.Join(p.out, "install.sh"))
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	cmd := exec.Command(shell[0], append(append(shell[1:len(shell):len(shell)], "-s", "--"), args...)...)
	cmd.Dir, cmd.Stdin, cmd.SysProcAttr = c.dir, script, c.as
	cmd.Env = append([]string{"HOME=" + c.home, "PATH=" + filepath.Join(c.home, "stubs") + ":" + os.Getenv("PATH"),
		"TMPDIR=" + c.home}, c.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func newComputer(t *testing.T) *computer {
	t.Helper()
	c := &computer{home: t.TempDir()}
	c.stub(t, "id", "echo 1000")
	c.stub(t, "uname", `[ "$1" = -s ] && echo Linux || echo x86_64`)
	return c
}

// installed returns what the installed program says of its version.
func installed(t *testing.T, file string) string {
	t.Helper()
	out, err := exec.Command(file, "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// namesIn returns the names of a folder's files.
func namesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

func TestInstallScript(t *testing.T) {
	p := publish(t, "v1.2.0")
	for _, shell := range shells() {
		t.Run(shell[0], func(t *testing.T) {
			c := newComputer(t)
			out, ok := c.run(t, p, shell, "--from", p.url+"/")
			file := filepath.Join(c.home, ".local/bin/weir")
			if !ok || !strings.Contains(out, "Installed weir v1.2.0 test") || !strings.Contains(out, "is not in your PATH") ||
				!strings.Contains(out, "Start it: "+file+" serve") || installed(t, file) != "weir v1.2.0 test" {
				t.Fatalf("installed %t:\n%s", ok, out)
			}
			if names := namesIn(t, filepath.Dir(file)); !slices.Equal(names, []string{"weir"}) {
				t.Errorf("left behind: %v", names)
			}
			if out, ok = c.run(t, p, shell, "--uninstall"); !ok || !strings.Contains(out, "Its data stays") {
				t.Errorf("uninstalled %t:\n%s", ok, out)
			}
			if _, err := os.Stat(file); !os.IsNotExist(err) {
				t.Errorf("the program is still there: %v", err)
			}
			if out, ok = c.run(t, p, shell, "--uninstall"); ok || !strings.Contains(out, "there is no "+file) {
				t.Errorf("uninstalled twice: %t\n%s", ok, out)
			}
		})
	}
}

// Each mistake ends with one line that says what to do, and installs nothing.
func TestInstallScriptRefuses(t *testing.T) {
	change := func(name, text string) func(*testing.T, *published, *computer) {
		return func(t *testing.T, p *published, _ *computer) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(p.out, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	system := func(s, m string) func(*testing.T, *published, *computer) {
		return func(t *testing.T, _ *published, c *computer) {
			t.Helper()
			c.stub(t, "uname", fmt.Sprintf(`[ "$1" = -s ] && echo %s || echo %s`, s, m))
		}
	}
	archive := "weir-v1.2.0-linux-amd64.tar.gz"
	for name, tt := range map[string]struct {
		before func(*testing.T, *published, *computer)
		args   []string
		want   string
	}{
		"changed archive":   {change(archive, "another"), nil, "the checksum of " + archive + " is not that of the release"},
		"changed checksums": {change("SHA256SUMS", strings.Repeat("0", 64)+"  "+archive+"\n"), nil, "the signature of SHA256SUMS is not that of weir"},
		"no signature": {func(t *testing.T, p *published, _ *computer) {
			t.Helper()
			os.Remove(filepath.Join(p.out, "SHA256SUMS.sig"))
		}, nil, "SHA256SUMS.sig cannot be downloaded"},
		"another key": {func(t *testing.T, p *published, _ *computer) {
			t.Helper()
			other := publish(t, "v1.2.0")
			p.key = other.key
			p.seal(t)
		}, nil, "the signature of SHA256SUMS is not that of weir"},
		"unknown system":    {system("Plan9", "x86_64"), nil, "there is no program for Plan9"},
		"unknown processor": {system("Linux", "mips"), nil, "there is no program for linux on mips"},
		"absent version":    {nil, []string{"--version", "v9"}, "has no program for linux-amd64 of version v9"},
		"pattern":           {nil, []string{"--version", "*"}, "has no program for linux-amd64 of version *"},
		"folder of a file":  {change("file", ""), []string{"--dir", "/dev/null/bin"}, "/dev/null/bin cannot be written"},
		"unknown option":    {nil, []string{"--force"}, "unknown option --force"},
		"missing value":     {nil, []string{"--dir"}, "--dir needs a value"},
		"wrong system": {func(t *testing.T, p *published, _ *computer) {
			t.Helper()
			if err := p.archive(target{"linux", "amd64"}, []byte("\x7fELF of another"), nil); err != nil {
				t.Fatal(err)
			}
			p.seal(t)
		}, nil, "the program does not run on this computer"},
		"several versions": {func(t *testing.T, p *published, _ *computer) {
			t.Helper()
			p.version = "v1.3.0"
			if err := p.archive(target{"linux", "amd64"}, fmt.Appendf(nil, pretend, "v1.3.0"), nil); err != nil {
				t.Fatal(err)
			}
			p.seal(t)
		}, nil, "has several versions"},
	} {
		t.Run(name, func(t *testing.T) {
			p, c := publish(t, "v1.2.0"), newComputer(t)
			if tt.before != nil {
				tt.before(t, p, c)
			}
			out, ok := c.run(t, p, []string{"sh"}, append([]string{"--from", p.url}, tt.args...)...)
			if ok || !strings.Contains(out, "install.sh: ") || !strings.Contains(out, tt.want) {
				t.Errorf("installed %t:\n%s", ok, out)
			}
			if _, err := os.Stat(filepath.Join(c.home, ".local/bin/weir")); !os.IsNotExist(err) {
				t.Errorf("a program was installed: %v", err)
			}
		})
	}
}

// Others who can write the folder can neither have the script write elsewhere, by a link under a name
// that they know, nor find files of it afterwards.
func TestInstallScriptFollowsNoLink(t *testing.T) {
	p, c := publish(t, "v1.2.0"), newComputer(t)
	folder, victim := filepath.Join(c.home, "bin"), filepath.Join(c.home, "victim")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(victim, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(folder, ".weir.new")); err != nil {
		t.Fatal(err)
	}
	out, ok := c.run(t, p, []string{"sh"}, "--from", p.url, "--dir", folder)
	if content, err := os.ReadFile(victim); !ok || err != nil || string(content) != "mine" {
		t.Errorf("installed %t, and the file is %q, %v:\n%s", ok, content, err, out)
	}
	if info, err := os.Lstat(filepath.Join(folder, "weir")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the program is %v, %v", info, err)
	}
}

func TestInterruptedInstallScriptLeavesNothing(t *testing.T) {
	p := publish(t, "v1.2.0")
	for _, to := range parseTargets(allTargets) {
		if err := p.archive(to, []byte("#!/bin/sh\nkill -TERM $PPID\n"), nil); err != nil {
			t.Fatal(err)
		}
	}
	p.seal(t)
	for _, shell := range shells() {
		t.Run(shell[0], func(t *testing.T) {
			c := newComputer(t)
			folder := filepath.Join(c.home, "bin")
			if out, ok := c.run(t, p, shell, "--from", p.url, "--dir", folder); ok {
				t.Errorf("it went on:\n%s", out)
			}
			if names := namesIn(t, folder); len(names) > 0 {
				t.Errorf("left behind: %v", names)
			}
		})
	}
}

func TestInstallScriptRefusesAFolderInPlaceOfTheProgram(t *testing.T) {
	p, c := publish(t, "v1.2.0"), newComputer(t)
	folder := filepath.Join(c.home, "bin/weir")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	out, ok := c.run(t, p, []string{"sh"}, "--from", p.url, "--dir", filepath.Dir(folder))
	if ok || !strings.Contains(out, folder+" is a folder. Choose another place") || len(namesIn(t, folder)) > 0 {
		t.Errorf("installed %t:\n%s", ok, out)
	}
}

// PATH needs the whole path of the folder.
func TestInstallScriptNamesTheWholePathOfTheFolder(t *testing.T) {
	p, c := publish(t, "v1.2.0"), newComputer(t)
	c.dir = c.home
	for _, shell := range shells() {
		for _, dir := range []string{"my bin", "my bin/", "./my bin/../my bin"} {
			out, ok := c.run(t, p, shell, "--from", p.url, "--dir", dir)
			want := filepath.Join(c.home, "my bin")
			if dir[0] == '.' {
				want = c.home + "/my bin" // as the shell names it
			}
			if !ok || !strings.Contains(out, `export PATH="`+want+`:$PATH"`) || !strings.Contains(out, "Start it: "+want+"/weir serve") {
				t.Errorf("%s: installed %t to %s:\n%s", shell[0], ok, dir, out)
			}
		}
	}
}

func TestInstallScriptTakesAVersionWithoutItsV(t *testing.T) {
	p := publish(t, "v1.2.0")
	for _, given := range []string{"v1.2.0", "1.2.0"} {
		c := newComputer(t)
		if out, ok := c.run(t, p, []string{"sh"}, "--from", p.url, "--version", given); !ok {
			t.Errorf("%s:\n%s", given, out)
		}
		c.stub(t, "curl", "exit 22")
		if out, _ := c.run(t, p, []string{"sh"}, "--version", given); !strings.Contains(out, "https://git.example/owner/weir/releases/download/v1.2.0/SHA256SUMS cannot") {
			t.Errorf("%s is looked for elsewhere:\n%s", given, out)
		}
	}
}

// A mirror that lags behind, or a pre-release that is tried, must not take a newer version away.
func TestInstallScriptReplacesANewerVersionOnDemandAlone(t *testing.T) {
	for _, tt := range []struct {
		before, offered string
		older           bool
	}{
		{"v1.10.0", "v1.9.0", true},
		{"v1.9.0", "v1.10.0", false},
		{"v1.2.0", "v1.2.0", false},
		{"v1.2.0", "v1.2.0-rc.1", true},
		{"v1.2.0-rc.10", "v1.2.0-rc.9", true},
		{"v1.2.0-rc.1", "v1.2.0", false},
		{"0.1.0-g0123abcd", "v1.2.0", false},
		{"(devel)", "v1.2.0", false},
	} {
		p := publish(t, tt.offered)
		for _, shell := range shells() {
			c := newComputer(t)
			file := filepath.Join(c.home, ".local/bin/weir")
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, fmt.Appendf(nil, pretend, tt.before), 0o755); err != nil {
				t.Fatal(err)
			}
			out, ok := c.run(t, p, shell, "--from", p.url)
			hint := fmt.Sprintf("has weir %s, which is newer than %s. To install the older one: --version %s", tt.before, tt.offered, tt.offered)
			if ok == tt.older || strings.Contains(out, hint) != tt.older {
				t.Errorf("%s: %s over %s: installed %t\n%s", shell[0], tt.offered, tt.before, ok, out)
			}
			if out, ok = c.run(t, p, shell, "--from", p.url, "--version", tt.offered); !ok || installed(t, file) != "weir "+tt.offered+" test" {
				t.Errorf("%s: %s over %s by --version:\n%s", shell[0], tt.offered, tt.before, out)
			}
		}
	}
}

// The program takes the place of the script, which has removed what it downloaded.
func TestInstallScriptServes(t *testing.T) {
	p := publish(t, "v1.2.0")
	for _, shell := range shells() {
		c := newComputer(t)
		if out, ok := c.run(t, p, shell, "--from", p.url, "--serve"); !ok || !strings.HasSuffix(out, "\n\nserved beside weir\n") {
			t.Errorf("%s: started %t:\n%s", shell[0], ok, out)
		}
	}
}

// A service of a program that is gone would fail at every start.
func TestInstallScriptDoesNotRemoveTheProgramOfAService(t *testing.T) {
	p, c := publish(t, "v1.2.0"), newComputer(t)
	file := filepath.Join(c.home, ".local/bin/weir")
	if out, ok := c.run(t, p, []string{"sh"}, "--from", p.url); !ok {
		t.Fatal(out)
	}
	unit := filepath.Join(c.home, ".config/systemd/user/weir.service")
	if err := os.MkdirAll(filepath.Dir(unit), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(unit, []byte("[Service]\nExecStart="+file+" serve\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, ok := c.run(t, p, []string{"sh"}, "--uninstall")
	if ok || !strings.Contains(out, "is a service ("+unit+"). Remove that first: "+file+" service uninstall") || installed(t, file) == "" {
		t.Errorf("removed %t:\n%s", ok, out)
	}
	if err := os.Remove(unit); err != nil { // as weir service uninstall does
		t.Fatal(err)
	}
	if out, ok = c.run(t, p, []string{"sh"}, "--uninstall"); !ok {
		t.Error(out)
	}
}

// An older program that runs is replaced; another one that is found first is named.
func TestInstallScriptReplacesARunningProgram(t *testing.T) {
	p, c := publish(t, "v1.2.0"), newComputer(t)
	folder := filepath.Join(c.home, "my programs")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(folder, "weir")
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("sleep is missing")
	}
	content, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, content, 0o755); err != nil {
		t.Fatal(err)
	}
	running := exec.Command(old, "600")
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = running.Process.Kill(), running.Wait() }()
	c.stub(t, "weir", "exit 0")
	out, ok := c.run(t, p, []string{"sh"}, "--from", p.url, "--dir", folder)
	if !ok || installed(t, old) != "weir v1.2.0 test" || !strings.Contains(out, "Another weir comes first in your PATH: ") {
		t.Errorf("installed %t:\n%s", ok, out)
	}
}

func TestInstallScriptUsesTheProxy(t *testing.T) {
	p, c := publish(t, "v1.2.0"), newComputer(t)
	c.env = []string{"http_proxy=" + p.url}
	out, ok := c.run(t, p, []string{"sh"}, "--from", "http://releases.invalid")
	if !ok || p.proxied != 3 {
		t.Errorf("installed %t with %d requests by the proxy:\n%s", ok, p.proxied, out)
	}
}

func TestInstallScriptNamesAProxyThatDoesNotAnswer(t *testing.T) {
	p, c := publish(t, "v1.2.0"), newComputer(t)
	c.env = []string{"http_proxy=http://127.0.0.1:1"}
	out, ok := c.run(t, p, []string{"sh"}, "--from", "http://releases.invalid")
	if ok || !strings.Contains(out, "SHA256SUMS cannot be downloaded. Behind a proxy, set https_proxy") {
		t.Errorf("installed %t:\n%s", ok, out)
	}
}

// Permissions do not bind root, so the script runs as another user.
func TestInstallScriptWithoutWriteAccessChangesNothing(t *testing.T) {
	p, c := publish(t, "v1.2.0"), newComputer(t)
	if os.Getuid() == 0 {
		c.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	locked := filepath.Join(c.home, "locked")
	if err := os.Mkdir(locked, 0o755); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(locked, "weir")
	if err := os.WriteFile(old, fmt.Appendf(nil, pretend, "v1.1.0"), 0o755); err != nil {
		t.Fatal(err)
	}
	for dir, mode := range map[string]os.FileMode{locked: 0o555, c.home: 0o777, filepath.Dir(c.home): 0o755} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	out, ok := c.run(t, p, []string{"sh"}, "--from", p.url, "--dir", locked)
	if ok || !strings.Contains(out, locked+" cannot be written. Choose another folder: --dir ~/bin") || installed(t, old) != "weir v1.1.0 test" {
		t.Errorf("installed %t:\n%s", ok, out)
	}
	if out, ok = c.run(t, p, []string{"sh"}, "--from", p.url, "--dir", filepath.Join(c.home, "bin")); !ok {
		t.Errorf("into another folder:\n%s", out)
	}
}

func TestInstallScriptRemovesTheProgramBeforeToo(t *testing.T) {
	p, c := publish(t, "v1.2.0"), newComputer(t)
	dir := filepath.Join(c.home, "bin")
	if out, ok := c.run(t, p, []string{"sh"}, "--from", p.url, "--dir", dir); !ok {
		t.Fatal(out)
	}
	if err := os.WriteFile(filepath.Join(dir, "weir.old"), nil, 0o755); err != nil { // of weir upgrade
		t.Fatal(err)
	}
	out, ok := c.run(t, p, []string{"sh"}, "--uninstall", "--dir", dir)
	if left, err := os.ReadDir(dir); !ok || err != nil || len(left) > 0 {
		t.Errorf("removed %t, left %v, %v:\n%s", ok, left, err, out)
	}
}

func TestInstallScriptHasItsRepository(t *testing.T) {
	p := publish(t, "v1.2.0")
	script := string(p.file(t, "install.sh"))
	if !strings.Contains(script, "\nreleases='https://git.example/owner/weir/releases' ") || !strings.Contains(script, "\nsigner='ssh-ed25519 AAAA") {
		t.Errorf("install.sh lacks its settings:\n%.300s", script)
	}
	shell := string(p.file(t, "install.ps1"))
	if !strings.Contains(shell, "\n$releases = 'https://git.example/owner/weir/releases' ") || !strings.Contains(shell, "\n$signer = 'ssh-ed25519 AAAA") {
		t.Errorf("install.ps1 lacks its settings:\n%s", shell)
	}
	for _, bad := range []string{"http://git.example/owner/weir", "https://git.example/$(id)", "https://git.example/a'b", "https://git.example"} {
		p.repository = bad
		if err := p.writeInstallers(); err == nil {
			t.Errorf("repository %s was taken", bad)
		}
	}
	compared := &release{root: sources, out: t.TempDir(), version: "v1.2.0", public: p.key + ".pub", repository: "https://git.example/owner/weir"}
	if err := compared.writeInstallers(); err != nil {
		t.Fatal(err)
	}
	if got := string(compared.file(t, "install.sh")); got != script {
		t.Errorf("with the public key alone install.sh is another:\n%.300s", got)
	}
	c, own := newComputer(t), &published{release: &release{root: sources, out: t.TempDir(), version: "v1"}}
	if err := own.writeInstallers(); err != nil {
		t.Fatal(err)
	}
	if out, ok := c.run(t, own, []string{"sh"}); ok || !strings.Contains(out, "Add it: sh -s -- --from ADDRESS") {
		t.Errorf("installed %t from nowhere:\n%s", ok, out)
	}
}

// install.ps1 has the options of install.sh, and refuses what that refuses. This test reads it alone:
// few computers that run the tests have PowerShell.
func TestPowerShellScriptDoesWhatTheOtherDoes(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(sources, "deploy", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	sh, ps := read("install.sh"), read("install.ps1")
	_, parameters, _ := strings.Cut(ps, "\nparam(")
	parameters, _, _ = strings.Cut(parameters, "\n")
	_, help, _ := strings.Cut(sh, "\ninstall.sh ")
	help, _, _ = strings.Cut(help, "\n")
	options := regexp.MustCompile(`--([a-z]+)`).FindAllStringSubmatch(help, -1)
	if len(options) != 5 {
		t.Fatalf("install.sh has the options %v", options)
	}
	for _, option := range options {
		if name := strings.ToUpper(option[1][:1]) + option[1][1:]; !strings.Contains(parameters, "]$"+name) || strings.Count(ps, "$"+name) < 2 {
			t.Errorf("-%s is missing", name)
		}
	}
	for _, text := range []string{
		"which is newer than ", "To install the older one: ", " has several versions. Choose one with ", " has no program for ",
		"the signature of SHA256SUMS is not that of weir. Nothing was installed", " is not that of the release. Nothing was installed",
		"the program does not run on this computer", " is a service", " service uninstall", "Another weir comes first in your PATH: ", "/download/v",
	} {
		if !strings.Contains(sh, text) || !strings.Contains(ps, text) {
			t.Errorf("not both scripts have %q", text)
		}
	}
	// By iex it runs in the scope of the terminal, which keeps what it sets; a name with a * is of others too.
	for line := range strings.Lines(ps) {
		if strings.HasPrefix(line, "$ErrorActionPreference") || strings.HasPrefix(line, "$ProgressPreference") || strings.Contains(line, "*.exe") {
			t.Errorf("%s", line)
		}
	}
	for _, pair := range []string{"{}", "()", "[]"} {
		if open, closed := strings.Count(ps, pair[:1]), strings.Count(ps, pair[1:]); open != closed {
			t.Errorf("%d %c, %d %c", open, pair[0], closed, pair[1])
		}
	}
}

// PowerShell, where it is installed, reads the script without a mistake.
func TestPowerShellReadsTheScript(t *testing.T) {
	p := publish(t, "v1.2.0")
	file := mustAbs(t, filepath.Join(p.out, "install.ps1"))
	out := ran(t, t.TempDir(), "pwsh", "-NoProfile", "-Command", "[void][scriptblock]::Create((Get-Content -Raw '"+file+"')); 'read'")
	if strings.TrimSpace(out) != "read" {
		t.Errorf("%s", out)
	}
}

// The script installs the program of the release itself.
func TestInstallScriptInstallsTheRelease(t *testing.T) {
	r := released(t)
	s := httptest.NewServer(http.FileServer(http.Dir(r.out)))
	defer s.Close()
	c := &computer{home: t.TempDir()}
	out, ok := c.run(t, &published{release: r}, []string{"sh"}, "--from", s.URL, "--dir", filepath.Join(c.home, "bin"))
	if got := installed(t, filepath.Join(c.home, "bin/weir")); !ok || !strings.HasPrefix(got, "weir "+version+" ") {
		t.Errorf("installed %t, version %q:\n%s", ok, got, out)
	}
}
