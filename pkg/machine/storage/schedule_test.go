package storage_test

import (
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

const hour = 60 * minute

func TestPauseAfterFailedWritesDoublesUpToAMinute(t *testing.T) {
	for fails, want := range map[int]int64{0: 1000, 1: 2000, 2: 4000, 5: 32_000, 6: 60_000, 7: 60_000, 100: 60_000} {
		if got := storage.Backoff(fails); got != want {
			t.Errorf("%d failures: %d ms, want %d", fails, got, want)
		}
	}
}

// alarmOf returns the alarm of a turn at noon whose machine exists and is pruned
// in an hour, changed by change.
func alarmOf(t *testing.T, id string, change func(tx *storage.Tx)) (*storage.Tx, int64) {
	t.Helper()
	st := objects.NewStorage()
	tx := storage.Open(st, id, time.UnixMilli(noon), nil)
	tx.Meta.ID, tx.Meta.Generation, tx.Meta.PruneAt = id, 1, noon+hour
	change(tx)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	st.Flush()
	if st.AlarmAt() != tx.Meta.AlarmAt {
		t.Errorf("the alarm is set for %d, stored is %d", st.AlarmAt(), tx.Meta.AlarmAt)
	}
	return tx, tx.Meta.AlarmAt
}

func TestAlarmIsTheNextThatIsDue(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(tx *storage.Tx)
		want   int64
	}{
		{"pruning", func(*storage.Tx) {}, noon + hour},
		{"pruning for the first time", func(tx *storage.Tx) { tx.Meta.PruneAt = 0 }, noon + hour},
		{"pruning two hours ahead", func(tx *storage.Tx) { tx.Meta.PruneAt = noon + 2*hour }, noon + 2*hour},
		{"pruning after the clock went back", func(tx *storage.Tx) { tx.Meta.PruneAt = noon + 2*hour + 1 }, noon + hour},
		{"publishing", func(tx *storage.Tx) { tx.Meta.Dirty, tx.Meta.PutAt = true, noon-300 }, noon + 700},
		{"publishing after failures", func(tx *storage.Tx) { tx.Meta.Dirty, tx.Meta.PutAt, tx.Meta.PutFails = true, noon, 3 }, noon + 8000},
		{"publishing long ago", func(tx *storage.Tx) { tx.Meta.Dirty = true }, noon},
		{"publishing after the clock went back", func(tx *storage.Tx) { tx.Meta.Dirty, tx.Meta.PutAt = true, noon+hour }, noon + second},
		{"without replicas", func(tx *storage.Tx) { tx.Meta.Dirty, tx.Unpublished = true, true }, noon + hour},
		{"publishing while an alarm runs", func(tx *storage.Tx) { tx.Meta.Dirty, tx.Meta.RunUntil = true, noon+storage.AlarmSpare }, noon + storage.AlarmSpare},
		{"publishing after a killed run", func(tx *storage.Tx) { tx.Meta.Dirty, tx.Meta.RunUntil = true, noon-1 }, noon},
		{"a run after the clock went back", func(tx *storage.Tx) { tx.Meta.Dirty, tx.Meta.RunUntil = true, noon+storage.AlarmSpare+1 }, noon},
		{"registering", func(tx *storage.Tx) { tx.Meta.Unregistered, tx.Meta.RegisterFrom = true, noon+second }, noon + second},
		{"registering after the clock went back", func(tx *storage.Tx) { tx.Meta.Unregistered, tx.Meta.RegisterFrom = true, noon+hour-1 }, noon + minute},
		{"a refresh", func(tx *storage.Tx) { tx.Meta.RefreshAt = noon + 5 }, noon + 5},
		{"the first of several", func(tx *storage.Tx) {
			tx.Meta.Dirty, tx.Meta.PutAt = true, noon
			tx.Meta.Unregistered, tx.Meta.RegisterFrom = true, noon+10
			tx.Meta.RefreshAt = noon + 20
		}, noon + 10},
		{"one that is set for earlier", func(tx *storage.Tx) { tx.Meta.AlarmAt = noon + 5 }, noon + 5},
		{"one that is set for later", func(tx *storage.Tx) { tx.Meta.AlarmAt = noon + hour + 1 }, noon + hour},
		{"one that is late", func(tx *storage.Tx) { tx.Meta.AlarmAt = noon - minute }, noon - minute},
		{"one that is lost", func(tx *storage.Tx) { tx.Meta.AlarmAt = noon - minute - 1 }, noon + hour},
		{"deleted", func(tx *storage.Tx) { tx.Meta.Deleted, tx.Meta.RefreshAt = true, noon+5 }, 0},
		{"deleted, with an alarm", func(tx *storage.Tx) { tx.Meta.Deleted, tx.Meta.AlarmAt = true, noon+5 }, noon + 5},
		{"deleted, with a lost alarm", func(tx *storage.Tx) { tx.Meta.Deleted, tx.Meta.AlarmAt = true, noon-hour }, noon - hour},
	} {
		if _, got := alarmOf(t, sealed.MachineID, tt.change); got != tt.want {
			t.Errorf("%s: %d ms from now, want %d", tt.name, got-noon, tt.want-noon)
		}
	}
	if _, got := alarmOf(t, rpc.RegistryID, func(*storage.Tx) {}); got != 0 {
		t.Errorf("the registry: %d ms from now, want none", got-noon)
	}
}

