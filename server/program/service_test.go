package program

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The system is a stand-in that notes its calls and fails those of one word.
func TestServiceIsInstalledAndRemoved(t *testing.T) {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("it runs as another user, under Linux")
	}
	home := t.TempDir()
	for dir := home; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	calls := filepath.Join(home, "calls")
	stub := "#!/bin/sh\necho \"$@\" >> " + calls + "\n[ \"$FAIL\" != \"$2\" ] || exit 5\n"
	if err := os.WriteFile(filepath.Join(home, "systemctl"), []byte(stub), 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{asUser + "=1", "PATH=" + home + ":" + os.Getenv("PATH")}
	weir := func(want int, fail string, args ...string) string {
		t.Helper()
		p := copied(program(t, home, append(env, "FAIL="+fail), append([]string{"service"}, args...)...), filepath.Join(home, "weir")).start()
		if code := p.end(); code != want {
			t.Fatalf("%v: exit %d: %s%s", args, code, &p.stdout, &p.stderr)
		}
		return p.stdout.String() + p.stderr.String()
	}
	file := filepath.Join(home, ".config/systemd/user/weir.service")
	if out := weir(0, "", "install", "--data", "my data", "--log-level", "info", "--config", "weir.yaml", "--drain", "60"); !strings.Contains(out, "Wrote "+file) {
		t.Errorf("install prints %s", out)
	}
	unit, err := os.ReadFile(file)
	if want := "ExecStart=" + home + "/weir serve \"--data=" + home + "/my data\" --drain=60 --config=" + home + "/weir.yaml --log-level=info\n"; err != nil || !strings.Contains(string(unit), want) {
		t.Errorf("%v: the unit is\n%s", err, unit)
	}
	weir(0, "", "status")
	weir(5, "--no-pager", "status")
	weir(5, "restart", "install")
	nothingLeft := func() {
		t.Helper()
		if left, err := os.ReadDir(filepath.Join(home, ".config")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	if out := weir(0, "", "uninstall"); !strings.Contains(out, "Its data stays, and "+home+"/.config/weir/weir.env if you have made it.") {
		t.Errorf("uninstall prints %s", out)
	}
	nothingLeft()
	got, err := os.ReadFile(calls)
	want := "--user daemon-reload\n--user enable weir.service\n--user restart weir.service\n" +
		strings.Repeat("--user --no-pager status weir.service\n", 2) +
		"--user daemon-reload\n--user enable weir.service\n--user restart weir.service\n" +
		"--user disable --now weir.service\n--user daemon-reload\n"
	if err != nil || string(got) != want {
		t.Errorf("%v: the calls are\n%swant\n%s", err, got, want)
	}
	weir(0, "", "install", "--data", "postgres://weir@db/weir")
	if unit, _ := os.ReadFile(file); !strings.Contains(string(unit), " --data=postgres://weir@db/weir\n") {
		t.Errorf("the URL of a database is no path:\n%s", unit)
	}
	// systemctl enable has made a link, which disable cannot remove outside of a session.
	wants := filepath.Join(filepath.Dir(file), "default.target.wants")
	if err := errors.Join(os.Mkdir(wants, 0o777), os.Chmod(wants, 0o777), os.Symlink(file, filepath.Join(wants, "weir.service"))); err != nil {
		t.Fatal(err)
	}
	weir(5, "disable", "uninstall")
	nothingLeft()
	for _, args := range [][]string{{}, {"start"}, {"install", "now"}, {"install", "--listen", "nowhere"}} {
		weir(2, "", args...)
	}
	os.Remove(filepath.Join(home, "systemctl"))
	env[1] = "PATH=" + home
	weir(1, "", "install")
	nothingLeft()
	if out := weir(1, "", "status"); !strings.Contains(out, "systemctl is not installed") {
		t.Errorf("without systemd: %s", out)
	}
}
