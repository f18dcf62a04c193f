package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/objects"
	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

const mid = "abcdefgh01234567"

// object is a scripted Machine object with a state.
type object struct {
	*objects.Script
	state *store.Machine // nil: no such machine
	down  bool
	adopt func(doc gjson.Result) *store.Machine
	raw   string // answered to "snapshot" when set
}

func newObject() *object {
	o := &object{Script: &objects.Script{}}
	o.Answer = o.answer
	return o
}

func (o *object) answer(op string, body []byte) (int, []byte, error) {
	id := o.Called[len(o.Called)-1]
	if o.down {
		return 0, nil, objects.ErrUnreachable
	}
	switch {
	case op == "adopt" && o.adopt == nil:
		return 422, []byte(`{}`), nil
	case op == "adopt":
		if m := o.adopt(gjson.GetBytes(body, "doc")); m != nil {
			o.state = m
			return 200, []byte(`{}`), nil
		}
		return 422, []byte(`{}`), nil
	case op == "exists" && o.state != nil && o.state.ID == id:
		return 200, []byte(`{}`), nil
	case op == "exists":
		return 404, nil, nil
	case op != "snapshot":
		return 400, nil, nil
	case o.raw != "":
		return 200, []byte(o.raw), nil
	case o.state == nil || o.state.ID != id:
		return 404, nil, nil
	}
	same := rpc.Same{Same: gjson.GetBytes(body, "have").Int() == o.state.Generation, Generation: o.state.Generation, Observed: o.state.Observed}
	if same.Same && gjson.GetBytes(body, "observed").Int() == same.Observed {
		b, _ := json.Marshal(same)
		return 200, b, nil
	}
	if same.Same || gjson.GetBytes(body, "confirm").Bool() {
		same.State = &rpc.State{Cooldowns: o.state.Cooldowns, Refusals: o.state.Refusals}
		b, _ := json.Marshal(same)
		return 200, b, nil
	}
	b, _ := json.Marshal(o.state)
	return 200, b, nil
}

type world struct {
	*testing.T
	kv    *fake.KV
	obj   *object
	cache *Cache
	now   time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, kv: fake.NewKV(), obj: newObject(), now: time.UnixMilli(1_800_000_000_000)}
	w.cache = &Cache{KV: w.kv, Object: w.obj, Now: func() time.Time { return w.now }}
	return w
}

func (w *world) machine(gen int64) *store.Machine {
	return &store.Machine{Version: 1, ID: mid, Generation: gen, Observed: gen, PublishedAt: w.now.UnixMilli()}
}

// publish returns the object a state and replicates it.
func (w *world) publish(gen int64) {
	w.obj.state = w.machine(gen)
	replica := *w.obj.state
	replica.Observed = 0 // KV has the configuration only
	b, _ := json.Marshal(&replica)
	w.kv.Put(context.Background(), "machine:"+mid, b)
}

// want checks the generation that Get returns, -1 for ErrUnknown and -503 for
// unavailable, and what the loading cost.
func (w *world) want(what string, gen int64, reads, calls int) {
	w.Helper()
	r, c := len(w.kv.Reads()), len(w.obj.Calls)
	m, err := w.cache.Get(context.Background(), mid)
	w.check(what, m, err, gen)
	if r, c = len(w.kv.Reads())-r, len(w.obj.Calls)-c; r != reads || c != calls {
		w.Errorf("%s: %d reads and %d calls, want %d and %d", what, r, c, reads, calls)
	}
}

func (w *world) check(what string, m *Machine, err error, gen int64) {
	w.Helper()
	var e *apierr.Error
	got := int64(0)
	switch {
	case errors.Is(err, ErrUnknown):
		got = -1
	case errors.As(err, &e):
		got = -int64(e.Status)
	case err == nil:
		got = m.Generation
	}
	if got != gen {
		w.Errorf("%s: got %d (%v), want %d", what, got, err, gen)
	}
}

func (w *world) revalidate(what string, calls int) {
	w.Helper()
	c := len(w.obj.Calls)
	w.cache.Revalidate(context.Background(), mid)
	if c = len(w.obj.Calls) - c; c != calls {
		w.Errorf("%s: %d calls, want %d", what, c, calls)
	}
}