func TestOnlyALostAlarmIsSetAgain(t *testing.T) {
	for at, lost := range map[int64]bool{
		noon - minute - 1: true, noon - minute: false, noon: false, noon + 3*hour: false, noon + 3*hour + 1: true,
	} {
		tx, _ := alarmOf(t, sealed.MachineID, func(tx *storage.Tx) { tx.Meta.AlarmAt = noon })
		tx.Meta.AlarmAt = at
		if tx.Rearm(); (tx.Meta.AlarmAt == 0) != lost {
			t.Errorf("an alarm at %d ms from now: set again %v", at-noon, !lost)
		}
	}
}

// sized returns a turn of a stored machine whose replica has a size.
func sized(t *testing.T, size int) *storage.Tx {
	t.Helper()
	st := objects.NewStorage()
	tx := at(st, noon)
	tx.Create("demo")
	ids := []string{"a", "b", "c"} // a row has at most 1 MiB
	for _, id := range ids {
		tx.PutKey(&storage.Key{Key: store.Key{ID: id, Name: "n"}})
	}
	missing := size - len(storage.Encode(tx.Replica()))
	for i, id := range ids {
		k := tx.Keys()[i]
		n := missing / (len(ids) - i)
		k.Name, missing = strings.Repeat("n", n+1), missing-n
		tx.Put(storage.KeyPrefix+id, k)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := len(storage.Encode(tx.Replica())); got != size {
		t.Fatalf("%d bytes, want %d", got, size)
	}
	return tx
}

// resize changes the name of a key by some bytes.
func resize(tx *storage.Tx, by int) {
	k := tx.Keys()[0]
	k.Name = strings.Repeat("n", len(k.Name)+by)
	tx.PutKey(&k)
}

func TestReplicaMayNotGrowBeyondItsLimit(t *testing.T) {
	for _, tt := range []struct {
		name    string
		size    int
		by      int
		refused bool
	}{
		{"up to the limit", storage.MaxReplica - 10, 10, false},
		{"above the limit", storage.MaxReplica - 10, 11, true},
		{"a larger one shrinks", storage.MaxReplica + 10, -1, false},
		{"a larger one stays", storage.MaxReplica + 10, 0, true},
		{"a larger one grows", storage.MaxReplica + 10, 1, true},
	} {
		tx := sized(t, tt.size)
		resize(tx, tt.by)
		err := tx.CheckSize()
		if (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), "larger than 2 MiB") {
			t.Errorf("%s: %v", tt.name, err)
		}
		if want := tt.size + tt.by; tx.Meta.Size != want {
			t.Errorf("%s: size %d, want %d", tt.name, tx.Meta.Size, want)
		}
	}
}

// The size is only estimated until that reaches the limit.
func TestSizeOfAReplicaIsEstimated(t *testing.T) {
	const known = 1000
	for _, tt := range []struct {
		name string
		had  func(grown int) int
		want func(grown, size int) int
	}{
		{"known", func(int) int { return known }, func(grown, _ int) int { return known + grown }},
		{"unknown", func(int) int { return 0 }, func(_, size int) int { return size }},
		{"up to the limit", func(grown int) int { return storage.MaxReplica - grown }, func(int, int) int { return storage.MaxReplica }},
		{"above the limit", func(grown int) int { return storage.MaxReplica - grown + 1 }, func(_, size int) int { return size }},
	} {
		tx := sized(t, 5000)
		resize(tx, 1)
		tx.PutAlias(&storage.Alias{Alias: "mini", Model: "up/m"})
		row, _ := tx.Get(storage.KeyPrefix + "a")
		alias, _ := tx.Get(storage.AliasPrefix + "mini")
		grown := len(row) + len(alias)
		tx.Meta.Size = tt.had(grown)
		if err := tx.CheckSize(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if want := tt.want(grown, len(storage.Encode(tx.Replica()))); tx.Meta.Size != want {
			t.Errorf("%s: size %d, want %d", tt.name, tx.Meta.Size, want)
		}
	}
}

func TestSizeIsCheckedOnlyIfTheConfigurationChanges(t *testing.T) {
	tx := sized(t, storage.MaxReplica+10)
	tx.Put(storage.MutationPrefix+"a", strings.Repeat("n", 100))
	if err := tx.CheckSize(); err != nil {
		t.Error(err)
	}
}
