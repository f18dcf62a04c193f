package videos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/local"
	"weir/internal/testgw/objects"
	"weir/pkg/accounts"
	"weir/pkg/api"
	"weir/pkg/auth"
	"weir/pkg/endpoint/download"
	"weir/pkg/endpoint/memory"
	"weir/pkg/machine"
	"weir/pkg/machine/tokens"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

const mid = "abcdefgh01234567"

// world is the endpoint with the real accounts, router and object behind it,
// and a scripted upstream.
type world struct {
	testing.TB
	*Handler
	now     time.Time
	keys    *store.Keyring
	machine *snapshot.Machine
	objects *faulty
	// answer scripts the upstream.
	answer func(r *seen) answer
	seen   []*seen
}

// seen is a call as the upstream saw it.
type seen struct {
	Method, URL string
	Header      httpmsg.Header
	Body        string
	Key         string // the account's credential, "" without one
	Outlive     bool
}

type answer struct {
	status int
	header httpmsg.Header
	body   string
	cut    bool  // the body breaks off at its end
	err    error // no answer at all
}

// faulty is the machines' objects, with faults.
type faulty struct {
	*objects.Local
	fail  func(op string) bool
	calls []string
}

func (o *faulty) Call(ctx context.Context, id, op string, body []byte) (int, []byte, error) {
	o.calls = append(o.calls, op)
	if o.fail != nil && o.fail(op) {
		return 0, nil, errors.New("object unreachable")
	}
	return o.Local.Call(ctx, id, op, body)
}

func newWorld(t testing.TB, providers ...string) *world {
	t.Helper()
	keys, err := store.NewKeyring(strings.Repeat("k", 40))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, now: time.UnixMilli(1_800_000_000_000), keys: keys}
	clock := func() time.Time { return w.now }
	w.objects = &faulty{Local: local.New(&machine.Object{KV: fake.NewKV(), Manager: api.Manager{
		Service: tokens.Service{Keyring: keys, Now: clock, Rand: zeros{}}, KeySecret: []byte(strings.Repeat("s", 32)),
	}})}
	for _, id := range []string{mid, "otherotherother0"} {
		if status, raw, _ := w.objects.Local.Call(context.Background(), id, "create", []byte(`{}`)); status != 201 {
			t.Fatalf("create: %d %s", status, raw)
		}
	}
	pool := &accounts.Pool{Doer: w, Object: w.objects, Keys: keys, Now: clock}
	w.Handler = &Handler{
		Router: routing.Router{}, Accounts: pool, Object: w.objects, Allows: auth.AllowsModel, Room: &memory.Budget{},
		Credentials: &accounts.Credentials{Pool: pool},
		Downloads:   &download.Downloads{Do: w, CanonicalURL: canonical},
	}
	var conns []store.Connection
	for i, p := range providers {
		conns = append(conns, w.connection(p, string(rune('a'+i))))
	}
	w.setMachine(conns...)
	return w
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i * 7)
	}
	return len(b), nil
}

func canonical(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "", false
	}
	return u.String(), true
}

func apiKeyOf(id string) string { return "key-" + id + "-0123456789abcdef" }

func (w *world) connection(providerID, id string) store.Connection {
	sealed, err := w.keys.Seal(mid, id, store.APIKey, secret.New(apiKeyOf(id)))
	if err != nil {
		w.Fatal(err)
	}
	return store.Connection{ID: id, Provider: providerID, Secrets: map[string]secret.Sealed{store.APIKey: sealed}}
}

func (w *world) setMachine(conns ...store.Connection) {
	w.machine = snapshot.New(&store.Machine{Version: 1, ID: mid, Connections: conns})
}

// Start is the upstream.
func (w *world) Start(_ context.Context, req *upstream.Request) upstream.Pending {
	s := &seen{Method: req.Method, URL: req.URL, Header: req.Header, Outlive: req.Outlive}
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			w.Fatal(err)
		}
		s.Body = string(b)
	}
	for _, f := range req.Header {
		if strings.Contains(f.Value, "key-") {
			s.Key = f.Value[strings.Index(f.Value, "key-"):]
		}
	}
	w.seen = append(w.seen, s)
	return pending(w.answer(s))
}

type pending answer

func (p pending) Wait() (*upstream.Response, error) {
	if p.err != nil {
		return nil, p.err
	}
	r := &upstream.Response{Status: p.status, Header: p.header, Body: stream.FromString(p.body)}
	if p.cut {
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(p.body), broken{}))
	}
	return r, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, upstream.ErrNetwork }

// call makes a client's call.
func (w *world) call(contentType, body string, header ...string) *auth.Call {
	r := &httpmsg.Request{Method: "POST", Path: "/v1/videos/generations", Origin: "https://weir.example", Length: int64(len(body)), Start: w.now}
	r.Body = stream.FromString(body)
	if contentType != "" {
		r.Header.Add("content-type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "query" {
			r.Query = header[i+1]
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	return &auth.Call{Request: r, Machine: w.machine, MachineID: w.machine.ID, MaxBody: 25 << 20}
}

func (w *world) get(id string) *auth.Call {
	c := w.call("", "")
	c.Method, c.Body, c.Params = "GET", nil, []string{id}
	return c
}

// outcome is what the client sees: "200 body" or "status code".
func outcome(resp *httpmsg.Response, err error) string {
	var e *apierr.Error
	switch {
	case errors.As(err, &e):
		s := fmt.Sprintf("%d %s", e.Status, e.Code)
		if e.NoRetry {
			s += " no-retry"
		}
		return s
	case err != nil:
		return "500 " + err.Error()
	}
	body, err := stream.ReadAll(resp.Body, 1<<30)
	if err != nil {
		return "cut"
	}
	return fmt.Sprintf("%d %s", resp.Status, body)
}

// create sends a JSON creation and returns what the client sees.
func (w *world) create(body string, header ...string) (string, *auth.Call) {
	c := w.call("application/json", body, header...)
	resp, err := w.Generations(context.Background(), c)
	if err == nil {
		for _, after := range resp.After {
			after(context.Background())
		}
	}
	return outcome(resp, err), c
}

func (w *world) poll(id string) string {
	return outcome(w.Get(context.Background(), w.get(id)))
}

// took returns the accounts that the upstream saw, "aab".
func (w *world) took() string {
	var b strings.Builder
	for _, s := range w.seen {
		if parts := strings.Split(s.Key, "-"); len(parts) == 3 {
			b.WriteString(parts[1])
		} else {
			b.WriteString("?")
		}
	}
	return b.String()
}

var _ = provider.Lookup
