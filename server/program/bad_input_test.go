package program

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// state returns the files of a folder with digests of their contents. Locks and
// sockets are left out: they say nothing.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type() == fs.ModeSocket || d.Name() == "weir.lock" {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		sum := sha256.Sum256(raw)
		rel, _ := filepath.Rel(dir, path)
		all[rel] = hex.EncodeToString(sum[:])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// used makes a data directory that a server has used.
func used(t *testing.T, home string) (data string) {
	t.Helper()
	data = filepath.Join(home, "data")
	if code, _, text := output(t, home, nil, "init", "--data", data); code != 0 {
		t.Fatalf("init: exit %d, %s", code, text)
	}
	return data
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Each mistake ends the program with one line that names it and what to do, and
// leaves every file as it was.
func TestMistakesAreOneLineAndChangeNothing(t *testing.T) {
	root := os.Geteuid() == 0
	for _, tt := range []struct {
		name  string
		ready func(t *testing.T, home string) (args, env []string) // nil if it cannot be set up here
		code  int
		want  []string
	}{
		{"unknown command", func(*testing.T, string) ([]string, []string) { return []string{"frobnicate"}, nil }, 2, []string{"unknown command", "weir help"}},
		{"command that is nearly one", func(*testing.T, string) ([]string, []string) { return []string{"server"}, nil }, 2, []string{"unknown command", "did you mean weir serve?"}},
		{"unknown flag", func(*testing.T, string) ([]string, []string) { return []string{"serve", "--port", "1"}, nil }, 2, []string{"unknown flag --port; weir help serve"}},
		{"flag that is nearly one", func(*testing.T, string) ([]string, []string) {
			return []string{"keys", "add", "laptop", "--bugdet", "5/month"}, nil
		}, 2, []string{"unknown flag --bugdet; did you mean --budget?"}},
		{"flag without value", func(*testing.T, string) ([]string, []string) { return []string{"serve", "--listen"}, nil }, 2, []string{"--listen needs a value"}},
		{"flag for a data directory", func(*testing.T, string) ([]string, []string) { return []string{"init", "--data", "--help"}, nil }, 2, []string{"--data --help: that is a flag"}},
		{"argument", func(*testing.T, string) ([]string, []string) { return []string{"serve", "now"}, nil }, 2, []string{`unexpected argument "now"`}},
		{"bad value", func(*testing.T, string) ([]string, []string) { return []string{"serve", "--memory", "many"}, nil }, 2, []string{"--memory many", "number"}},
		{"bad variable", func(*testing.T, string) ([]string, []string) {
			return []string{"serve"}, []string{"PUBLIC_URL=weir.example.com/path"}
		}, 2, []string{"PUBLIC_URL", "https://"}},
		{"short secret", func(*testing.T, string) ([]string, []string) {
			return []string{"serve"}, []string{"ADMIN_TOKEN=secret"}
		}, 2, []string{"ADMIN_TOKEN", "32 bytes"}},
		{"no home", func(*testing.T, string) ([]string, []string) {
			return []string{"serve"}, []string{"HOME=", "LocalAppData="}
		}, 2, []string{"--data"}},
		{"certificate without key", func(*testing.T, string) ([]string, []string) { return []string{"serve", "--tls-cert", "a.pem"}, nil }, 2, []string{"--tls-key"}},
		{"missing certificate", func(*testing.T, string) ([]string, []string) {
			return []string{"serve", "--tls-cert", "a.pem", "--tls-key", "b.pem"}, nil
		}, 1, []string{"--tls-cert a.pem", "no such file"}},
		{"invalid certificate", func(t *testing.T, home string) ([]string, []string) {
			write(t, filepath.Join(home, "a.pem"), "not PEM")
			return []string{"serve", "--tls-cert", "a.pem", "--tls-key", "a.pem"}, nil
		}, 1, []string{"--tls-cert a.pem", "PEM"}},
		{"port in use", func(t *testing.T, home string) ([]string, []string) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			return []string{"serve", "--listen", l.Addr().String(), "--data", filepath.Join(home, "data")}, nil
		}, 1, []string{"in use", "--listen"}},
		{"address of another computer", func(*testing.T, string) ([]string, []string) {
			return []string{"serve", "--listen", "192.0.2.1:8787"}, nil
		}, 1, []string{"192.0.2.1:8787", "--listen"}},
		{"socket is a file", func(t *testing.T, home string) ([]string, []string) {
			write(t, filepath.Join(home, "notes"), "mine")
			return []string{"serve", "--listen", "unix:notes"}, nil
		}, 1, []string{"unix:notes", "file", "--listen"}},
		{"data directory is a file", func(t *testing.T, home string) ([]string, []string) {
			write(t, filepath.Join(home, "data"), "mine")
			return []string{"serve", "--data", "data"}, nil
		}, 1, []string{"not a directory", "--data"}},
		{"data directory of another program", func(t *testing.T, home string) ([]string, []string) {
			write(t, filepath.Join(home, "letter.txt"), "mine")
			return []string{"serve", "--data", home}, nil
		}, 1, []string{"letter.txt", "--data"}},
		{"second process", func(t *testing.T, home string) ([]string, []string) {
			env := []string{"ADMIN_TOKEN=" + long("a")} // no machine, which the server would write about later
			serving(t, home, env)
			return []string{"serve", "--data", "data"}, env
		}, 1, []string{"in use by another process", "--data"}},
		{"damaged database", func(t *testing.T, home string) ([]string, []string) {
			write(t, filepath.Join(used(t, home), "weir.db"), strings.Repeat("x", 8192))
			return []string{"serve", "--data", "data"}, nil
		}, 1, []string{"weir.db"}},
		{"empty database", func(t *testing.T, home string) ([]string, []string) {
			write(t, filepath.Join(used(t, home), "weir.db"), "")
			return []string{"serve", "--data", "data"}, nil
		}, 1, []string{"weir.db"}},
		{"damaged secrets", func(t *testing.T, home string) ([]string, []string) {
			write(t, filepath.Join(used(t, home), "secrets.json"), `{"ADMIN_TOKEN":`)
			return []string{"serve", "--data", "data"}, nil
		}, 1, []string{"secrets.json", "backup"}},
		{"missing secrets", func(t *testing.T, home string) ([]string, []string) {
			os.Remove(filepath.Join(used(t, home), "secrets.json"))
			return []string{"serve", "--data", "data"}, nil
		}, 1, []string{"secrets.json", "ADMIN_TOKEN, API_KEY_SECRET, CREDENTIALS_KEY", "backup"}},
		{"one missing secret", func(t *testing.T, home string) ([]string, []string) {
			os.Remove(filepath.Join(used(t, home), "secrets.json"))
			return []string{"init", "--data", "data"}, []string{"ADMIN_TOKEN=" + strings.Repeat("a", 32), "API_KEY_SECRET=" + strings.Repeat("b", 32)}
		}, 1, []string{"secrets.json: CREDENTIALS_KEY missing"}},
		{"unreadable data directory", func(t *testing.T, home string) ([]string, []string) {
			if runtime.GOOS == "windows" {
				return nil, nil
			}
			os.Chmod(used(t, home), 0)
			t.Cleanup(func() { os.Chmod(filepath.Join(home, "data"), 0o700) })
			return []string{"serve", "--data", "data"}, []string{asUser + "=1"}
		}, 1, []string{"permission denied", "--data"}},
		{"data directory that cannot be written", func(t *testing.T, home string) ([]string, []string) {
			if runtime.GOOS == "windows" {
				return nil, nil
			}
			os.Mkdir(filepath.Join(home, "data"), 0o500)
			return []string{"serve", "--data", "data"}, []string{asUser + "=1"}
		}, 1, []string{"permission denied", "--data"}},
		{"data directory that cannot be created", func(t *testing.T, home string) ([]string, []string) {
			if runtime.GOOS != "linux" {
				return nil, nil
			}
			return []string{"serve", "--data", "/proc/weir"}, nil
		}, 1, []string{"/proc/weir", "--data"}},
		{"full disk", func(t *testing.T, home string) ([]string, []string) {
			full := filepath.Join(home, "full")
			os.Mkdir(full, 0o700)
			if !root || exec.Command("mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", full).Run() != nil {
				return nil, nil
			}
			t.Cleanup(func() { exec.Command("umount", full).Run() })
			write(t, filepath.Join(full, ".fill"), strings.Repeat("x", 4096))
			return []string{"serve", "--data", full}, nil
		}, 1, []string{"no space left", "free some space"}},
		{"backup without a file", func(*testing.T, string) ([]string, []string) { return []string{"backup"}, nil }, 2, []string{"name one file"}},
		{"backup of nothing", func(t *testing.T, home string) ([]string, []string) {
			return []string{"backup", "b.db", "--data", "data"}, nil
		}, 1, []string{"data", "--data"}},
		{"backup over a file", func(t *testing.T, home string) ([]string, []string) {
			used(t, home)
			write(t, filepath.Join(home, "b.db"), "mine")
			return []string{"backup", "b.db", "--data", "data"}, nil
		}, 1, []string{"b.db exists", "--force"}},
		{"backup to a missing folder", func(t *testing.T, home string) ([]string, []string) {
			used(t, home)
			return []string{"backup", "missing/b.db", "--data", "data"}, nil
		}, 1, []string{"missing/b.db", "no such file"}},
		{"health without a server", func(*testing.T, string) ([]string, []string) {
			return []string{"health", "--listen", "127.0.0.1:1"}, nil
		}, 1, []string{"127.0.0.1:1", "does not answer"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			args, env := tt.ready(t, home)
			if args == nil {
				t.Skip("cannot be set up by this user on this system")
			}
			if args[0] == "serve" && !strings.Contains(strings.Join(args, " "), "--listen") {
				args = append(args, "--listen", "127.0.0.1:0")
			}
			before := state(t, home)
			code, stdout, stderr := output(t, home, env, args...)
			if code != tt.code || stdout != "" {
				t.Errorf("exit code %d, stdout %q, want %d and nothing", code, stdout, tt.code)
			}
			if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "weir: ") {
				t.Errorf("not one line: %q", stderr)
			}
			for _, text := range tt.want {
				if !strings.Contains(stderr, text) {
					t.Errorf("%q lacks %q", stderr, text)
				}
			}
			after := state(t, home)
			for name, sum := range before {
				if after[name] != sum {
					t.Errorf("%s was changed", name)
				}
			}
			for name := range after {
				if _, ok := before[name]; !ok {
					t.Errorf("%s was created", name)
				}
			}
		})
	}
}
