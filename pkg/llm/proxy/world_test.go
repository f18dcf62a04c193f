package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

const mid = "abcdefgh01234567"

// answer is one scripted answer of an upstream: a body in pieces, and how it
// ends (nil is a clean end).
type answer struct {
	status int
	header httpmsg.Header
	pieces []string
	end    error
	fail   error // instead of an answer
}

func events(body string) answer {
	return answer{status: 200, header: httpmsg.Header{{Name: "content-type", Value: "text/event-stream"}}, pieces: []string{body}}
}

func jsonOf(status int, body string) answer {
	return answer{status: status, header: httpmsg.Header{{Name: "content-type", Value: "application/json"}}, pieces: []string{body}}
}

// world is a machine with connections, and an upstream that follows a script.
type world struct {
	testing.TB
	dialog  *Proxy
	pool    *accounts.Pool
	machine *snapshot.Machine
	now     time.Time
	script  func(r *upstream.Request) answer
	seen    []*upstream.Request
	bodies  []string
	noted   []usage.Row   // see rows
	skew    time.Duration // of the clock, for a report
	open    int           // bodies that are neither ended nor closed
	call    *auth.Call
	query   string // of the client's address
}

// provided is a connection to a provider under a prefix, with the key
// key-<prefix>-0123456789.
type provided struct {
	prefix, provider, base string
	priority               int
	vars                   map[string]string
}

var usual = []provided{
	{prefix: "up", provider: "openai-compatible-0123abcd", base: "https://up.example/v1"},
	{prefix: "an", provider: "anthropic-compatible-0123abcd", base: "https://an.example/v1"},
	{prefix: "oa", provider: "openai"}, {prefix: "cl", provider: "anthropic"},
	{prefix: "ge", provider: "gemini"}, {prefix: "co", provider: "cohere"},
	{prefix: "br", provider: "bedrock", vars: map[string]string{"region": "us-east-1"}},
	{prefix: "mo", provider: "moonshot"}, {prefix: "dg", provider: "deepgram"}, {prefix: "mi", provider: "mistral"},
}

func newWorld(t testing.TB, list ...provided) *world {
	t.Helper()
	keys, err := store.NewKeyring(strings.Repeat("k", 32))
	if err != nil {
		t.Fatal(err)
	}
	rec := &store.Machine{Version: 1, ID: mid, Generation: 1}
	for _, p := range list {
		id := "c-" + p.prefix
		sealed, err := keys.Seal(mid, id, store.APIKey, secret.New("key-"+p.prefix+"-0123456789"))
		if err != nil {
			t.Fatal(err)
		}
		prefix, _, _ := strings.Cut(p.prefix, "#")
		rec.Connections = append(rec.Connections, store.Connection{
			ID: id, Provider: p.provider, Priority: p.priority, Secrets: map[string]secret.Sealed{store.APIKey: sealed},
			Data: store.ProviderData{BaseURL: p.base, Prefix: prefix, Vars: p.vars},
		})
	}
	w := &world{TB: t, now: time.UnixMilli(1_800_000_000_000), machine: snapshot.New(rec)}
	now := func() time.Time { return w.now }
	w.pool = &accounts.Pool{Doer: w, Object: w, Keys: keys, Now: now}
	w.dialog = &Proxy{Router: routing.Router{}, Accounts: w.pool, Now: now}
	return w
}

// Call is the machine's object, which adds up the usage of reports.
func (w *world) Call(_ context.Context, _, op string, body []byte) (int, []byte, error) {
	var report struct{ Usage []usage.Row }
	if err := json.Unmarshal(body, &report); err != nil || op != "report" {
		return 0, nil, errors.New("object unreachable")
	}
	for _, row := range report.Usage {
		w.noted = usage.Add(w.noted, row)
	}
	return 200, []byte(`{}`), nil
}

// rows returns the usage that was recorded, a row for each account and model.
func (w *world) rows() []usage.Row {
	now := w.now
	w.skew += 2 * time.Second // a machine's usage is reported once a second
	w.now = now.Add(w.skew)
	w.pool.Flush(context.Background(), w.machine)
	w.now = now
	return w.noted
}

// attempts returns the number of recorded attempts.
func (w *world) attempts() (n int64) {
	for _, r := range w.rows() {
		n += r.Requests
	}
	return n
}

func (w *world) Start(_ context.Context, r *upstream.Request) upstream.Pending {
	w.seen = append(w.seen, r)
	raw, err := stream.ReadAll(r.Body, 1<<30)
	if err != nil {
		w.Fatal(err)
	}
	w.bodies = append(w.bodies, string(raw))
	return pending{w, r, w.script(r)}
}

type pending struct {
	w *world
	r *upstream.Request
	a answer
}

// Wait behaves as the platform does: a body asked for in memory is whole or an
// error.
func (p pending) Wait() (*upstream.Response, error) {
	if p.a.fail != nil {
		return nil, p.a.fail
	}
	resp := &upstream.Response{Status: p.a.status, Header: p.a.header}
	if p.r.MaxBody > 0 {
		if p.a.end != nil {
			return nil, upstream.ErrNetwork
		}
		resp.Body = stream.FromString(strings.Join(p.a.pieces, ""))
		return resp, nil
	}
	p.w.open++
	resp.Body = &body{w: p.w, pieces: p.a.pieces, end: p.a.end}
	return resp, nil
}

// body returns one piece for each read.
type body struct {
	w      *world
	pieces []string
	end    error
	closed bool
}

func (b *body) Read(d []byte) (int, error) {
	if len(b.pieces) == 0 {
		b.Close()
		if b.end != nil {
			return 0, b.end
		}
		return 0, io.EOF
	}
	n := copy(d, b.pieces[0])
	if b.pieces[0] = b.pieces[0][n:]; b.pieces[0] == "" {
		b.pieces = b.pieces[1:]
	}
	return n, nil
}

func (b *body) Close() error {
	if !b.closed {
		b.closed = true
		b.w.open--
	}
	return nil
}

// ask sends a client's request.
func (w *world) ask(d llm.Dialect, raw string, header ...httpmsg.Field) (*Result, error) {
	w.Helper()
	a, err := ReadRequest(d, []byte(raw))
	if err != nil {
		return nil, err
	}
	return w.send(a, header...)
}

func (w *world) send(a *Request, header ...httpmsg.Field) (*Result, error) {
	route := [...]string{"/v1/chat/completions", "/v1/responses", "/v1/messages"}[a.Dialect]
	w.call = &auth.Call{
		Request: &httpmsg.Request{ID: "req_1", Method: "POST", Path: route, Query: w.query, Header: header, Start: w.now, Route: route},
		Trace:   accounts.Trace{KeyID: "k1"},
		Machine: w.machine, MachineID: mid, MaxBody: 32 << 20,
	}
	return w.dialog.Answer(context.Background(), w.call, a)
}

// text reads a client's answer to its end.
func (w *world) text(r *Result) string {
	w.Helper()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		w.Fatal(err)
	}
	return string(raw)
}

func status(err error) int {
	var e *apierr.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}
