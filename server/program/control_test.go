package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// controlled serves operations at the control socket of a directory.
func controlled(t *testing.T, c controls) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, closeControl, err := listenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: c.Handler()}
	go s.Serve(l)
	t.Cleanup(func() { s.Close(); closeControl() })
	return dir
}

func TestBackupThatBreaksOffLeavesNoFile(t *testing.T) {
	for name, written := range map[string]int{"before the first byte": 0, "within the body": 1 << 20} {
		dir := controlled(t, controls{backup: func(w io.Writer) error {
			if written > 0 {
				if _, err := w.Write(make([]byte, written)); err != nil {
					return err
				}
			}
			return errors.New("page 7 is\ndamaged")
		}})
		home := t.TempDir()
		path := filepath.Join(home, "b.db")
		write(t, path, "the last backup")
		var out, failed bytes.Buffer
		code := (Options{}).Main([]string{"backup", path, "--force", "--data", dir}, environment(home), nil, &out, &failed)
		if code != 1 || out.Len() > 0 || strings.Count(failed.String(), "\n") != 1 {
			t.Errorf("%s: exit %d, %q, %q", name, code, &out, &failed)
		}
		if written == 0 && !strings.Contains(failed.String(), "page 7 is damaged") {
			t.Errorf("%s: %q", name, &failed)
		}
		if raw, err := os.ReadFile(path); err != nil || string(raw) != "the last backup" {
			t.Errorf("%s: the last backup was changed: %v", name, err)
		}
		if entries, _ := os.ReadDir(home); len(entries) != 1 {
			t.Errorf("%s: %d files stay", name, len(entries))
		}
	}
}

func TestBackupNamesTheSecretsThatItLacks(t *testing.T) {
	dir := controlled(t, controls{backup: func(w io.Writer) error { _, err := w.Write([]byte("data")); return err }})
	for _, want := range []string{"API_KEY_SECRET and CREDENTIALS_KEY", filepath.Join(dir, secretsName)} {
		home := t.TempDir()
		var out, failed bytes.Buffer
		code := (Options{}).Main([]string{"backup", filepath.Join(home, "b.db"), "--data", dir}, environment(home), nil, &out, &failed)
		if code != 0 || !strings.Contains(out.String(), "keep a copy of "+want+" elsewhere") {
			t.Errorf("exit %d, %q, %q", code, &out, &failed)
		}
		write(t, filepath.Join(dir, secretsName), "{}")
	}
}

func TestFailureOfTheServerIsTheErrorOfInit(t *testing.T) {
	dir := controlled(t, controls{initialize: func(_ context.Context, name string) (initialized, error) {
		return initialized{}, fmt.Errorf("create a machine: %q is not possible", name)
	}})
	var out, failed bytes.Buffer
	code := (Options{}).Main([]string{"init", "--name", "x", "--data", dir, "--listen", "127.0.0.1:0"}, environment(dir), nil, &out, &failed)
	if code != 1 || failed.String() != "weir: create a machine: \"x\" is not possible\n" {
		t.Errorf("exit %d, %q, %q", code, &out, &failed)
	}
}

func TestMissingServerIsRecognized(t *testing.T) {
	if _, err := control(context.Background(), t.TempDir(), "GET", "/backup", nil); !errors.Is(err, errNotRunning) {
		t.Errorf("an empty directory: %v", err)
	}
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	if _, err := control(context.Background(), long, "GET", "/backup", nil); !errors.Is(err, errNotRunning) {
		t.Errorf("a long path: %v", err)
	}
}

func TestInterruptedBackupLeavesNoFile(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	dir := controlled(t, controls{backup: func(w io.Writer) error {
		w.Write(make([]byte, 1<<16))
		close(begun)
		<-release
		return nil
	}})
	home := t.TempDir()
	p := program(t, home, nil, "backup", "b.db", "--data", dir).start()
	<-begun
	p.cmd.Process.Signal(os.Interrupt)
	if code := p.end(); code != 1 || !strings.Contains(p.stderr.String(), "interrupted") {
		t.Errorf("exit %d, %s", code, &p.stderr)
	}
	if entries, _ := os.ReadDir(home); len(entries) != 0 {
		t.Errorf("%v stays", entries)
	}
}

func TestControlSocketHasTheOperatorsRights(t *testing.T) {
	home := t.TempDir()
	serving(t, home, nil, "--public-url", "https://weir.example.com")
	data := filepath.Join(home, "data")
	output(t, home, nil, "init", "--data", data)
	client := &http.Client{Transport: controlTransport{data}}
	status, text, _ := answer(t, client, "GET", "http://weir/api/machines", "")
	id := regexp.MustCompile(`"machineId":"(\w+)"`).FindStringSubmatch(text)
	if status != 200 || id == nil {
		t.Fatalf("%d %s", status, text)
	}
	if status, text, _ := answer(t, client, "GET", "http://weir/api/machines", "", "Authorization", "Bearer wrong"); status != 401 {
		t.Errorf("another credential: %d %s", status, text)
	}
	// Commands of answers name the address of the server.
	status, text, _ = answer(t, client, "POST", "http://weir/"+id[1]+"/api/setup", `{"tool":"codex","model":"openai/gpt-6-sol","allowUnknown":true}`)
	if status != 201 || !strings.Contains(text, "https://weir.example.com/setup/codex.sh") {
		t.Errorf("%d %s", status, text)
	}
}