func TestFreshnessOfASnapshot(t *testing.T) {
	w := newWorld(t)
	w.publish(3)
	w.want("absent is confirmed", 3, 1, 1)
	w.want("fresh is used", 3, 0, 0)
	w.now = w.now.Add(4900 * time.Millisecond)
	w.revalidate("fresh is not revalidated", 0)
	w.publish(4)
	w.now = w.now.Add(200 * time.Millisecond)
	w.want("after 5 s still used", 3, 0, 0)
	w.revalidate("after the answer", 1)
	w.want("the newer one", 4, 0, 0)
	w.now = w.now.Add(59 * time.Second)
	w.publish(5)
	w.want("under 60 s still used", 4, 0, 0)
	w.now = w.now.Add(2 * time.Second)
	w.want("over 60 s confirmed first", 5, 0, 1)
	reads := len(w.kv.Reads())
	w.revalidate("KV is asked after the answer", 0)
	w.revalidate("once a minute", 0)
	if n := len(w.kv.Reads()) - reads; n != 1 {
		t.Errorf("KV was read %d times", n)
	}
}

// A snapshot that an engine confirms is as fresh as one that the object has confirmed, unless it
// was older than the state that the engine has compared with.
func TestUnchangedSnapshotIsConfirmed(t *testing.T) {
	w := newWorld(t)
	w.publish(3)
	w.want("load", 3, 1, 1)
	asked := w.now
	w.now = w.now.Add(59 * time.Second)
	w.cache.Unchanged(asked.Add(time.Second), w.now) // of changes since a later time
	w.revalidate("not confirmed", 1)
	since := w.now
	w.now = w.now.Add(59 * time.Second)
	w.cache.Unchanged(since, w.now)
	w.kv.Down(true)
	w.obj.down = true
	w.now = w.now.Add(4 * time.Second)
	w.revalidate("confirmed, so fresh", 0)
	w.now = w.now.Add(55 * time.Second)
	w.want("confirmed, so in use", 3, 0, 0)
	w.cache.ChangedElsewhere(mid)
	w.cache.Unchanged(w.now.Add(-time.Second), w.now)
	w.want("changed", -503, 1, 1)
}

func TestOneRequestRevalidates(t *testing.T) {
	w := newWorld(t)
	w.publish(3)
	w.want("load", 3, 1, 1)
	w.now = w.now.Add(6 * time.Second)
	w.obj.down, w.obj.Calls = true, nil
	w.kv.Down(true)
	w.revalidate("first", 1)
	w.revalidate("second", 0)
	w.now = w.now.Add(11 * time.Second)
	w.revalidate("after the claim ran out", 1)
	w.want("failing to revalidate leaves it in use", 3, 0, 0)
}

func TestObjectDownReplicaUnder60s(t *testing.T) {
	w := newWorld(t)
	w.publish(3)
	w.obj.down = true
	w.now = w.now.Add(50 * time.Second)
	w.want("replica of 50 s", 3, 1, 1)
	w.now = w.now.Add(9 * time.Second)
	w.want("it ages from its publication", 3, 0, 0)
	w.now = w.now.Add(2 * time.Second)
	w.want("replica of 61 s", -503, 1, 1)
	w.obj.down = false
	w.want("the object is back", 3, 0, 1)
}

func TestObjectDownAndAReplicaFromTheFuture(t *testing.T) {
	w := newWorld(t)
	w.now = w.now.Add(time.Hour)
	w.publish(3)
	w.now = w.now.Add(-time.Hour)
	w.obj.down = true
	w.want("an hour ahead", -503, 1, 1)
	w.now = w.now.Add(time.Hour - time.Second)
	w.want("a second ahead", 3, 1, 1)
}

func TestKVDownObjectAlone(t *testing.T) {
	w := newWorld(t)
	w.publish(3)
	w.kv.Down(true)
	w.want("object alone", 3, 1, 2)
	w.obj.down = true
	w.now = w.now.Add(59 * time.Second)
	w.want("both down, last good snapshot", 3, 0, 0)
	w.now = w.now.Add(2 * time.Second)
	w.want("both down for too long", -503, 1, 1)
}

func TestStaleReplicaDoesNotHideTheObject(t *testing.T) {
	w := newWorld(t)
	w.publish(3)
	w.kv.Stale(true)
	w.publish(9)
	w.want("absent", 9, 1, 2) // the object does not confirm the replica
	w.now = w.now.Add(6 * time.Second)
	w.revalidate("stale for ever", 1)
	w.want("keeps the newer one", 9, 0, 0)
	if last := w.obj.Calls[len(w.obj.Calls)-1]; last != `snapshot {"have":9,"observed":9}` {
		t.Errorf("asked %s", last)
	}
}

