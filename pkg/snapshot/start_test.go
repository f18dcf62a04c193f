package snapshot

import (
	"context"
	"slices"
	"testing"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
)

// starting is an object and a KV that note in which order they are used.
type starting struct {
	*world
	events []string
}

func (s *starting) Call(ctx context.Context, machineID, op string, body []byte) (int, []byte, error) {
	return s.Start(ctx, machineID, op, body).Wait()
}

func (s *starting) Start(ctx context.Context, machineID, op string, body []byte) rpc.Pending {
	s.events = append(s.events, "ask the object")
	return &begun{s, func() (int, []byte, error) { return s.obj.Call(ctx, machineID, op, body) }}
}

type begun struct {
	s      *starting
	answer func() (int, []byte, error)
}

func (b *begun) Wait() (int, []byte, error) {
	b.s.events = append(b.s.events, "wait for the object")
	return b.answer()
}

func (s *starting) Get(ctx context.Context, key string) ([]byte, error) {
	s.events = append(s.events, "read KV")
	return s.kv.Get(ctx, key)
}

func (s *starting) Put(ctx context.Context, key string, value []byte) error {
	return s.kv.Put(ctx, key, value)
}

func (s *starting) Delete(ctx context.Context, key string) error { return s.kv.Delete(ctx, key) }

func TestUnknownMachineIsAskedForAtBothPlacesAtOnce(t *testing.T) {
	s := &starting{world: newWorld(t)}
	s.cache.Object, s.cache.KV = s, s
	s.publish(3)
	s.obj.state.Cooldowns = []store.Cooldown{{ConnectionID: "c", Until: s.now.UnixMilli() + 9000, Since: s.now.UnixMilli()}}
	s.want("first", 3, 1, 1)
	if want := []string{"ask the object", "read KV", "wait for the object"}; !slices.Equal(s.events, want) {
		t.Errorf("%q, want %q", s.events, want)
	}
	if last := s.obj.Calls[0]; last != `snapshot {"have":0,"confirm":true}` {
		t.Errorf("asked %s", last)
	}
	m, _ := s.cache.Get(context.Background(), mid)
	if m.State("c", "").Until == 0 || m.Observed != 3 {
		t.Errorf("the state of the object is missing: %+v", m.Machine)
	}
}

// A key that was revoked after the last publication is refused although KV still
// has it.
func TestOldReplicaDoesNotAdmitARevokedKey(t *testing.T) {
	w := newWorld(t)
	w.publish(3)
	w.kv.Stale(true)
	w.now = w.now.Add(time.Minute)
	w.publish(4)
	w.want("the object has another generation", 4, 1, 2)

	w = newWorld(t)
	w.publish(3)
	w.now = w.now.Add(time.Minute)
	w.obj.down = true
	w.want("the object is silent", -503, 1, 1)
}

// An answer with the state alone changes what is known of the accounts, and keeps
// the configuration.
func TestStateIsReplacedWithoutTheConfiguration(t *testing.T) {
	w := newWorld(t)
	w.publish(3)
	w.want("first", 3, 1, 1)
	m, _ := w.cache.Get(context.Background(), mid)
	observe := func(observed int64, s rpc.State) {
		w.obj.state.Observed, w.obj.state.Cooldowns, w.obj.state.Limited = observed, s.Cooldowns, s.Limited
		w.now = w.now.Add(6 * time.Second)
		w.revalidate("state", 1)
	}
	now := w.now.UnixMilli()
	observe(9, rpc.State{Cooldowns: []store.Cooldown{{ConnectionID: "c", Until: now + 60_000, Since: now}}, Limited: []store.LimitedKey{{KeyID: "k", Until: now + 60_000}}})
	if again, _ := w.cache.Get(context.Background(), mid); again != m {
		t.Fatal("the configuration was replaced")
	}
	if m.State("c", "").Until != now+60_000 || m.LimitedUntil(&store.Key{ID: "k"}) != now+60_000 {
		t.Errorf("state %+v, limited until %d", m.State("c", ""), m.LimitedUntil(&store.Key{ID: "k"}))
	}
	// The object lost what it had not written.
	observe(5, rpc.State{})
	if m.State("c", "").Until != 0 || m.LimitedUntil(&store.Key{ID: "k"}) != 0 || m.Observed != 5 {
		t.Errorf("after a loss: %+v", m.Machine)
	}
}
