package host

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/testgw/local"
	"weir/internal/testgw/objects"
	"weir/pkg/gateway"
)

const adminToken = "admin-token-0123456789-0123456789-0123456789"

// world is a host behind a server on loopback, in front of an upstream.
type world struct {
	*testing.T
	host     *Host
	server   *httptest.Server
	upstream *httptest.Server
	objects  *objects.Local
	key      string // of the machine with an account "up"

	mu   sync.Mutex
	logs []string
}

// free is a Leaver for a program that other locks guard.
type free struct{}

func (free) Outside(_ context.Context, wait func()) { wait() }
func (free) Inside(f func())                        { f() }

// lateStub is a Stub that is set after the program is built which it serves.
type lateStub struct{ *objects.Local }

func newWorld(t *testing.T, cells int, answer http.HandlerFunc) *world {
	t.Helper()
	w := &world{T: t, upstream: httptest.NewServer(answer)}
	t.Cleanup(w.upstream.Close)
	late := &lateStub{}
	c := Config{
		Gateway: gateway.Config{
			AdminToken: adminToken, KeySecret: strings.Repeat("s", 40), CredentialsKey: strings.Repeat("c", 40),
			RequireKey: true, AllowPrivate: true,
		},
		Cells: cells, Objects: late, Transport: &http.Transport{MaxIdleConnsPerHost: 100},
		Origin:        func(r *http.Request) string { return "http://" + r.Host },
		ClientAddress: func(*http.Request) string { return "127.0.0.1" },
		Log:           w.log,
	}
	object := gateway.New(c.Gateway, Ports(free{}, &c)) // objects.Local has a lock of its own
	late.Local = local.New(object.Machine())
	w.objects = late.Local
	w.host = New(c)
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
	})
	var machine struct{ MachineID, APIKey string }
	w.manage("POST", "/api/machines", `{}`, &machine)
	w.key = machine.APIKey
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
