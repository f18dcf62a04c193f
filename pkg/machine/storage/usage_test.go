package storage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
	"weir/pkg/usage"
)

func TestUsageOfADayIsAddedUpByKind(t *testing.T) {
	tx := at(objects.NewStorage(), noon)
	a, b := usage.Row{KeyID: "k", Model: "a", Requests: 2}, usage.Row{KeyID: "k", Model: "b", Requests: 5}
	invalid := usage.Row{KeyID: "k", Model: "a", Requests: -1}
	tx.AddUsage(noon, []usage.Row{a, invalid, b, a})
	tx.AddUsage(noon+day, []usage.Row{a})
	got := map[string]int64{}
	for _, r := range storage.RowsOf[storage.UsageRow](tx, storage.UsagePrefix) {
		got[r.Day+" "+r.Model] = r.Requests
	}
	if len(got) != 3 || got[today+" a"] != 4 || got[today+" b"] != 5 || got[storage.DayOf(noon+day)+" a"] != 2 {
		t.Errorf("got %v", got)
	}
}

// Callers choose the names of models, so the rows of a day are bounded.
func TestRowsOfUsageAreBounded(t *testing.T) {
	const most = 5000
	st := objects.NewStorage()
	add := func(models ...string) {
		t.Helper()
		tx := at(st, noon)
		var list []usage.Row
		for _, m := range models {
			list = append(list, usage.Row{KeyID: "k", Model: m, Requests: 1})
		}
		tx.AddUsage(noon, list)
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

// Refused requests may name any model at no cost: beyond a bound they have none, but their key.
func TestModelsOfRefusedRequestsAreBounded(t *testing.T) {
	tx := at(objects.NewStorage(), noon)
	for i := range 1200 {
		tx.AddUsage(noon, []usage.Row{{KeyID: "k", Model: fmt.Sprint("m", i), Calls: 1, FailedCalls: 1, RefusedBudget: 1}})
	}
	tx.AddUsage(noon, []usage.Row{{KeyID: "k", Model: "m1", Calls: 1, FailedCalls: 1, RefusedBudget: 1}, {KeyID: "k", Model: "new", Requests: 1}})
	got := map[string]int64{}
	for _, r := range storage.RowsOf[storage.UsageRow](tx, storage.UsagePrefix) {
		got[r.KeyID+" "+r.Model] = r.Refused() + r.Requests
	}
	if len(got) != 1002 || got["k "] != 201 || got["k m1"] != 1 || got["k new"] != 1 {
		t.Errorf("%d rows, %d without a model, %d of m1", len(got), got["k "], got["k m1"])
	}
}

func TestCountOfUsageRowsIsWrittenWhenItChanges(t *testing.T) {
	tx := at(objects.NewStorage(), noon)
	row := []usage.Row{{KeyID: "k", Model: "a", Requests: 1}}
	tx.AddUsage(noon, row)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	tx.AddUsage(noon, row)
	if slices.Contains(tx.Order, "usages:"+today) {
		t.Errorf("changed %v", tx.Order)
	}
}

func TestUsageOfAnHourIsOneRowForEightDays(t *testing.T) {
	st := objects.NewStorage()
	add := func(at_ int64, models ...string) {
		t.Helper()
		tx := at(st, at_)
		var list []usage.Row
		for _, m := range models {
			list = append(list, usage.Row{KeyID: "k", Model: m, Requests: 1, Calls: 1})
		}
		tx.AddUsage(at_, list)
		commit(t, st, tx)
	}
	stored := func() (own []string) {
		for _, k := range keysOf(st.Listed(storage.HourPrefix)) {
			own = append(own, strings.TrimPrefix(k, storage.HourPrefix))
		}
		return own
	}
	add(noon, "a", "b")
	add(noon+59*minute, "a")
	if own := stored(); len(own) != 0 {
		t.Errorf("the current hour has rows of its own: %v", own)
	}
	add(noon+60*minute, "c")
	if own := stored(); !slices.Equal(own, []string{storage.HourOf(noon)}) {
		t.Errorf("rows of past hours: %v", own)
	}
	got := map[string]int64{}
	at(st, noon+60*minute).Hours(noon, noon+60*minute, func(hour string, r *usage.Row) { got[hour+" "+r.Model] += r.Calls })
	h := storage.HourOf(noon)
	if len(got) != 3 || got[h+" a"] != 2 || got[h+" b"] != 1 || got[storage.HourOf(noon+60*minute)+" c"] != 1 {
		t.Errorf("got %v", got)
	}

	for tries := int64(1); tries <= 20; tries++ {
		add(noon+tries*60*minute, "d")
	}
	for now, want := range map[int64]int{noon + 8*day: 21, noon + 8*day + 60*minute: 20} {
		tx := at(st, now)
		tx.PruneHours()
		if left := len(tx.List(storage.HourPrefix)); left != want {
			t.Errorf("%d hours later %d are left, want %d", (now-noon)/60/minute, left, want)
		}
	}
}

// A row that is too large to be stored would fail each turn that adds to it. The values of
// clients, many keys and long names of models, must not make it so large.
func TestRowOfAnHourIsBounded(t *testing.T) {
	for name, row := range map[string]func(i int) usage.Row{
		"keys":   func(i int) usage.Row { return usage.Row{KeyID: fmt.Sprint("key", i), Endpoint: "/v1/chat/completions"} },
		"models": func(i int) usage.Row { return usage.Row{KeyID: "k", Model: fmt.Sprint(strings.Repeat("\x01", 390), i)} },
		"both": func(i int) usage.Row {
			return usage.Row{KeyID: fmt.Sprint("key", i), ConnectionID: "c", Model: fmt.Sprint(strings.Repeat("\x01", 390), i)}
		},
	} {
		st := objects.NewStorage()
		const calls = 6000
		for from := 0; from < calls; from += 500 {
			tx := at(st, noon)
			var list []usage.Row
			for i := range 500 {
				r := row(from + i)
				r.Requests, r.Calls, r.InputTokens, r.LatencyMs = 1, 1, 123_456, 30
				for ms := int64(20); ms < 600_000; ms *= 2 {
					r.Latency.Observe(ms)
					r.FirstToken.Observe(ms)
				}
				list = append(list, r)
			}
			tx.AddUsage(noon, list)
			commit(t, st, tx) // fails if a row is too large
		}
		size, rows, sum := 0, 0, int64(0)
		tx := at(st, noon)
		raw, _ := tx.Get(storage.HourPrefix + storage.HourOf(noon))
		size = len(raw)
		tx.Hours(noon, noon, func(_ string, r *usage.Row) {
			rows++
			sum += r.Calls
		})
		if size > 512<<10 || rows < 2 || sum != calls {
			t.Errorf("%s: %d rows of %d bytes have %d of %d calls", name, rows, size, sum, calls)
		}
		next := at(st, noon+day)
		sum = 0
		next.HealthDay(noon, func(r *usage.Row) { sum += r.Calls })
		commit(t, st, next)
		if sum != calls {
			t.Errorf("%s: the sum of the day has %d calls", name, sum)
		}
	}
}

func TestUseOfAKeyIsAddedUp(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	row := func(key string, calls int64) usage.Row {
		return usage.Row{KeyID: key, Model: "m", Requests: calls + 1, Calls: calls, InputTokens: 10, OutputTokens: 2, CostUSD: 0.5, Unpriced: 1}
	}
	tx.AddUsage(noon, []usage.Row{row("k", 2), row("other", 1), row("", 7), row("not an id", 7), {KeyID: "k", Calls: -1}})
	tx.AddUsage(noon+23*60*minute, []usage.Row{row("k", 3)})
	commit(t, st, tx)
	for hours, want := range map[int64]string{0: "5 3 0.5 1", 11: "5 3 0.5 1", 12: "5 3 0.5 1", 23: "5 3 0.5 1", 24: "3 3 0.5 1", 36: "3 0 0 1", 46: "3 0 0 1", 47: "0 0 0 1", 500: "0 0 0 1", 700: "0 0 0 0"} {
		got := at(st, noon+hours*60*minute).KeyUse("k")
		if use := fmt.Sprint(got.InDay(), got.Today(), got.DayUSD, got.MonthUSD); use != want {
			t.Errorf("%d hours later: got %s of the last 24 hours, the day, the day and the month, want %s", hours, use, want)
		}
		got.Day, got.DayUSD, got.Month, got.MonthUSD = "", 0, "", 0
		got.Hour, got.Hours = 0, [24]int64{}
		if want := (storage.KeyUse{LastAt: noon + 23*60*minute, Requests: 5, Tokens: 24, CostUSD: 1, Unpriced: 2}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if keys := keysOf(at(st, noon).List(storage.KeyUsePrefix)); !slices.Equal(keys, []string{"keyuse:k", "keyuse:other"}) {
		t.Errorf("rows of %v", keys)
	}
}
