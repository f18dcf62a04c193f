//go:build unix

package cluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// overlay compiles the server with other files in place of some.
func overlay(t *testing.T, edits ...map[string]string) (build string) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for _, files := range edits {
		for path, text := range files {
			replace[path] = filepath.Join(dir, filepath.Base(path))
			if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, _ := json.Marshal(map[string]any{"Replace": replace})
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600); err != nil {
		t.Fatal(err)
	}
	build = filepath.Join(dir, "weir")
	compile(build, "-overlay", filepath.Join(dir, "overlay.json"))
	return build
}

// edited returns the text of a file with one place replaced.
func edited(t *testing.T, path, old, replaced string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), old) != 1 {
		t.Fatalf("%s has not one line %s: %v", path, old, err)
	}
	return strings.Replace(string(text), old, replaced, 1)
}

// wrongClock has the files of a server with a clock that is wrong by the seconds of SKEW. A program of
// Go asks the kernel for the time, so faketime does not change its clock.
func wrongClock(t *testing.T) map[string]string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), "src/time")
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	return map[string]string{
		filepath.Join(dir, "time.go"): edited(t, filepath.Join(dir, "time.go"), now, now+"\tsec += skew\n"),
		filepath.Join(dir, "skew.go"): `package time

import "syscall"

var skew = func() int64 {
	v, _ := syscall.Getenv("SKEW")
	n, _ := atoi(v)
	return int64(n)
}()
`,
	}
}
