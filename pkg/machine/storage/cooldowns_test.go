package storage_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

const skew = int64(5000) // store.ClockSkew

func cool(model string, since, until int64) store.Cooldown {
	return store.Cooldown{ConnectionID: "a", Model: model, Since: since, Until: until, Reason: store.RateLimited, Failures: 1}
}

func TestLaterFailureWins(t *testing.T) {
	failures := func(c store.Cooldown, n int) store.Cooldown { c.Failures = n; return c }
	stored := failures(cool("m", noon-10*second, noon+60*second), 3)
	for _, tt := range []struct {
		name   string
		add    store.Cooldown
		want   store.Cooldown
		change bool
	}{
		{"the same", stored, stored, false},
		{"an earlier failure that ends earlier", cool("m", noon-11*second, noon+50*second), stored, false},
		{"an earlier failure that ends at the same time", cool("m", noon-11*second, noon+60*second), stored, false},
		{"an earlier failure that ends later", cool("m", noon-11*second, noon+61*second), failures(cool("m", noon-10*second, noon+61*second), 3), true},
		{"a failure of the same time", cool("m", noon-10*second, noon+50*second), failures(cool("m", noon-10*second, noon+50*second), 3), true},
		{"a later failure", failures(cool("m", noon-9*second, noon+70*second), 5), failures(cool("m", noon-9*second, noon+70*second), 5), true},
		{"a later failure with fewer before", cool("m", noon-9*second, noon+70*second), failures(cool("m", noon-9*second, noon+70*second), 3), true},
		{"one that ends now", cool("m", noon-9*second, noon), stored, false},
	} {
		st := objects.NewStorage()
		first := at(st, noon-second)
		if !first.AddCooldown(stored) {
			t.Fatal("the first adds no row")
		}
		if err := first.Commit(); err != nil {
			t.Fatal(err)
		}
		tx := at(st, noon)
		before := tx.Meta.Observed
		if tx.AddCooldown(tt.add) {
			t.Errorf("%s: adds a second row", tt.name)
		}
		got := tx.Cooldowns()
		if len(got) != 1 || got[0] != tt.want || (tx.Meta.Observed != before) != tt.change {
			t.Errorf("%s: got %+v, changed %v; want %+v, %v", tt.name, got, tx.Meta.Observed != before, tt.want, tt.change)
		}
	}
}

// A cooldown that a clock far ahead has stored is replaced by any.
func TestCooldownOfAClockAheadIsReplaced(t *testing.T) {
	for _, ahead := range []int64{skew, skew + 1} {
		st := objects.NewStorage()
		first := at(st, noon+ahead)
		first.AddCooldown(cool("m", noon+ahead, noon+ahead+600*second))
		if err := first.Commit(); err != nil {
			t.Fatal(err)
		}
		tx := at(st, noon)
		tx.AddCooldown(cool("m", noon-second, noon+5*second))
		got := tx.Cooldowns()
		if replaced := len(got) == 1 && got[0].Until == noon+5*second; replaced != (ahead > skew) {
			t.Errorf("%d ms ahead: %+v", ahead, got)
		}
	}
}

func TestCooldownOfALongModelNameIsDropped(t *testing.T) {
	tx := at(objects.NewStorage(), noon)
	if !tx.AddCooldown(cool(strings.Repeat("m", store.MaxCooledModel), noon, noon+minute)) {
		t.Error("the longest name adds no row")
	}
	if tx.AddCooldown(cool(strings.Repeat("m", store.MaxCooledModel+1), noon, noon+minute)) || len(tx.Cooldowns()) != 1 {
		t.Error("a longer name adds a row")
	}
}

func TestSuccessEndsCooldownUnlessTheFailureCameLater(t *testing.T) {
	for _, tt := range []struct {
		name      string
		since, at int64
		ends      bool
	}{
		{"a later success", noon - 10*second, noon - 9*second, true},
		{"a success of the same time", noon - 10*second, noon - 10*second, true},
		{"an earlier success", noon - 10*second, noon - 11*second, false},
		{"a success without a time", noon - 10*second, 0, true},
		{"a failure of a clock far ahead", noon + skew + 1, noon - second, true},
		{"a failure of a clock slightly ahead", noon + skew, noon - second, false},
	} {
		tx := at(objects.NewStorage(), noon)
		key := storage.CooldownPrefix + "a:"
		tx.Put(key, cool("", tt.since, noon+minute))
		tx.ClearCooldown(rpc.Cleared{ConnectionID: "a", At: tt.at})
		if _, ok := tx.Get(key); ok == tt.ends || changed(tx) != tt.ends {
			t.Errorf("%s: stays %v, changed %v, want it to end: %v", tt.name, ok, changed(tx), tt.ends)
		}
	}
	tx := at(objects.NewStorage(), noon)
	if tx.ClearCooldown(rpc.Cleared{ConnectionID: "a"}); changed(tx) {
		t.Error("ending no cooldown changes the replica")
	}
}

