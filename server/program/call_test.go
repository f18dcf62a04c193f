package program

import (
	"path/filepath"
	"runtime"
	"testing"
)

func TestPrintedCommandReachesTheDataDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths and quotes are those of Unix")
	}
	home := t.TempDir()
	for _, tt := range []struct{ name, data, want string }{
		{"", "", "weir init"},
		{"weir", "/srv/weir", "weir init --data /srv/weir"},
		{"build/weir", "/srv/weir", "build/weir init --data /srv/weir"},
		{"/my programs/weir", "/it's here", `'/my programs/weir' init --data '/it'\''s here'`},
		{"./weir", `/a\b`, `./weir init --data '/a\b'`},
	} {
		// A second terminal does not have the variable of the first.
		r := &run{Options: Options{Name: tt.name}, env: environment(home, "DATA_DIR", tt.data)}
		data, err := r.dataDir(tt.data)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.call("init", &settings{data: filepath.Clean(data)}); got != tt.want {
			t.Errorf("%s", got)
		}
	}
}
