package accounts

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

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

// answer is one scripted answer of the upstream.
type answer struct {
	status int
	header httpmsg.Header
	body   string
	err    error
}

// world is a machine with accounts, an upstream that counts, and an object.
type world struct {
	*testing.T
	pool    *Pool
	machine *snapshot.Machine
	keys    *store.Keyring
	now     time.Time
	// script has the answers for each credential, in order; the last one
	// is repeated.
	script map[string][]answer
	seen   []string // the credentials of the calls that the upstream saw
	reqs   []*upstream.Request
	calls  []string // of the object
	object func(op string, body []byte) (int, []byte, error)
	req    *httpmsg.Request
	trace  Trace
	// meanwhile runs when the upstream has been called, before it answers.
	meanwhile func(cred string)
}

func newWorld(t testing.TB, conns ...store.Connection) *world {
	keys, err := store.NewKeyring(strings.Repeat("k", 32))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{keys: keys, now: time.UnixMilli(1_800_000_000_000), script: map[string][]answer{}}
	w.T, _ = t.(*testing.T)
	rec := &store.Machine{Version: 1, ID: mid, Generation: 1, Connections: conns}
	w.machine = snapshot.New(rec)
	w.pool = &Pool{Doer: w, Object: w, Keys: keys, Now: func() time.Time { return w.now }}
	w.req = &httpmsg.Request{Start: w.now}
	return w
}

// account is an openai connection with an API key "key-<id>-0123456789".
func (w *world) seal(id, field, plain string) secret.Sealed {
	s, err := w.keys.Seal(mid, id, field, secret.New(plain))
	if err != nil {
		panic(err)
	}
	return s
}

func (w *world) add(conns ...store.Connection) *world {
	for i := range conns {
		c := &conns[i]
		c.Provider = "openai"
		if c.Secrets == nil {
			c.Secrets = map[string]secret.Sealed{store.APIKey: w.seal(c.ID, store.APIKey, key(c.ID))}
		}
	}
	rec := *w.machine.Machine
	rec.Connections = append(rec.Connections, conns...)
	w.machine = snapshot.New(&rec)
	return w
}

func key(id string) string { return "key-" + id + "-0123456789" }

// accounts returns connections a, b, … in this order.
func accounts(ids string) (list []store.Connection) {
	for i, id := range ids {
		list = append(list, store.Connection{ID: string(id), Priority: i})
	}
	return list
}

func (w *world) Start(_ context.Context, req *upstream.Request) upstream.Pending {
	cred := strings.TrimPrefix(req.Header.Get("authorization"), "Bearer ")
	w.seen = append(w.seen, cred)
	w.reqs = append(w.reqs, req)
	if w.meanwhile != nil {
		w.meanwhile(cred)
	}
	list := w.script[cred]
	if len(list) == 0 {
		list = w.script["*"]
	}
	if len(list) == 0 {
		return pending{status: 200, body: `{}`}
	}
	a := list[0]
	if len(list) > 1 {
		if w.script[cred] != nil {
			w.script[cred] = list[1:]
		} else {
			w.script["*"] = list[1:]
		}
	}
	return pending(a)
}

type pending answer

func (p pending) Wait() (*upstream.Response, error) {
	if p.err != nil {
		return nil, p.err
	}
	return &upstream.Response{Status: p.status, Header: p.header, Body: stream.FromString(p.body)}, nil
}

func (w *world) Call(_ context.Context, machineID, op string, body []byte) (int, []byte, error) {
	w.calls = append(w.calls, op+" "+string(body))
	if machineID != mid {
		panic(machineID)
	}
	if w.object == nil {
		return 0, nil, errors.New("object unreachable")
	}
	return w.object(op, body)
}

var openai = &provider.Descriptor{ID: "openai", Alias: "openai", BaseURL: "https://up.example/v1"}

func (w *world) target(model string) routing.Target {
	return routing.Target{Provider: openai, Alias: "openai", Model: model, Connections: w.machine.Active("openai")}
}

func (w *world) call() *Call {
	return &Call{
		Machine: w.machine, Request: w.req, Trace: &w.trace, Targets: []routing.Target{w.target("gpt")},
		Build: func(to *routing.Target, conn *store.Connection, _ *Attempt) (*Attempt, error) {
			return &Attempt{Request: upstream.Request{Method: "POST", URL: to.Provider.BaseURL + "/x", Body: stream.FromString("{}")}}, nil
		},
	}
}

func (w *world) send() (*Result, *apierr.Error) { return w.sendCall(w.call()) }

func (w *world) sendCall(c *Call) (*Result, *apierr.Error) {
	w.seen, w.reqs = nil, nil
	res, err := w.pool.Send(context.Background(), c)
	var e *apierr.Error
	if err != nil && !errors.As(err, &e) {
		panic(err)
	}
	return res, e
}

// saw returns the accounts that the upstream saw, "aab".
func (w *world) saw() string {
	var b strings.Builder
	for _, s := range w.seen {
		if parts := strings.Split(s, "-"); len(parts) == 3 {
			b.WriteString(parts[1])
		} else {
			b.WriteString("<" + s + ">")
		}
	}
	return b.String()
}

// cooling returns how long an account cools down, for the model and as a whole.
func (w *world) cooling(id string) (model, whole time.Duration) {
	left := func(s snapshot.State) time.Duration {
		return max(0, time.Duration(s.Until-w.now.UnixMilli())*time.Millisecond)
	}
	return left(w.machine.State(id, "gpt")), left(w.machine.State(id, ""))
}