func TestEndedCooldownIsForgottenAfterAWhile(t *testing.T) {
	keep := store.ForgetCooldown.Milliseconds()
	for _, tt := range []struct {
		c    store.Cooldown
		want bool
	}{
		{cool("m", noon-minute, noon+minute), false},
		{cool("m", noon-2*keep, noon-keep+1), false},
		{cool("m", noon-2*keep, noon-keep), true},
		{cool("m", noon+skew, noon+minute), false},
		{cool("m", noon+skew+1, noon+minute), true},
	} {
		if got := at(objects.NewStorage(), noon).Forgotten(&tt.c); got != tt.want {
			t.Errorf("%+v: forgotten %v, want %v", tt.c, got, tt.want)
		}
	}
}

func TestConnectionWithTooManyCooledModelsCoolsAsAWhole(t *testing.T) {
	fill := func(models, ended int) *storage.Tx {
		tx := at(objects.NewStorage(), noon)
		for i := range models {
			tx.AddCooldown(cool(fmt.Sprint("m", i), noon, noon+minute+int64(i)))
		}
		for i := range ended {
			tx.Put(fmt.Sprintf("%sa:ended%02d", storage.CooldownPrefix, i), cool(fmt.Sprint("ended", i), noon-minute, noon-second))
		}
		tx.BoundCooldowns(map[string]bool{"a": true})
		return tx
	}
	if got := fill(store.MaxCooledModels, 0).Cooldowns(); len(got) != store.MaxCooledModels {
		t.Errorf("as many as may be: %d rows", len(got))
	}
	if got := fill(store.MaxCooledModels, 3).Cooldowns(); len(got) != store.MaxCooledModels {
		t.Errorf("with ended ones: %d rows", len(got))
	}
	got := fill(store.MaxCooledModels+1, 2).Cooldowns()
	if len(got) != 1 || got[0].Model != "" || got[0].Until != noon+minute+store.MaxCooledModels {
		t.Errorf("one more: %+v", got)
	}
	// A cooldown of the whole connection is no model.
	tx := at(objects.NewStorage(), noon)
	tx.AddCooldown(cool("", noon, noon+second))
	for i := range store.MaxCooledModels {
		tx.AddCooldown(cool(fmt.Sprint("m", i), noon, noon+minute))
	}
	if tx.BoundCooldowns(map[string]bool{"a": true}); len(tx.Cooldowns()) != store.MaxCooledModels+1 {
		t.Errorf("beside one of the whole: %d rows", len(tx.Cooldowns()))
	}
	// A connection that added nothing is left as it is.
	tx = at(objects.NewStorage(), noon)
	for i := range store.MaxCooledModels + 1 {
		tx.AddCooldown(cool(fmt.Sprint("m", i), noon, noon+minute))
	}
	if tx.BoundCooldowns(map[string]bool{"b": true}); len(tx.Cooldowns()) != store.MaxCooledModels+1 {
		t.Errorf("of another connection: %d rows", len(tx.Cooldowns()))
	}
}

