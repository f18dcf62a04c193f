package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDatabaseTakesThePlaceOfTheDataDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	write(t, file, "postgres://weir:hidden@db:5432/weir?sslmode=require\n")
	for _, tt := range []struct {
		env      []string
		args     []string
		database string
	}{
		{nil, []string{"--data", "postgres://a/b"}, "postgres://a/b"},
		{[]string{"DATA_DIR", "postgresql://a/b"}, nil, "postgresql://a/b"},
		{[]string{"DATABASE_URL", "postgres://a/b", "DATA_DIR", "/data"}, nil, "postgres://a/b"},
		{[]string{"DATABASE_URL", "postgres://a/b"}, []string{"--data", "/data"}, ""},
		{[]string{"DATABASE_URL_FILE", file}, nil, "postgres://weir:hidden@db:5432/weir?sslmode=require"},
	} {
		s, err := settingsOf(t, environment("/home", tt.env...), tt.args...)
		if err != nil || s.database != tt.database || (s.data == "") != (tt.database != "") {
			t.Errorf("%q %q: %+v, %v", tt.env, tt.args, s, err)
		} else if strings.Contains(s.place(), "hidden") || strings.Contains((&run{env: environment("/home")}).call("init", s), "postgres") {
			t.Errorf("the password is printed: %s", s.place())
		}
	}
	if _, err := settingsOf(t, environment("/home", "DATABASE_URL", "mysql://a/b")); err == nil ||
		err.Error() != "DATABASE_URL: it must begin with postgres://" {
		t.Errorf("another database: %v", err)
	}
}

// Servers that share a database share the secrets, so none is created; nothing is written.
func TestSharedDatabaseNeedsSecrets(t *testing.T) {
	home := t.TempDir()
	code, _, stderr := output(t, home, []string{"ADMIN_TOKEN=" + long("a")}, "serve", "--listen", "127.0.0.1:0",
		"--data", "postgres://nobody@127.0.0.1:1/weir")
	left, _ := os.ReadDir(home)
	if code != 2 || !strings.Contains(stderr, "API_KEY_SECRET, CREDENTIALS_KEY: not set; servers that share a database") || len(left) != 0 {
		t.Errorf("exit %d, %s, files: %v", code, stderr, left)
	}
}
