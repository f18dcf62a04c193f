package program

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSecurityOfAStoppedServer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has no modes")
	}
	mode := func(name string, m os.FileMode) func(string) error {
		return func(dir string) error { return os.Chmod(filepath.Join(dir, name), m) }
	}
	for name, tt := range map[string]struct {
		before func(dir string) error
		env    []string
		want   string // "" for nothing
	}{
		"safe":         {nil, nil, ""},
		"directory":    {mode("", 0o755), nil, "run chmod 700 "},
		"secrets":      {mode(secretsName, 0o640), nil, "secrets.json is open to other users; run chmod 600 "},
		"database":     {mode("weir.db", 0o604), nil, "weir.db is open to other users; run chmod 600 "},
		"sign-in code": {mode(codeName, 0o644), nil, "sign-in.json is open to other users"},
		"backup": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "weir-2026-11-22.db"), nil, 0o644) }, nil,
			"weir-2026-11-22.db is open to other users; run chmod 600 "},
		"backups": {func(dir string) error {
			err := os.Mkdir(filepath.Join(dir, "backups"), 0o700)
			for _, name := range []string{"backups/1.db", "backups/2.db", "secrets.json.bak"} {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
			}
			return err
		}, nil, "backups/1.db, are open to other users; run chmod -R go= "},
		"old secrets": {func(dir string) error {
			old := time.Now().AddDate(0, 0, -400)
			return os.Chtimes(filepath.Join(dir, secretsName), old, old)
		}, nil, "the secrets are 400 days old; replace the operator token with weir token rotate"},
		"public listener": {nil, []string{"LISTEN", ":8787"}, "open to other computers without TLS; set --tls-cert"},
		"behind a proxy":  {nil, []string{"LISTEN", ":8787", "TRUSTED_PROXIES", "private"}, ""},
		"private upstreams": {nil, []string{"LISTEN", ":8787", "TRUSTED_PROXIES", "private", "ALLOW_PRIVATE_UPSTREAMS", "true"},
			"ALLOW_PRIVATE_UPSTREAMS is true"},
		"private upstreams of this computer": {nil, []string{"ALLOW_PRIVATE_UPSTREAMS", "true"}, ""},
		"unix socket":                        {nil, []string{"LISTEN", "unix:/run/weir.sock"}, ""},
		"public http":                        {nil, []string{"PUBLIC_URL", "http://weir.example.com"}, "PUBLIC_URL is http"},
		"own http":                           {nil, []string{"PUBLIC_URL", "http://127.0.0.1:8787"}, ""},
		"token":                              {nil, []string{"ADMIN_TOKEN", newSecret()}, "the environment has ADMIN_TOKEN, which"},
		"weak token of the file": {func(dir string) error {
			path := filepath.Join(dir, secretsName)
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			own := secrets{}
			if err := json.Unmarshal(raw, &own); err != nil {
				return err
			}
			return os.WriteFile(path, []byte(strings.Replace(string(raw), own.AdminToken, strings.Repeat("x", 32), 1)), 0o600)
		}, nil, "ADMIN_TOKEN is weak: it repeats a few characters; replace it by what openssl rand -hex 32 prints"},
		"calls without keys": {nil, []string{"REQUIRE_API_KEY", "false"}, "REQUIRE_API_KEY is false"},
		"private key": {func(dir string) error { return os.WriteFile(filepath.Join(filepath.Dir(dir), "key.pem"), nil, 0o644) },
			[]string{"TLS_KEY", "HOME/key.pem", "TLS_CERT", "cert.pem"}, "key.pem, the private key, is open to all users; run chmod 600 "},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			dir := filepath.Join(home, "data")
			p := program(t, home, nil, "init", "--data", dir).start()
			if code := p.end(); code != 0 {
				t.Fatal(p.stderr.String())
			}
			if tt.before != nil {
				if err := tt.before(dir); err != nil {
					t.Fatal(err)
				}
			}
			for i := range tt.env {
				tt.env[i] = strings.Replace(tt.env[i], "HOME", home, 1)
			}
			r := &run{env: environment(home, append(tt.env, "DATA_DIR", dir)...)}
			found, err := r.security(context.Background(), "")
			switch {
			case err != nil:
				t.Error(err)
			case tt.want == "" && len(found) > 0:
				t.Errorf("found %q", found)
			case tt.want != "" && (len(found) != 1 || !strings.Contains(found[0], tt.want)):
				t.Errorf("found %q, want one with %q", found, tt.want)
			}
		})
	}
}

func TestWeakSecrets(t *testing.T) {
	for value, want := range map[string]string{
		"":                                       "",
		newSecret():                              "",
		"q8RkT0zv/1mC+9xWbYd4LJs7HnGfPaEu2VtK":   "",
		"tall-otter-pays-nine-rivers-by-dusk":    "",
		"short":                                  "it has fewer than 32 bytes",
		"changeme-changeme-changeme-changeme":    "it consists of common words",
		"MySecretPassword-Admin-Token-123456789": "it consists of common words",
		strings.Repeat("ab12", 8):                "it repeats a few characters",
		"thequickbrownfoxjumpsoverthelazydog":    "its characters are all of one kind",
		"31415926535897932384626433832795028":    "its characters are all of one kind",
		"changeme-changeme-changeme-changeme," + newSecret(): "it consists of common words",
	} {
		got := strings.Join(secrets{CredentialsKey: value}.weak(), "\n")
		if want != "" {
			want = "CREDENTIALS_KEY is weak: " + want
		}
		if got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

// A short one stops the program, so it is an error in place of a finding.
func TestSecurityNamesAShortToken(t *testing.T) {
	r := &run{env: environment(t.TempDir(), "ADMIN_TOKEN", "short")}
	if _, err := r.security(context.Background(), ""); err == nil || !strings.Contains(err.Error(), "ADMIN_TOKEN: it has fewer than 32 bytes") {
		t.Errorf("error is %v", err)
	}
}

// The state of a running server counts, not the environment of the command.
func TestSecurityOfARunningServer(t *testing.T) {
	home := t.TempDir()
	s := serveIn(t, home, func(r *run) { r.env = environment(home, "ADMIN_TOKEN", newSecret()) })
	r := &run{env: environment(home, "DATA_DIR", filepath.Join(home, "data"), "LISTEN", ":8787")}
	found, err := r.security(context.Background(), "")
	if err != nil || len(found) != 1 || !strings.Contains(found[0], "the environment has ADMIN_TOKEN") {
		t.Errorf("found %q, %v", found, err)
	}
	s.signals <- syscall.SIGTERM
	if code := s.end(); code != 0 {
		t.Errorf("exit %d: %s", code, &s.stderr)
	}
}