func TestCooldownsThatEndFirstMakeRoom(t *testing.T) {
	for _, more := range []int{0, 1, 2} {
		tx := at(objects.NewStorage(), noon)
		for i := range store.MaxCooledRows + more {
			c := cool("m", noon, noon+minute+int64(i))
			c.ConnectionID = fmt.Sprintf("c%04d", store.MaxCooledRows+more-i)
			tx.AddCooldown(c)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		before := tx.Meta.Observed
		if tx.BoundCooldowns(nil); (tx.Meta.Observed != before) != (more > 0) {
			t.Errorf("%d too many: changed %v", more, tx.Meta.Observed != before)
		}
		first := noon + 2*minute
		for _, c := range tx.Cooldowns() {
			first = min(first, c.Until)
		}
		if got := len(tx.Cooldowns()); got != store.MaxCooledRows || first != noon+minute+int64(more) {
			t.Errorf("%d too many: %d rows, the first ends at +%d", more, got, first-noon-minute)
		}
	}
}

// Rows that a connection loses because it cools as a whole, or because they have
// ended, count no longer when the rows of the machine are bounded.
func TestRemovedCooldownsLeaveRoomForOthers(t *testing.T) {
	for _, ended := range []int{0, 5} {
		tx := at(objects.NewStorage(), noon)
		tx.Put(storage.CooldownPrefix+"broken:", "no cooldown")
		added := map[string]bool{"a": true}
		for i := range store.MaxCooledModels + 1 {
			tx.AddCooldown(cool(fmt.Sprint("m", i), noon, noon+2*minute))
		}
		for i := range ended {
			tx.Put(fmt.Sprintf("%sa:ended%02d", storage.CooldownPrefix, i), cool(fmt.Sprint("ended", i), noon-minute, noon-second))
		}
		for i := range store.MaxCooledRows { // one row too many beside that of the whole connection
			c := cool("m", noon, noon+minute+int64(i))
			c.ConnectionID = fmt.Sprintf("c%04d", i)
			tx.AddCooldown(c)
			added[c.ConnectionID] = true
		}
		tx.BoundCooldowns(added)
		got := tx.Cooldowns()
		whole, first := 0, noon+2*minute
		for _, c := range got {
			if c.ConnectionID == "a" {
				whole++
			}
			first = min(first, c.Until)
		}
		if len(got) != store.MaxCooledRows || whole != 1 || first != noon+minute+1 {
			t.Errorf("%d ended: %d rows, %d of a, the first ends at +%d", ended, len(got), whole, first-noon-minute)
		}
	}
}

// Ended cooldowns stay as long as a connection has no more rows than it may.
func TestEndedCooldownsAreRemovedOnlyForRoom(t *testing.T) {
	for _, more := range []int{0, 1} {
		tx := at(objects.NewStorage(), noon)
		tx.Put(storage.CooldownPrefix+"a:ended", cool("ended", noon-minute, noon-second))
		for i := range store.MaxCooledModels - 1 + more {
			tx.AddCooldown(cool(fmt.Sprint("m", i), noon, noon+minute))
		}
		tx.BoundCooldowns(map[string]bool{"a": true})
		if _, ok := tx.Get(storage.CooldownPrefix + "a:ended"); ok != (more == 0) {
			t.Errorf("%d too many: the ended one stays: %v", more, ok)
		}
	}
}

func TestErrorOfAConnectionIsBoundedAndRemoved(t *testing.T) {
	tx := at(objects.NewStorage(), noon)
	c := &storage.Connection{Connection: store.Connection{ID: "a"}}
	if tx.SetError("a", ""); len(tx.Order) != 0 {
		t.Error("removing no error writes a row")
	}
	tx.SetError("a", strings.Repeat("e", rpc.MaxErrorText-1)+"é")
	if got := tx.LastError(c); got != strings.Repeat("e", rpc.MaxErrorText-1) {
		t.Errorf("%d bytes, ends %q", len(got), got[len(got)-2:])
	}
	tx.SetError("a", "slow down")
	if got := tx.LastError(c); got != "slow down" {
		t.Errorf("got %q", got)
	}
	c.LastError = "refresh failed"
	if got := tx.LastError(c); got != "refresh failed" {
		t.Errorf("beside one of its refresh: %q", got)
	}
	c.LastError = ""
	if tx.SetError("a", ""); tx.LastError(c) != "" || changed(tx) {
		t.Errorf("removed: %q, changed %v", tx.LastError(c), changed(tx))
	}
}

// A connection that only loses ended cooldowns does not keep others from cooling
// as a whole.
func TestEachConnectionWithTooManyModelsIsBounded(t *testing.T) {
	const tidied = 20
	tx := at(objects.NewStorage(), noon)
	added := map[string]bool{"a": true}
	for i := range store.MaxCooledModels + 1 {
		tx.AddCooldown(cool(fmt.Sprint("m", i), noon, noon+minute))
	}
	for n := range tidied {
		id := fmt.Sprint("tidied", n)
		added[id] = true
		for i := range store.MaxCooledModels + 1 {
			c := cool(fmt.Sprint("m", i), noon-minute, noon-second)
			c.ConnectionID = id
			tx.Put(fmt.Sprintf("%s%s:%d", storage.CooldownPrefix, id, i), c)
		}
	}
	tx.BoundCooldowns(added)
	if got := tx.Cooldowns(); len(got) != 1 || got[0].Model != "" {
		t.Errorf("%d rows: %+v", len(got), got)
	}
}

func TestRefusalFromBeforeASuccessIsIgnored(t *testing.T) {
	for reason, ignored := range map[string]bool{store.KeyRefused: true, store.OutOfCredit: true, store.RateLimited: false} {
		for _, succeedAt := range []int64{noon - 2*second, noon - second, noon} {
			tx := at(objects.NewStorage(), noon)
			tx.Put(storage.HealthPrefix+"a", storage.Health{At: succeedAt, SucceedAt: succeedAt})
			added := tx.AddCooldown(store.Cooldown{ConnectionID: "a", Reason: reason, Since: noon - second, Until: noon + minute})
			if want := !ignored || succeedAt <= noon-second; added != want {
				t.Errorf("%s, %d ms before now succeeded: added %v", reason, noon-succeedAt, added)
			}
		}
	}
}
