package program

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// status calls a route with a credential.
func (s *inProcess) status(path, credential string) int {
	s.Helper()
	req, err := http.NewRequest("GET", s.base+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+credential)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// stopped stops the server and returns its secrets.
func (s *inProcess) stopped(home string) (own secrets) {
	s.Helper()
	http.DefaultClient.CloseIdleConnections()
	s.signals <- syscall.SIGTERM
	if code := s.end(); code != 0 {
		s.Fatalf("exit %d: %s", code, &s.stderr)
	}
	raw, err := os.ReadFile(filepath.Join(home, "data", secretsName))
	if err == nil {
		err = json.Unmarshal(raw, &own)
	}
	if err != nil {
		s.Fatal(err)
	}
	return own
}

func TestOperatorTokenIsRotated(t *testing.T) {
	home := t.TempDir()
	none := func(*run) {}
	s := serveIn(t, home, none)
	before, err := os.ReadFile(filepath.Join(home, "data", secretsName))
	if err != nil {
		t.Fatal(err)
	}
	var old secrets
	if err := json.Unmarshal(before, &old); err != nil {
		t.Fatal(err)
	}
	var out, failed bytes.Buffer
	code := (Options{}).Main([]string{"token", "rotate", "--data", filepath.Join(home, "data")}, environment(home), nil, &out, &failed)
	fresh := strings.TrimSpace(out.String())
	if code != 0 || len(fresh) != 64 || fresh == old.AdminToken || !strings.Contains(failed.String(), "Restart the server") {
		t.Fatalf("exit %d: %s%s", code, &out, &failed)
	}
	if got := s.status("/api/version", old.AdminToken); got != 200 {
		t.Errorf("before the restart the old token gets %d", got)
	}
	key := s.key
	if own := s.stopped(home); own.AdminToken != fresh || own.KeySecret != old.KeySecret || own.CredentialsKey != old.CredentialsKey {
		t.Errorf("the secrets are %+v, before %+v", own, old)
	}
	if info, err := os.Stat(filepath.Join(home, "data", secretsName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	s = serveIn(t, home, none)
	for credential, want := range map[string]int{old.AdminToken: 401, fresh: 200} {
		if got := s.status("/api/version", credential); got != want {
			t.Errorf("after the restart a token gets %d, want %d", got, want)
		}
	}
	if got := s.status("/v1/models", key); got != 200 {
		t.Errorf("a key gets %d", got)
	}
	s.stopped(home)
}

func TestOperatorTokenThatIsElsewhereIsNotRotated(t *testing.T) {
	home := t.TempDir()
	for name, tt := range map[string]struct {
		args, env []string
		code      int
		want      string
	}{
		"environment": {[]string{"rotate"}, []string{"ADMIN_TOKEN", strings.Repeat("x", 32)}, 1, "set another value there"},
		"database":    {[]string{"rotate"}, []string{"DATABASE_URL", "postgres://localhost/weir"}, 1, "set another value there"},
		"no data":     {[]string{"rotate"}, nil, 1, "it has no ADMIN_TOKEN; weir serve creates one"},
		"nothing":     {nil, nil, 2, "it takes rotate"},
	} {
		var out, failed bytes.Buffer
		code := (Options{}).Main(append([]string{"token"}, tt.args...), environment(home, tt.env...), nil, &out, &failed)
		if code != tt.code || out.Len() > 0 || !strings.Contains(failed.String(), tt.want) {
			t.Errorf("%s: exit %d: %s%s", name, code, &out, &failed)
		}
	}
}

// setSecrets replaces the secrets of a stopped server.
func setSecrets(t *testing.T, home string, own secrets) {
	t.Helper()
	raw, err := json.Marshal(own)
	if err == nil {
		err = os.WriteFile(filepath.Join(home, "data", secretsName), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// API_KEY_SECRET checks the form of keys, so another one ends all of them; accounts stay, and new keys
// work.
func TestAnotherKeySecretEndsAllKeys(t *testing.T) {
	home := t.TempDir()
	s := serveIn(t, home, func(*run) {})
	old := s.key
	own := s.stopped(home)
	own.KeySecret = newSecret()
	setSecrets(t, home, own)
	s = serveIn(t, home, func(*run) {})
	out, err := askInit(context.Background(), filepath.Join(home, "data"), "second")
	if err != nil {
		t.Fatal(err)
	}
	for credential, want := range map[string]int{old: 401, out.APIKey: 200} {
		if got := s.status("/v1/models", credential); got != want {
			t.Errorf("a key gets %d, want %d", got, want)
		}
	}
	s.stopped(home)
}

// A wrong secrets.json, or a rotation that ends too early, leaves credentials that nothing opens: the start
// says so.
func TestOtherCredentialsKeyIsWarnedAbout(t *testing.T) {
	home := t.TempDir()
	s := serveIn(t, home, func(*run) {})
	s.connect("http://127.0.0.1:1")
	own := s.stopped(home)
	for _, tt := range []struct {
		key, want string
	}{
		{newSecret(), "accounts whose credentials CREDENTIALS_KEY does not open, so that their calls fail: 1, on machines: 1."},
		{newSecret() + "," + own.CredentialsKey, ""},
	} {
		own.CredentialsKey = tt.key
		setSecrets(t, home, own)
		s = serveIn(t, home, func(*run) {})
		if text := s.stderr.String(); strings.Contains(text, "CREDENTIALS_KEY") != (tt.want != "") || !strings.Contains(text, tt.want) {
			t.Errorf("want %q: %s", tt.want, text)
		}
		s.stopped(home)
	}
}
