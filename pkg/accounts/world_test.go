package accounts

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
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

const mid = sealed.MachineID

// world is a machine with accounts, an upstream that counts, and an object.
type world struct {
	testing.TB
	*fake.Clock
	*fake.Upstream
	pool    *Pool
	machine *snapshot.Machine
	keys    *store.Keyring
	// script has the answers for each credential, in order; the last one
	// is repeated.
	script map[string][]fake.Answer
	object *objects.Script
	req    *httpmsg.Request
	trace  Trace
	// meanwhile runs when the upstream has been called, before it answers.
	meanwhile func(cred string)
}

func newWorld(t testing.TB, conns ...store.Connection) *world {
	clock := fake.NewClock(time.UnixMilli(1_800_000_000_000))
	w := &world{
		Clock: clock, Upstream: &fake.Upstream{Clock: clock}, keys: sealed.Keys(t),
		script: map[string][]fake.Answer{}, object: &objects.Script{MachineID: mid},
	}
	w.TB = t
	w.Answer = w.scripted
	rec := &store.Machine{Version: 1, ID: mid, Generation: 1, Connections: conns}
	w.use(rec)
	w.pool = &Pool{Doer: w.Upstream, Object: w.object, Keys: w.keys, Now: w.Now}
	w.req = &httpmsg.Request{Start: w.Now()}
	return w
}

// use makes a snapshot of a record, as the cache does.
func (w *world) use(rec *store.Machine) {
	w.machine = snapshot.New(rec)
}

func (w *world) seal(id, field, plain string) secret.Sealed {
	return sealed.Field(w.TB, w.keys, id, field, plain)
}

// add adds openai connections with the API key of key.
func (w *world) add(conns ...store.Connection) *world {
	for i := range conns {
		c := &conns[i]
		c.Provider = "openai"
		if c.Secrets == nil {
			c.Secrets = sealed.APIKey(w.TB, w.keys, c.ID, key(c.ID))
		}
	}
	rec := *w.machine.Machine
	rec.Connections = append(rec.Connections, conns...)
	w.use(&rec)
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

// credential returns the credential of a call.
func credential(s *fake.Seen) string {
	return strings.TrimPrefix(s.Header.Get("authorization"), "Bearer ")
}

// creds returns the credentials of the calls that the upstream saw.
func (w *world) creds() (list []string) {
	for _, s := range w.Seen {
		list = append(list, credential(s))
	}
	return list
}

// scripted returns the next answer of the script.
func (w *world) scripted(s *fake.Seen) fake.Answer {
	cred := credential(s)
	if w.meanwhile != nil {
		w.meanwhile(cred)
	}
	if len(w.script[cred]) == 0 {
		cred = "*"
	}
	list := w.script[cred]
	if len(list) == 0 {
		return fake.Answer{Body: `{}`}
	}
	if len(list) > 1 {
		w.script[cred] = list[1:]
	}
	return list[0]
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
	w.Seen = nil
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
	for _, s := range w.creds() {
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
		return max(0, time.Duration(s.Until-w.Now().UnixMilli())*time.Millisecond)
	}
	return left(w.machine.State(id, "gpt")), left(w.machine.State(id, ""))
}