func TestUnknownMachineIsCached(t *testing.T) {
	w := newWorld(t)
	w.want("first", -1, 1, 1)
	w.want("again", -1, 0, 0)
	w.now = w.now.Add(5 * time.Second)
	w.publish(1)
	w.want("after 5 s", 1, 1, 1)
	w.obj.state = nil
	w.now = w.now.Add(6 * time.Second)
	w.revalidate("deleted", 1)
	w.want("deleted", -1, 0, 0)
	w.publish(2)
	w.cache.Invalidate(mid)
	w.want("created again here", 2, 0, 1)
}

func TestReplicaOfAnotherMachineIsRefused(t *testing.T) {
	w := newWorld(t)
	var lines []string
	w.cache.Log = func(l string) { lines = append(lines, l) }
	for _, doc := range []string{
		`{"v":1,"machineId":"zzzzzzzz01234567","generation":9,"publishedAt":1800000000000}`,
		`{"v":2,"machineId":"` + mid + `","generation":9,"publishedAt":1800000000000}`,
		`{"v":1,"machineId":"` + mid + `","generation":"nine"}`,
		`{"v":1,`, `null`, `[]`,
	} {
		w.kv.Put(context.Background(), "machine:"+mid, []byte(doc))
		w.obj.down = true
		w.want(doc, -503, 1, map[bool]int{true: 3, false: 1}[doc == "null" || doc == "[]"])
	}
	if len(lines) != 4 || strings.Contains(strings.Join(lines, ""), "nine") {
		t.Errorf("log: %q", lines)
	}
	w.obj.down = false
	w.obj.raw = `{"v":1,"machineId":"zzzzzzzz01234567","generation":9}`
	w.want("from the object", -503, 1, 3)
}

func TestSeedIsHandedToTheObject(t *testing.T) {
	w := newWorld(t)
	w.obj.adopt = func(doc gjson.Result) *store.Machine {
		if !doc.Get("connections").Exists() {
			return nil
		}
		m := w.machine(1)
		m.Keys = []store.Key{{ID: "k"}}
		return m
	}
	w.kv.Put(context.Background(), "machine:"+mid, []byte(`{"connection":[]}`))
	w.want("a refused seed makes no machine", -1, 1, 3)
	w.now = w.now.Add(6 * time.Second)
	w.kv.Put(context.Background(), "machine:"+mid, []byte(`{"connections":[],"apiKeys":["sk-x"]}`))
	w.want("adopted", 1, 1, 3)
	w.kv.Put(context.Background(), "machine:"+mid, []byte(`{"connections":[]}`))
	w.now = w.now.Add(6 * time.Second)
	w.revalidate("KV is asked once a minute", 1)
	w.now = w.now.Add(time.Minute)
	w.revalidate("a seed over a running machine is noticed", 2)
}

func TestConfirmAtMostOnceASecond(t *testing.T) {
	w := newWorld(t)
	w.publish(3)
	w.want("load", 3, 1, 1)
	w.publish(4)
	for range 3 {
		m, err := w.cache.Confirm(context.Background(), mid)
		w.check("confirm", m, err, 4)
	}
	if len(w.obj.Calls) != 2 {
		t.Errorf("%d calls, want 2", len(w.obj.Calls))
	}
	w.now = w.now.Add(time.Second)
	w.obj.down = true
	w.kv.Down(true)
	m, err := w.cache.Confirm(context.Background(), mid)
	w.check("nobody answers", m, err, 4)
}

func TestConcurrentMissesKeepTheNewerSnapshot(t *testing.T) {
	w := newWorld(t)
	w.publish(3)
	// The first call is answered with the state at its start, after another
	// request has loaded.
	w.obj.Answer = func(op string, body []byte) (int, []byte, error) {
		status, answer, err := w.obj.answer(op, body)
		if gjson.GetBytes(answer, "same").Exists() {
			w.obj.Answer = w.obj.answer
			w.publish(4)
			w.now = w.now.Add(time.Second)
			w.want("the quick one", 4, 1, 1)
		}
		return status, answer, err
	}
	m, err := w.cache.Get(context.Background(), mid)
	w.check("the slow one", m, err, 4)
	w.want("kept", 4, 0, 0)
}

func TestCacheIsBounded(t *testing.T) {
	w := newWorld(t)
	w.cache.Max = 3
	get := func(i int) {
		w.obj.state = &store.Machine{Version: 1, ID: fmt.Sprintf("abcdefgh%08d", i), Generation: 1}
		w.cache.Get(context.Background(), w.obj.state.ID)
	}
	for i := range 10 {
		get(0)
		get(i)
	}
	if len(w.cache.entries) != 3 {
		t.Fatalf("%d entries, want 3", len(w.cache.entries))
	}
	for _, i := range []int{0, 8, 9} {
		if w.cache.entries[fmt.Sprintf("abcdefgh%08d", i)] == nil {
			t.Errorf("machine %d is gone, the least recently used should be", i)
		}
	}
}

