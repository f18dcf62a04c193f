// Package fakeup is a machine with accounts in front of a scripted upstream,
// for the tests of endpoints: the real router and the real pool are between.
package fakeup

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

const machineID = "abcdefgh01234567"

// Secret is what every account holds.
const Secret = "secret-key-0123456789abcdef"

// Seen is a call as the upstream saw it.
type Seen struct {
	Method, URL string
	Header      httpmsg.Header
	Body        string
	Timeout     time.Duration
	MaxBody     int64
}

// Answer is an answer of the upstream.
type Answer struct {
	Status int // 0 is 200
	Header httpmsg.Header
	Body   string
	Err    error         // no answer at all
	Takes  time.Duration // by the clock of the world
}

// World is the machine and its upstream.
type World struct {
	testing.TB
	Pool    *accounts.Pool
	Machine *store.Machine
	Clock   time.Time
	Script  func(s *Seen) Answer
	Calls   []*Seen
	keys    *store.Keyring
}

// New makes a world whose machine has a connection of each provider.
func New(t testing.TB, providers ...string) *World {
	t.Helper()
	keys, err := store.NewKeyring(strings.Repeat("k", 40))
	if err != nil {
		t.Fatal(err)
	}
	w := &World{TB: t, Clock: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), keys: keys, Machine: &store.Machine{Version: 1, ID: machineID}}
	w.Pool = &accounts.Pool{Doer: w, Object: w, Keys: keys, Now: w.Now}
	for _, p := range providers {
		w.Connect(p, "c-"+p, store.ProviderData{})
	}
	return w
}

// Connect adds a connection.
func (w *World) Connect(provider, id string, data store.ProviderData) {
	w.Helper()
	sealed, err := w.keys.Seal(machineID, id, store.APIKey, secret.New(Secret))
	if err != nil {
		w.Fatal(err)
	}
	w.Machine.Connections = append(w.Machine.Connections, store.Connection{
		ID: id, Provider: provider, Data: data, Secrets: map[string]secret.Sealed{store.APIKey: sealed},
	})
}

// Now is the clock.
func (w *World) Now() time.Time { return w.Clock }

// Ask is a client's call.
func (w *World) Ask(path, body string) *auth.Call {
	return &auth.Call{
		Request: &httpmsg.Request{
			Method: "POST", Path: path, Origin: "https://gateway.example.org", Start: w.Clock,
			Body: io.NopCloser(strings.NewReader(body)), Length: int64(len(body)),
		},
		Machine: snapshot.New(w.Machine), MachineID: machineID, MaxBody: 8 << 20,
	}
}

// Call is the machine's object, which accepts reports and returns no token.
func (w *World) Call(context.Context, string, string, []byte) (int, []byte, error) {
	return 404, []byte(`{}`), nil
}

type pending struct {
	w   *World
	req *upstream.Request
	a   Answer
}

// Start is the upstream.
func (w *World) Start(_ context.Context, req *upstream.Request) upstream.Pending {
	s := &Seen{Method: req.Method, URL: req.URL, Header: req.Header, Timeout: req.Timeout, MaxBody: req.MaxBody}
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			w.Fatal(err)
		}
		s.Body = string(b)
	}
	w.Calls = append(w.Calls, s)
	return &pending{w, req, w.Script(s)}
}

// Wait keeps the limits of the request as the platform does.
func (p *pending) Wait() (*upstream.Response, error) {
	a := p.a
	if p.req.Timeout > 0 && a.Takes > p.req.Timeout {
		p.w.Clock = p.w.Clock.Add(p.req.Timeout)
		return nil, upstream.ErrTimeout
	}
	p.w.Clock = p.w.Clock.Add(a.Takes)
	if a.Err != nil {
		return nil, a.Err
	}
	if p.req.MaxBody > 0 && int64(len(a.Body)) > p.req.MaxBody {
		return nil, stream.ErrTooLarge
	}
	if a.Status == 0 {
		a.Status = 200
	}
	return &upstream.Response{Status: a.Status, Header: a.Header, Body: stream.FromString(a.Body)}, nil
}

// Body returns the body of an answer; without one the test ends.
func Body(t testing.TB, resp *httpmsg.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Status != 200 || resp.Header.Get("content-type") != "application/json" {
		t.Fatalf("status %d, header %v", resp.Status, resp.Header)
	}
	return string(b)
}

// Refused returns the failure of a call that must fail with this status.
func Refused(t testing.TB, err error, status int) *apierr.Error {
	t.Helper()
	e, ok := err.(*apierr.Error)
	if !ok || e.Status != status {
		t.Fatalf("got %v, want a failure of status %d", err, status)
	}
	return e
}
