package snapshot

import (
	"context"
	"slices"
	"testing"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
)

func TestUnknownMachineIsAskedForAtBothPlacesAtOnce(t *testing.T) {
	w := newWorld(t)
	w.publish(3)
	w.obj.state.Cooldowns = []store.Cooldown{{ConnectionID: "c", Until: w.now.UnixMilli() + 9000, Since: w.now.UnixMilli()}}
	var reads []int // of KV, when the object was asked, and when its answer was waited for
	note := func() { reads = append(reads, len(w.kv.Reads())) }
	w.obj.Started = note
	w.obj.Answer = func(op string, body []byte) (int, []byte, error) {
		note()
		return w.obj.answer(op, body)
	}
	w.want("first", 3, 1, 1)
	if !slices.Equal(reads, []int{0, 1}) {
		t.Errorf("KV was read %v times, want 0 and 1", reads)
	}
	if last := w.obj.Calls[0]; last != `snapshot {"have":0,"confirm":true}` {
		t.Errorf("asked %s", last)
	}
	m, _ := w.cache.Get(context.Background(), mid)
	if m.State("c", "").Until == 0 || m.Observed() != 3 {
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
		w.obj.state.Observed, w.obj.state.Cooldowns = observed, s.Cooldowns
		w.now = w.now.Add(6 * time.Second)
		w.revalidate("state", 1)
	}
	now := w.now.UnixMilli()
	observe(9, rpc.State{Cooldowns: []store.Cooldown{{ConnectionID: "c", Until: now + 60_000, Since: now}}})
	if again, _ := w.cache.Get(context.Background(), mid); again != m {
		t.Fatal("the configuration was replaced")
	}
	if m.State("c", "").Until != now+60_000 {
		t.Errorf("state %+v", m.State("c", ""))
	}
	// The object lost what it had not written.
	observe(5, rpc.State{})
	if m.State("c", "").Until != 0 || m.Observed() != 5 {
		t.Errorf("after a loss: %+v", m.Machine)
	}
}
