package storage_test

import (
	"fmt"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
	"weir/pkg/usage"
)

func TestUsageOfTheLastHourIsInSteps(t *testing.T) {
	const noon = noon - noon%storage.RecentStep
	st := objects.NewStorage()
	add := func(now, at_, calls int64) {
		t.Helper()
		tx := at(st, now)
		tx.AddUsage(at_, []usage.Row{
			{KeyID: "k", Model: "a", Requests: calls, Calls: calls}, {Model: "b", Requests: 1}, {Calls: -1},
		})
		commit(t, st, tx)
	}
	steps := func(now int64) (got string) {
		list := at(st, now).Recent()
		if len(list) != 12 || list[11].At > now || now-list[11].At >= storage.RecentStep {
			t.Errorf("%d steps, the last begins at %d of %d", len(list), list[len(list)-1].At, now)
		}
		for _, r := range list {
			if r.Requests > 0 {
				got += fmt.Sprintf("%d:%d+%d ", (r.At-noon)/minute, r.Calls, r.Requests)
			}
		}
		return got
	}
	add(noon, noon, 1)
	add(noon+4*minute, noon+4*minute, 2)
	add(noon+12*minute, noon+12*minute, 3)
	add(noon+13*minute, noon+2*minute, 4)     // reported late
	add(noon+13*minute, noon+30*minute, 5)    // a clock that is ahead
	add(noon+13*minute, noon-24*60*minute, 6) // too late
	for after, want := range map[int64]string{
		13: "0:7+10 10:8+10 ", 59: "0:7+10 10:8+10 ", 60: "10:8+10 ", 69: "10:8+10 ", 70: "", 5000: "",
	} {
		if got := steps(noon + after*minute); got != want {
			t.Errorf("after %d minutes: got %q, want %q", after, got, want)
		}
	}
	add(noon+90*minute, noon+90*minute, 1)
	var stored []storage.RecentUsage
	if at(st, noon+90*minute).Load(storage.RecentRow, &stored); len(stored) != 1 {
		t.Errorf("%d steps are stored, want those of the last hour with usage", len(stored))
	}
	if rows := keysOf(st.Listed(storage.RecentRow)); len(rows) != 0 {
		t.Errorf("rows of their own: %v, want them in the activity row", rows)
	}
}