func TestBackwardClockForcesRevalidation(t *testing.T) {
	w := newWorld(t)
	w.publish(3)
	w.want("load", 3, 1, 1)
	w.now = w.now.Add(-time.Hour)
	w.want("an hour back", 3, 0, 1)
	w.want("settled", 3, 0, 0)
}

// Calling an object creates it.
func TestMachineMissingInKVCallsNoObject(t *testing.T) {
	w := newWorld(t)
	known := func(what string, want error, calls int) {
		t.Helper()
		before := len(w.obj.Calls)
		m, err := w.cache.Known(context.Background(), mid)
		if !errors.Is(err, want) || (m == nil) != (want != nil) || len(w.obj.Calls)-before != calls {
			t.Errorf("%s: got %v, %v after %d calls", what, m, err, len(w.obj.Calls)-before)
		}
	}
	known("made up", ErrUnknown, 0)
	known("again", ErrUnknown, 0)
	w.obj.state = w.machine(1)
	known("in the object alone", ErrUnknown, 0)
	w.cache.Invalidate(mid)
	known("made in this isolate", nil, 1)
	w = newWorld(t)
	w.publish(1)
	known("in KV", nil, 1)
	known("known here", nil, 0)
}

func TestWithoutKVTheObjectAloneIsAsked(t *testing.T) {
	w := newWorld(t)
	w.cache.KV = nil
	known := func(what string, want error, calls int) {
		t.Helper()
		before := len(w.obj.Calls)
		m, err := w.cache.Known(context.Background(), mid)
		if !errors.Is(err, want) || (m == nil) != (want != nil) || len(w.obj.Calls)-before != calls {
			t.Errorf("%s: got %v, %v after %d calls", what, m, err, len(w.obj.Calls)-before)
		}
	}
	known("made up", ErrUnknown, 1)
	if len(w.cache.entries) != 0 {
		t.Error("an id that was made up takes the place of a machine")
	}
	if _, err := w.cache.Get(context.Background(), mid); !errors.Is(err, ErrUnknown) {
		t.Errorf("Get of an unknown machine: %v", err)
	}
	w.obj.state = w.machine(1)
	known("created elsewhere", nil, 2)
	known("known here", nil, 0)
	w.obj.state = w.machine(2)
	w.now = w.now.Add(usableFor)
	if m, err := w.cache.Get(context.Background(), mid); err != nil || m.Generation != 2 {
		t.Errorf("a newer generation: %v, %v", m, err)
	}
	w.obj.down = true
	w.now = w.now.Add(usableFor)
	if _, err := w.cache.Get(context.Background(), mid); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("with the object down: %v", err)
	}
	w.cache = &Cache{Object: w.obj, Now: w.cache.Now}
	if _, err := w.cache.Known(context.Background(), mid); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown machine with the object down: %v", err)
	}
}

// While the storage is away a platform may let snapshots grow older, and no call waits for it.
func TestSnapshotIsUsedForAsLongAsThePlatformSays(t *testing.T) {
	w := newWorld(t)
	w.cache.KV = nil
	w.obj.state = w.machine(1)
	w.want("first", 1, 0, 1)
	usable := 15 * time.Minute
	w.cache.Usable = func() time.Duration { return usable }
	w.now, w.obj.down = w.now.Add(usable-time.Second), true
	w.want("without the storage", 1, 0, 0)
	usable, w.obj.down = usableFor, false
	w.obj.state = w.machine(2)
	w.want("the storage answers again", 2, 0, 1)
	w.now, w.obj.down = w.now.Add(usableFor), true
	if _, err := w.cache.Get(context.Background(), mid); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("for longer: %v", err)
	}
}

func TestSnapshotAskedForBeforeAChangeIsConfirmedAgain(t *testing.T) {
	w := newWorld(t)
	w.obj.state = w.machine(1)
	w.want("first", 1, 1, 2)
	w.now = w.now.Add(time.Minute + time.Second)
	w.obj.Answer = func(op string, body []byte) (int, []byte, error) {
		status, answer, err := w.obj.answer(op, body)
		w.now = w.now.Add(time.Millisecond)
		w.obj.state = w.machine(2) // by another instance, once the object has answered
		w.cache.ChangedElsewhere(mid)
		return status, answer, err
	}
	w.want("under way", 1, 0, 1)
	w.obj.Answer = w.obj.answer
	w.want("next", 2, 0, 1)
	w.want("then", 2, 0, 0)
	w.cache.ChangedElsewhere("0123456789unknown")
}
