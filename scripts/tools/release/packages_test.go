//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// ran runs a program and returns what it prints. The test is skipped if it is not installed, but not
// in CI if it must be.
func ran(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "npm_config_cache="+filepath.Join(dir, "cache"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// program checks that the installed program is that of the release.
func (r *release) program(t *testing.T, file string) {
	t.Helper()
	if got := installed(t, file); !strings.HasPrefix(got, "weir "+version+" ") {
		t.Errorf("%s is %q", file, got)
	}
}

func TestDebianPackageIsInstalledAndRemoved(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a package of Linux")
	}
	r, root := released(t), t.TempDir()
	file := mustAbs(t, filepath.Join(r.out, "weir-"+version+"-"+runtime.GOARCH+".deb"))
	for _, dir := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := []string{"--root=" + root, "--force-not-root", "--force-script-chrootless"}
	ran(t, root, "dpkg", append(dpkg, "-i", file)...)
	r.program(t, filepath.Join(root, "usr/bin/weir"))
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/weir.service"))
	if err != nil || !strings.Contains(string(unit), "\nExecStart=/usr/bin/weir serve\n") {
		t.Errorf("the unit is %v %s", err, unit)
	}
	status := ran(t, root, "dpkg-query", "--admindir="+filepath.Join(root, "var/lib/dpkg"), "-W", "-f", "${Status} ${Version} ${Architecture}", "weir")
	if want := "install ok installed 0.0.0~test " + runtime.GOARCH; status != want {
		t.Errorf("status is %q, want %q", status, want)
	}
	ran(t, root, "dpkg", append(dpkg, "-r", "weir")...)
	if _, err := os.Stat(filepath.Join(root, "usr/bin/weir")); !os.IsNotExist(err) {
		t.Errorf("the program is still there: %v", err)
	}
}

func TestRPMPackageIsInstalled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a package of Linux")
	}
	r, root := released(t), t.TempDir()
	file := mustAbs(t, filepath.Join(r.out, "weir-"+version+"-"+runtime.GOARCH+".rpm"))
	if got := ran(t, root, "rpm", "-qp", "--qf", "%{NAME} %{VERSION}-%{RELEASE} %{LICENSE} %{BUILDTIME}", file); !strings.HasSuffix(got, fmt.Sprintf("weir 0.0.0~test-1 MIT %d", epoch.Unix())) {
		t.Errorf("the package is %q", got)
	}
	if scripts := ran(t, root, "rpm", "-qp", "--scripts", file); !strings.Contains(scripts, "try-restart weir.service") || !strings.Contains(scripts, "disable --now weir.socket weir.service") {
		t.Errorf("the scripts are %s", scripts)
	}
	ran(t, root, "rpm", "--root", root, "-i", "--nodeps", "--noscripts", "--ignorearch", file)
	r.program(t, filepath.Join(root, "usr/bin/weir"))
	if unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/weir.socket")); err != nil || !strings.Contains(string(unit), "ListenStream") {
		t.Errorf("the socket is %v %s", err, unit)
	}
	ran(t, root, "rpm", "--root", root, "-e", "--noscripts", "weir")
	if left, err := filepath.Glob(filepath.Join(root, "usr/*/*/weir*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestVersionsOfPackagesAreInOrder(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.0": "1.2.0", "v1.3.0-rc.1": "1.3.0~rc.1", "0.1.0-g0123": "0.1.0~g0123", "main_2": "0~main.2",
	} {
		r := &release{version: version}
		if got := r.packageVersion(); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
	for _, pair := range [][2]string{{"1.3.0~rc.1", "1.3.0"}, {"1.2.0", "1.3.0~rc.1"}} {
		ran(t, t.TempDir(), "dpkg", "--compare-versions", pair[0], "lt", pair[1])
	}
}

// npmInstalled returns a folder into which npm has installed the packages, without a registry.
func npmInstalled(t *testing.T) string {
	t.Helper()
	r, dir := released(t), t.TempDir()
	system, arch := hostTarget().nodeName()
	var files []string
	for _, name := range []string{"npm-weir-" + version + ".tgz", fmt.Sprintf("npm-weir-%s-%s-%s.tgz", system, arch, version)} {
		files = append(files, mustAbs(t, filepath.Join(r.out, name)))
	}
	ran(t, dir, "npm", append([]string{"install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"}, files...)...)
	return dir
}

// npx runs the program with its arguments, output and exit code.
func TestNPMPackageRunsTheProgram(t *testing.T) {
	dir := npmInstalled(t)
	system, arch := hostTarget().nodeName()
	if out := ran(t, dir, "npx", "--offline", "weir", "version"); !strings.HasPrefix(out, "weir "+version+" ") {
		t.Errorf("npx prints %q", out)
	}
	cmd := exec.Command("npx", "--offline", "weir", "serve", "--unknown")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "unknown flag") {
		t.Errorf("exit %d, %v: %s", cmd.ProcessState.ExitCode(), err, out)
	}
	if err := os.RemoveAll(filepath.Join(dir, "node_modules", fmt.Sprintf("weir-%s-%s", system, arch))); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command("npx", "--offline", "weir", "version")
	cmd.Dir = dir
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "is missing") {
		t.Errorf("without the platform's package: exit %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}

func TestNPMPackagesHaveNamesAndVersions(t *testing.T) {
	for version, want := range map[string]string{"v1.2.0": "1.2.0", "v1.3.0-rc.1": "1.3.0-rc.1", "main_2": "0.0.0-main-2"} {
		r := &release{version: version}
		if got := r.npmManifest("weir").Version; got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
	r := &release{root: sources, out: t.TempDir(), version: "v1.2.0", npm: "@owner/weir"}
	if err := r.writeMainNPM(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ran(t, dir, "tar", "-xzf", filepath.Join(r.out, "npm-owner-weir-1.2.0.tgz"))
	for file, want := range map[string]string{
		"package.json": `"@owner/weir-win32-arm64": "1.2.0"`, "bin/weir.js": "`@owner/weir-${process.platform}-${process.arch}`",
		"README.md": "npx @owner/weir serve",
	} {
		if text, err := os.ReadFile(filepath.Join(dir, "package", file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v %s", file, err, text)
		}
	}
	for _, bad := range []string{"", "Weir", "a b", "@owner", "../weir", "@a/b/c"} {
		r := &release{root: sources, out: t.TempDir(), version: "v1", image: localImage, npm: bad}
		if err := r.build(); err == nil || !strings.Contains(err.Error(), "npm package") {
			t.Errorf("name %q: %v", bad, err)
		}
	}
}

func TestFormulaOfHomebrew(t *testing.T) {
	p := publish(t, "v1.2.0")
	p.targets = parseTargets(allTargets)
	if err := p.writeFormula(); err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`sha256 "[0-9a-f]{64}"`).ReplaceAllString(string(p.file(t, "weir.rb")), `sha256 "…"`)
	sums := string(p.file(t, "SHA256SUMS"))
	for _, sum := range regexp.MustCompile(`[0-9a-f]{64}`).FindAllString(string(p.file(t, "weir.rb")), -1) {
		if !strings.Contains(sums, sum+"  weir-v1.2.0-") {
			t.Errorf("%s is the checksum of no archive", sum)
		}
	}
	if os.Getenv("GOLDEN") == "update" {
		if err := os.WriteFile("testdata/weir.rb", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile("testdata/weir.rb"); err != nil || string(want) != text {
		t.Errorf("the formula is another (GOLDEN=update go test writes it): %v\n%s", err, text)
	}
	p.repository = ""
	os.Remove(filepath.Join(p.out, "weir.rb"))
	if err := p.writeFormula(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(p.out, "weir.rb")); !os.IsNotExist(err) {
		t.Error("a release without an address has a formula")
	}
}
