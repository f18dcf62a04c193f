package host

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/pkg/gateway"
	"weir/server/objects"
	"weir/server/store"
)

const adminToken = "admin-token-0123456789-0123456789-0123456789"

// world is a host behind a server on loopback, in front of an upstream.
type world struct {
	*testing.T
	host     *Host
	server   *httptest.Server
	upstream *httptest.Server
	objects  *objects.Runner
	machine  string // has an account "up"
	key      string // of the machine

	mu   sync.Mutex
	logs []string
}

func newWorld(t *testing.T, answer http.HandlerFunc) *world {
	t.Helper()
	w := &world{T: t, upstream: httptest.NewServer(answer)}
	t.Cleanup(w.upstream.Close)
	st, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w.objects = objects.New(st, objects.Log(w.log))
	c := Config{
		Gateway: gateway.Config{
			AdminToken: adminToken, KeySecret: strings.Repeat("s", 40), CredentialsKey: strings.Repeat("c", 40),
			RequireKey: true, AllowPrivate: true,
		},
		Objects: w.objects, Outside: w.objects.Outside, Transport: &http.Transport{MaxIdleConnsPerHost: 100},
		Origin:        func(r *http.Request) string { return "http://" + r.Host },
		ClientAddress: func(*http.Request) string { return "127.0.0.1" },
		Log:           w.log,
	}
	app := NewApp(c)
	w.objects.Use(app)
	if err := w.objects.Start(); err != nil {
		t.Fatal(err)
	}
	w.host = New(c, app)
	w.server = httptest.NewServer(w.host)
	t.Cleanup(func() {
		w.server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.host.Wait(ctx); err != nil {
			t.Error(err)
		}
		if calls, flows, afters := w.host.InFlight(); calls+flows+afters != 0 {
			t.Errorf("in flight at the end: %d calls, %d flows, %d recordings", calls, flows, afters)
		}
		if err := errors.Join(w.objects.Stop(ctx), st.Close()); err != nil {
			t.Error(err)
		}
	})
	var machine struct{ MachineID, APIKey string }
	w.manage("POST", "/api/machines", `{}`, &machine)
	w.machine, w.key = machine.MachineID, machine.APIKey
	w.manage("POST", "/"+machine.MachineID+"/api/providers", `{"provider":"openai-compatible-0123abcd","name":"up","apiKey":"upstream-key",`+
		`"providerSpecificData":{"baseUrl":"`+w.upstream.URL+`/v1","prefix":"up"}}`, nil)
	return w
}

func (w *world) log(_ int, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs = append(w.logs, line)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.logs, "\n")
}

// manage makes a call of the operator.
func (w *world) manage(method, path, body string, into any) {
	w.Helper()
	req, _ := http.NewRequest(method, w.server.URL+path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	got, _ := io.ReadAll(res.Body)
	if res.StatusCode/100 != 2 {
		w.Fatalf("%s %s: %d %s", method, path, res.StatusCode, got)
	}
	if into != nil {
		if err := json.Unmarshal(got, into); err != nil {
			w.Fatal(err)
		}
	}
}

// request returns a call of the machine's key.
func (w *world) request(method, path string, body io.Reader) *http.Request {
	req, err := http.NewRequest(method, w.server.URL+path, body)
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	req.Header.Set("Content-Type", "application/json")
	return req
}

// post makes a call and returns its status and body.
func (w *world) post(path, body string) (int, string) {
	w.Helper()
	res, err := http.DefaultClient.Do(w.request("POST", path, strings.NewReader(body)))
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatal(err)
	}
	return res.StatusCode, string(got)
}
