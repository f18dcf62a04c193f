package storage_test

import (
	"slices"
	"testing"
	"time"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
)

// buffer is a Buffer that asks to be woken.
type buffer struct {
	wake     int64
	set      bool
	written  int
	reloaded int
}

func (b *buffer) Reloaded()             { b.reloaded++ }
func (b *buffer) Written()              { b.written++ }
func (b *buffer) WakeAt() (int64, bool) { return b.wake, b.set }

// existing returns the storage of a machine that is pruned in an hour, and a turn
// of it.
func existing(t *testing.T) (*objects.Storage, *storage.Tx) {
	t.Helper()
	st := objects.NewStorage()
	tx := at(st, noon)
	tx.Create("demo")
	tx.Meta.Dirty, tx.Meta.Unregistered, tx.Meta.PruneAt = false, false, noon+hour
	commit(t, st, tx)
	return st, at(st, noon)
}

func TestAlarmIsSetForTheBuffer(t *testing.T) {
	for _, tt := range []struct {
		name     string
		buffer   buffer
		noAlarm  bool // of the machine itself
		rearmed  bool
		want     int64
		setAgain bool
	}{
		{"nothing buffered", buffer{}, false, false, noon + hour, false},
		{"earlier than the machine's", buffer{wake: noon + 5}, false, false, noon + 5, true},
		{"set already", buffer{wake: noon + 5, set: true}, false, false, noon + hour, false},
		{"set already, but it has run", buffer{wake: noon + 5, set: true}, false, true, noon + 5, true},
		{"at the machine's", buffer{wake: noon + hour}, false, false, noon + hour, false},
		{"later than the machine's", buffer{wake: noon + hour + 1}, false, false, noon + hour, false},
		{"without one of the machine", buffer{wake: noon + 5}, true, false, noon + 5, true},
		{"without any", buffer{}, true, false, noon + hour, false},
		{"the machine's has run", buffer{}, false, true, noon + hour, true},
	} {
		st, tx := existing(t)
		if tt.noAlarm {
			tx.Meta.Deleted, tx.Meta.AlarmAt = true, 0
			st.Rows["meta"] = storage.Encode(tx.Meta)
			tx = at(st, noon)
		}
		keys := written(st)
		tx.Buffer, tx.Rearmed = &tt.buffer, tt.rearmed
		commit(t, st, tx)
		if again := slices.Contains(*keys, "alarm"); st.AlarmAt() != tt.want || again != tt.setAgain {
			t.Errorf("%s: %d ms from now, set again %v; want %d, %v", tt.name, st.AlarmAt()-noon, again, tt.want-noon, tt.setAgain)
		}
	}
}

// Reports wait for a turn that writes anyway, or for the one that flushes them.
func TestBufferedChangesAreWrittenWithOthers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		settles bool
		after   func(tx *storage.Tx)
		written bool
	}{
		{"nothing else", true, func(*storage.Tx) {}, false},
		{"a row", true, func(tx *storage.Tx) { tx.Put("job:a", 1) }, true},
		{"a removed row", true, func(tx *storage.Tx) { tx.Del("job:b") }, true},
		{"the machine's own row", true, func(tx *storage.Tx) { tx.Meta.Name = "renamed" }, true},
		{"a change of the state", true, func(tx *storage.Tx) { tx.Observe() }, true},
		{"a flush", true, func(tx *storage.Tx) { tx.Flush = true }, true},
		{"not from the buffer", false, func(*storage.Tx) {}, true},
	} {
		st, tx := existing(t)
		b := &buffer{}
		tx.Buffer = b
		tx.Put(storage.HealthPrefix+"a", storage.Health{At: noon})
		if tt.settles {
			tx.Settled()
		}
		tt.after(tx)
		keys := commit(t, st, tx)
		if stored := slices.Contains(keys, storage.ActivityRow); stored != tt.written || b.written == 1 != tt.written {
			t.Errorf("%s: stored %v, the buffer was told %d times", tt.name, stored, b.written)
		}
		if tx.Reload(time.UnixMilli(noon + 1)); b.reloaded != 1 {
			t.Errorf("%s: %d new turns", tt.name, b.reloaded)
		}
	}
}

func TestStateMovesOncePerTurn(t *testing.T) {
	st, tx := existing(t)
	tx.Observe()
	if tx.Observe(); tx.Meta.Observed != noon {
		t.Errorf("moved to %d", tx.Meta.Observed)
	}
	commit(t, st, tx)
	tx.Observe()
	if commit(t, st, tx); tx.Meta.Observed != noon+1 { // in the same millisecond
		t.Errorf("moved to noon%+d", tx.Meta.Observed-noon)
	}
	if late := at(st, noon-minute); late.Meta.Observed != noon+1 {
		t.Errorf("stored %d", late.Meta.Observed)
	} else if late.Observe(); late.Meta.Observed != noon+2 { // the clock went back
		t.Errorf("moved to noon%+d", late.Meta.Observed-noon)
	}
}

// A write that failed must not leave its changes in the common row.
func TestFailedWriteChangesNothing(t *testing.T) {
	st, tx := existing(t)
	tx.Put("error:a", "first")
	commit(t, st, tx)
	tx.Put("error:a", "second")
	st.Fault = func(string) bool { return true }
	if tx.Commit() == nil {
		t.Fatal("stored")
	}
	st.Fault = nil
	st.Rollback()
	tx.Reload(time.UnixMilli(noon))
	var got string
	if tx.Load("error:a", &got); got != "first" {
		t.Errorf("got %q", got)
	}
}
