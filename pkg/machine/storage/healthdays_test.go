package storage_test

import (
	"strings"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
	"weir/pkg/usage"
)

func TestSumsOfDaysAreStoredForThirtyDays(t *testing.T) {
	st := objects.NewStorage()
	add := func(now, when, requests int64) {
		t.Helper()
		tx := at(st, now)
		for _, key := range []string{"k", "l"} {
			tx.AddUsage(when, []usage.Row{{KeyID: key, ConnectionID: "c", Model: "m", Endpoint: key, Requests: requests}})
		}
		commit(t, st, tx)
	}
	stored := func() (n int) {
		for key := range st.Dump() {
			if strings.HasPrefix(key, "healthday:") {
				n++
			}
		}
		return n
	}
	sum := func(now, when int64) (kinds int, requests int64) {
		t.Helper()
		tx := at(st, now)
		tx.HealthDay(when, func(r *usage.Row) {
			if kinds++; r.KeyID != "" || r.Endpoint != "" || r.ConnectionID != "c" || r.Model != "m" {
				t.Errorf("got %+v", r)
			}
			requests += r.Requests
		})
		commit(t, st, tx)
		return kinds, requests
	}
	check := func(when string, kinds int, requests int64, rows int, want int64) {
		t.Helper()
		if kinds != min(int(want), 1) || requests != want || stored() != rows {
			t.Errorf("%s: %d kinds, %d requests, %d rows; want %d requests", when, kinds, requests, stored(), want)
		}
	}
	add(noon, noon, 2)
	k, n := sum(noon, noon)
	check("today", k, n, 0, 4)
	k, n = sum(noon+day, noon)
	check("the next day", k, n, 1, 4)
	k, n = sum(noon+day, noon-day)
	check("a day without calls", k, n, 1, 0)
	add(noon+day, noon, 1) // late
	k, n = sum(noon+day, noon)
	check("after a late report", k, n, 1, 6)
	for _, c := range []struct {
		days int64
		rows int
	}{{storage.HealthDays, 1}, {storage.HealthDays + 1, 0}} {
		tx := at(st, noon+c.days*day)
		tx.PruneUsage()
		commit(t, st, tx)
		if stored() != c.rows {
			t.Errorf("%d rows after %d days", stored(), c.days)
		}
	}
}
