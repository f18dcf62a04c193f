package program

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
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

// release publishes a release of a program for this system, and returns its address.
func release(t *testing.T, version, text string) (address string) {
	t.Helper()
	dir := t.TempDir()
	name := "weir-" + version + "-" + runtime.GOOS + "-" + runtime.GOARCH
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: name + "/weir", Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, text)
	w.Close()
	z.Close()
	sums := fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(b.Bytes()), name)
	for file, content := range map[string][]byte{name + ".tar.gz": b.Bytes(), "SHA256SUMS": []byte(sums)} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := httptest.NewServer(http.StripPrefix("/latest/download", http.FileServer(http.Dir(dir))))
	t.Cleanup(s.Close)
	return s.URL
}

// copied returns a command line of a copy of the program.
func copied(p *process, path string) *process {
	p.Helper()
	if _, err := os.Stat(path); err != nil {
		content, err := os.ReadFile(p.cmd.Path)
		if err == nil {
			err = os.WriteFile(path, content, 0o755)
		}
		if err != nil {
			p.Fatal(err)
		}
	}
	p.cmd.Path = path
	return p
}

func TestUpgradeReplacesAProgramThatRuns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program of this release is a script")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "weir")
	env := []string{withReleases + "=" + release(t, "v9.0.0", "#!/bin/sh\necho weir v9.0.0\n")}
	server := copied(program(t, dir, nil, "serve", "--listen", "127.0.0.1:0"), path).start()
	server.until(&server.stdout, "weir is ")
	check := copied(program(t, dir, env, "upgrade", "--check"), path).start()
	if code := check.end(); code != 0 || !strings.Contains(check.stdout.String(), "weir v9.0.0 is available; this is v0.0.0-test. To install it: weir upgrade") {
		t.Fatalf("exit %d: %s%s", code, &check.stdout, &check.stderr)
	}
	check = copied(program(t, dir, nil, "upgrade", "--check", "--version", "9.0.0", "--from", env[0][len(withReleases)+1:]+"/latest/download"), path).start()
	if code := check.end(); code != 0 || !strings.HasSuffix(check.stdout.String(), "/latest/download --version 9.0.0\n") {
		t.Fatalf("exit %d: %s%s", code, &check.stdout, &check.stderr)
	}
	p := copied(program(t, dir, env, "upgrade"), path).start()
	if code := p.end(); code != 0 || !strings.Contains(p.stdout.String(), path+".old is the one before") {
		t.Fatalf("exit %d: %s%s", code, &p.stdout, &p.stderr)
	}
	if out, err := exec.Command(path, "version").Output(); err != nil || string(out) != "weir v9.0.0\n" {
		t.Errorf("the program is %q, %v", out, err)
	}
	server.stop()
	old := copied(program(t, dir, env, "version"), path+".old").start()
	if code := old.end(); code != 0 || !strings.HasPrefix(old.stdout.String(), "weir v0.0.0-test ") {
		t.Errorf("the program before: exit %d, %s", code, &old.stdout)
	}
}

func TestUpgradeChangesNothing(t *testing.T) {
	newer := release(t, "v9.0.0", "#!/bin/sh\n")
	for name, tt := range map[string]struct {
		address, folder string
		env             []string
		code            int
		want            string
	}{
		"latest": {release(t, "v0.0.0-test", ""), "", nil, 0, "weir v0.0.0-test is the latest release."},
		"older": {release(t, "v0.0.0-alpha", ""), "", nil, 0,
			"weir v0.0.0-test is newer than the latest release, v0.0.0-alpha; nothing was changed.\nTo install the older one: weir upgrade --version v0.0.0-alpha\n"},
		"package manager":    {newer, "node_modules", nil, 1, "upgrade it by that: npm update"},
		"nowhere":            {"", "", nil, 1, "--from ADDRESS"},
		"broken program":     {release(t, "v9.0.0", "#!/bin/sh\nexit 3\n"), "", nil, 1, "does not run on this computer: exit status 3"},
		"without a right":    {newer, "", []string{asUser + "=1"}, 1, "permission denied; run the command as a user who may"},
		"signature required": {newer, "", []string{withSigner + "=ssh-ed25519 AAAA"}, 1, "SHA256SUMS.sig cannot be downloaded"},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" || os.Getuid() != 0 && name == "without a right" {
				t.Skip("not on this system")
			}
			home := t.TempDir()
			dir := filepath.Join(home, tt.folder)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Dir(home), 0o755); err != nil { // the other user comes by here
				t.Fatal(err)
			}
			path := filepath.Join(dir, "weir")
			p := copied(program(t, dir, append(tt.env, withReleases+"="+tt.address), "upgrade"), path)
			before := state(t, dir)
			p.start()
			if code := p.end(); code != tt.code || !strings.Contains(p.stdout.String()+p.stderr.String(), tt.want) {
				t.Errorf("exit %d: %s%s", code, &p.stdout, &p.stderr)
			}
			if after := state(t, dir); len(after) != 1 || after["weir"] != before["weir"] {
				t.Errorf("files are %v", after)
			}
		})
	}
}
