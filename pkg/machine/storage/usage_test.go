package storage_test

import (
	"fmt"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
	"weir/pkg/usage"
)

func TestUsageOfADayIsAddedUpByKind(t *testing.T) {
	tx := at(objects.NewStorage(), noon)
	a, b := usage.Row{KeyID: "k", Model: "a", Requests: 2}, usage.Row{KeyID: "k", Model: "b", Requests: 5}
	invalid := usage.Row{KeyID: "k", Model: "a", Requests: -1}
	tx.AddUsage("2026-11-21", []usage.Row{a, invalid, b, a})
	tx.AddUsage("2026-11-22", []usage.Row{a})
	got := map[string]int64{}
	for _, r := range storage.RowsOf[storage.UsageRow](tx, storage.UsagePrefix) {
		got[r.Day+" "+r.Model] = r.Requests
	}
	if len(got) != 3 || got["2026-11-21 a"] != 4 || got["2026-11-21 b"] != 5 || got["2026-11-22 a"] != 2 {
		t.Errorf("got %v", got)
	}
}

// Callers choose the names of models, so the rows of a day are bounded.
func TestRowsOfUsageAreBounded(t *testing.T) {
	const most, day = 5000, "2026-11-21"
	st := objects.NewStorage()
	add := func(models ...string) {
		t.Helper()
		tx := at(st, noon)
		var list []usage.Row
		for _, m := range models {
			list = append(list, usage.Row{KeyID: "k", Model: m, Requests: 1})
		}
		tx.AddUsage(day, list)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		st.Flush()
	}
	count := func() (rows int, ofOthers int64) {
		for _, r := range storage.RowsOf[storage.UsageRow](at(st, noon), storage.UsagePrefix) {
			rows++
			if r.Model == "" {
				ofOthers = r.Requests
			}
		}
		return rows, ofOthers
	}
	var models []string
	for i := range most {
		models = append(models, fmt.Sprint("m", i))
	}
	add(models[:most-1]...)
	add(models[most-1], models[0])
	if rows, others := count(); rows != most || others != 0 {
		t.Errorf("%d rows, %d requests without a model", rows, others)
	}
	add("one more")
	add("another", models[0])
	if rows, others := count(); rows != most+1 || others != 2 {
		t.Errorf("beyond the limit: %d rows, %d requests without a model", rows, others)
	}
}

func TestCountOfUsageRowsIsWrittenWhenItChanges(t *testing.T) {
	tx := at(objects.NewStorage(), noon)
	row := []usage.Row{{KeyID: "k", Model: "a", Requests: 1}}
	tx.AddUsage("2026-11-21", row)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if tx.AddUsage("2026-11-21", row); len(tx.Order) != 1 {
		t.Errorf("changed %v", tx.Order)
	}
}
