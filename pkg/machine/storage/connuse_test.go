package storage_test

import (
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
	"weir/pkg/usage"
)

func TestUseOfConnectionIsThatOfTheLastHourDayAndMonth(t *testing.T) {
	const id = "connection0000000001"
	tx := at(objects.NewStorage(), noon)
	add := func(ms, attempts, failed, unpriced int64, usd float64) {
		tx.Now = ms
		tx.AddConnUse(ms, []usage.Row{
			{ConnectionID: id, Requests: attempts, Errors: failed, Unpriced: unpriced, CostUSD: usd},
			{ConnectionID: id, Calls: 1, LatencyMs: 9},          // of the client
			{ConnectionID: "gone0000000000000001", Requests: 1}, // deleted
			{ConnectionID: id, Requests: 1, Errors: -1},
		}, func(conn string) bool { return conn == id })
	}
	is := func(what string, ms, attempts, failed, unpriced int64, day, month float64) {
		t.Helper()
		tx.Now = ms
		u := tx.ConnUse(id)
		if a, f := u.InHour(); a != attempts || f != failed || u.Unpriced != unpriced || u.DayUSD != day || u.MonthUSD != month {
			t.Errorf("%s: %d attempts, %d failed, %+v", what, a, f, u)
		}
	}
	is("unused", noon, 0, 0, 0, 0, 0)
	add(noon, 3, 1, 0, 0.5)
	add(noon+20*minute, 2, 2, 2, 0)
	is("at once", noon+20*minute, 5, 3, 2, 0.5, 0.5)
	is("after 50 minutes", noon+50*minute, 5, 3, 2, 0.5, 0.5)
	is("after an hour", noon+60*minute, 2, 2, 2, 0.5, 0.5)
	add(noon+90*minute, 1, 0, 0, 0.25)
	is("later", noon+90*minute, 1, 0, 2, 0.75, 0.75)
	is("after a day", noon+24*60*minute, 0, 0, 2, 0, 0.75)
	is("after a month", noon+31*24*60*minute, 0, 0, 0, 0, 0)
	if _, ok := tx.Get(storage.ConnUsePrefix + "gone0000000000000001"); ok {
		t.Error("a deleted connection is used")
	}
}
