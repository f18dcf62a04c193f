package program

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestServerLooksForANewerRelease(t *testing.T) {
	for name, tt := range map[string]struct {
		check   string
		address string
		want    string // "" for none
		log     string
	}{
		"newer":     {"true", release(t, "v9.0.0", ""), "v9.0.0", ""},
		"not asked": {"false", release(t, "v9.0.0", ""), "", ""},
		"failure":   {"true", "http://127.0.0.1:1", "", "CHECK_UPDATES: http://127.0.0.1:1/latest/download/SHA256SUMS cannot be downloaded"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			s := serveIn(t, home, func(r *run) {
				r.Version, r.Releases = "v1.0.0", tt.address
				r.env = environment(home, "CHECK_UPDATES", tt.check)
			})
			var v struct{ Newer string }
			for until := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
				res, err := control(context.Background(), filepath.Join(home, "data"), "GET", "/api/version", nil)
				if err != nil {
					t.Fatal(err)
				}
				err = json.NewDecoder(res.Body).Decode(&v)
				res.Body.Close()
				if err != nil || v.Newer == tt.want && strings.Contains(s.stderr.String(), tt.log) || time.Now().After(until) {
					break
				}
			}
			if v.Newer != tt.want || !strings.Contains(s.stderr.String(), tt.log) {
				t.Errorf("the newer release is %q: %s", v.Newer, &s.stderr)
			}
			s.signals <- syscall.SIGTERM
			if code := s.end(); code != 0 {
				t.Errorf("exit %d: %s", code, &s.stderr)
			}
		})
	}
}
