package gateway

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	machinestorage "weir/pkg/machine/storage"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// untouched is a platform of which nothing may be asked.
type untouched struct{ *testing.T }

func (u untouched) asked(what string) error { u.Errorf("asked for %s", what); return errors.New("no") }

func (u untouched) Get(context.Context, string) ([]byte, error) { return nil, u.asked("a value of KV") }
func (u untouched) Put(context.Context, string, []byte) error   { return u.asked("a write to KV") }
func (u untouched) Delete(context.Context, string) error        { return u.asked("a deletion in KV") }
func (u untouched) Read([]byte) (int, error)                    { return 0, u.asked("random bytes") }
func (u untouched) Call(context.Context, string, string, []byte) (int, []byte, error) {
	return 0, nil, u.asked("an object")
}
func (u untouched) Start(context.Context, *upstream.Request) upstream.Pending {
	u.asked("a call")
	return nil
}
func (u untouched) Pause(context.Context, time.Duration) error { return u.asked("a pause") }

// storage is an object's storage of which nothing may be asked either.
type storage struct{ untouched }

func (s storage) Get(string) ([]byte, error)              { return nil, s.asked("a row") }
func (s storage) Write([]machinestorage.Row, int64) error { return s.asked("a write of rows") }
func (s storage) List(string, string, int) ([]machinestorage.Row, error) {
	return nil, s.asked("rows")
}

// A secret that is missing, empty, blank or short closes every route but
// /health, and nothing is touched: there is no value to fall back to.
// See docs/reference/reliability.md, T1.
func TestNoSecretHasAFallback(t *testing.T) {
	good := strings.Repeat("s", 32)
	ports := func(t *testing.T) Ports {
		u := untouched{t}
		return Ports{Do: u, Pause: u, Objects: u, KV: u, Rand: u, Now: time.Now, Log: func(int, string) {}}
	}
	type row struct{ method, path string }
	var rows []row
	whole := New(Config{AdminToken: good, KeySecret: good, CredentialsKey: good}, ports(t))
	if whole.Misconfigured != "" {
		t.Fatal("secrets of 32 bytes are refused")
	}
	add := func(r *Route) {
		path := strings.NewReplacer("{", "", "}", "", "...", "").Replace(r.Pattern)
		for _, m := range r.Methods {
			rows = append(rows, row{m.Name, path})
		}
	}
	for _, r := range whole.table.exact {
		add(r)
	}
	for i := range whole.table.patterns {
		add(whole.table.patterns[i].route)
	}
	if len(rows) < 70 {
		t.Fatalf("only %d routes", len(rows))
	}
	for _, name := range []string{"ADMIN_TOKEN", "API_KEY_SECRET", "CREDENTIALS_KEY"} {
		for _, bad := range []string{"", strings.Repeat("s", 31), strings.Repeat(" ", 64), "\n" + strings.Repeat("s", 31) + "\n"} {
			cfg := Config{AdminToken: good, KeySecret: good, CredentialsKey: good, RequireKey: false}
			*map[string]*string{"ADMIN_TOKEN": &cfg.AdminToken, "API_KEY_SECRET": &cfg.KeySecret, "CREDENTIALS_KEY": &cfg.CredentialsKey}[name] = bad
			app := New(cfg, ports(t))
			if app.Misconfigured != name {
				t.Errorf("%s=%q: %q", name, bad, app.Misconfigured)
			}
			for _, r := range rows {
				for _, token := range []string{"", good, bad, "sk-abcdefgh01234567-" + strings.Repeat("a", 26) + "-00000000"} {
					req := &httpmsg.Request{Method: r.method, Path: r.path, Origin: "https://weir.example.com", Header: httpmsg.Header{{Name: "authorization", Value: "Bearer " + token}, {Name: "content-type", Value: "application/json"}}}
					if r.method != "GET" {
						req.Body, req.Length = stream.FromString(`{}`), 2
					}
					resp := app.Serve(context.Background(), req)
					if want := r.path == "/health"; (resp.Status == 200) != want || !want && resp.Status != 503 {
						t.Fatalf("%s=%q: %s %s: %d", name, bad, r.method, r.path, resp.Status)
					}
				}
			}
			st := storage{untouched{t}}
			if status, _ := app.Object(context.Background(), st, "abcdefgh01234567", "snapshot", nil); status != 503 {
				t.Errorf("%s=%q: an object answers with %d", name, bad, status)
			}
			app.Alarm(context.Background(), st, "abcdefgh01234567")
			app.Cron(context.Background(), "")
		}
	}
}

func TestInvalidSettingIsNotCalledMissing(t *testing.T) {
	good := strings.Repeat("s", 32)
	for name, cfg := range map[string]Config{
		"CREDENTIALS_KEY": {AdminToken: good, KeySecret: good, CredentialsKey: good + ",short"},
		"PROXY_URL":       {AdminToken: good, KeySecret: good, CredentialsKey: good, ProxyURL: "nonsense"},
	} {
		app := New(cfg, Ports{Now: time.Now, Log: func(int, string) {}})
		resp := app.Serve(context.Background(), &httpmsg.Request{Method: "GET", Path: "/v1/models", Origin: "https://weir.example.com"})
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if want := "The gateway is not configured: " + name + " is not valid."; resp.Status != 503 || !strings.Contains(string(raw), want) {
			t.Errorf("%d %s, want 503 and %q", resp.Status, raw, want)
		}
	}
}
