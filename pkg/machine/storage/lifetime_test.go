package storage_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
	"weir/pkg/usage"
)

// readLifetime returns the counts of a machine as a reading at a time shows them.
func readLifetime(t *testing.T, st storage.Storage, now int64) *storage.Lifetime {
	t.Helper()
	tx := at(st, now)
	tx.Create("") // once
	l := tx.Lifetime()
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return l
}

// series returns what a Lifetime has, by the names of its series: counts in nano-dollars,
// tokens, attempts, and durations.
func series(l *storage.Lifetime) map[string]int64 {
	out := map[string]int64{}
	for g := range l.Groups {
		for i := range l.Groups[g] {
			s := l.Groups[g][i].Total()
			name := fmt.Sprintf("%d %s %s %s %s %s ", g, s.Of.Endpoint, s.Of.Provider, s.Of.ConnectionID, s.Of.Model, s.Of.KeyID)
			out[name+"cost"], out[name+"input"], out[name+"attempts"] = s.NanoUSD, s.Of.InputTokens, s.Of.Requests
			for _, n := range s.Latency {
				out[name+"durations"] += n
			}
		}
	}
	return out
}

// Whatever the clock, the prune, the storage and repeated readings do, no series falls, and
// the sum over the accounts is what was used.
func TestLifetimeNeverFallsAndHasEverything(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		st := objects.NewStorage()
		now, used := noon, int64(0)
		before := series(readLifetime(t, st, now))
		for step := range 150 {
			switch r.IntN(12) {
			case 0:
				now += r.Int64N(4 * day)
			case 1:
				now -= r.Int64N(4 * day)
			case 2:
				now += (r.Int64N(900) - 200) * day
			case 3: // the last minute of a day, or the first of the next
				now += day - now%day - 1 + r.Int64N(2)
			case 4, 5:
				tx := at(st, now)
				tx.FoldUsage()
				tx.PruneUsage()
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				st.Flush()
			case 6: // a kill before the commit
				tx := at(st, now)
				tx.AddUsage(now, []usage.Row{{Provider: "p", ConnectionID: "lost", Model: "m", Requests: 1}})
				tx.Lifetime()
			default:
				tx := at(st, now)
				n := r.Int64N(5) + 1
				row := usage.Row{Provider: "p", ConnectionID: fmt.Sprint("c", r.IntN(80)), Model: fmt.Sprint("m", r.IntN(200)),
					Endpoint: "/v1/x", KeyID: fmt.Sprint("k", r.IntN(3)), Requests: n, InputTokens: n,
					CostUSD: float64(r.IntN(1000)) / 7e6}
				if r.IntN(4) == 0 {
					row.Errors = n
				}
				row.Call(r.Int64N(1e6), 3, "succeeded", "")
				tx.AddUsage(now-r.Int64N(2)*day, []usage.Row{row})
				used += n
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				st.Flush()
			}
			if now < noon {
				now = noon
			}
			if r.IntN(3) > 0 {
				continue
			}
			l := readLifetime(t, st, now)
			after, sum := series(l), int64(0)
			for name, was := range before {
				if after[name] < was {
					t.Fatalf("seed %d, step %d: %q falls from %d to %d", seed, step, name, was, after[name])
				}
			}
			for i := range l.Groups[storage.ByAccount] {
				total := l.Groups[storage.ByAccount][i].Total()
				sum += total.Of.Requests
			}
			if sum != used {
				t.Fatalf("seed %d, step %d: %d attempts, want %d", seed, step, sum, used)
			}
			before = after
		}
	}
}

// Clients that invent names get no series of their own, and a machine with very many real
// names has a bounded record, which is read in bounded time.
func TestLifetimeIsBounded(t *testing.T) {
	st := objects.NewStorage()
	readLifetime(t, st, noon)
	add := func(now int64, list []usage.Row) {
		t.Helper()
		tx := at(st, now)
		tx.AddUsage(now, list)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		st.Flush()
	}
	for i := 0; i < 6000; i += 200 {
		var list []usage.Row
		for j := range 200 {
			name := fmt.Sprint("invented-", i+j)
			list = append(list, usage.Row{Provider: "p", ConnectionID: "c", Model: name, KeyID: "k", Requests: 1, Errors: 1})
		}
		add(noon, list)
	}
	l := readLifetime(t, st, noon)
	if n := len(l.Groups[storage.ByModel]); n > 1 {
		t.Errorf("%d series of models that no account has", n)
	}
	for i := 0; i < 3000; i += 200 {
		var list []usage.Row
		for j := range 200 {
			name := fmt.Sprint("real-", i+j)
			row := usage.Row{Provider: name, ConnectionID: name, Model: name, KeyID: fmt.Sprint(j), Endpoint: fmt.Sprint(j), Requests: 1}
			row.Call(5, 1, "succeeded", "")
			list = append(list, row)
		}
		add(noon+day, list)
	}
	readLifetime(t, st, noon+day)
	began := time.Now()
	l = readLifetime(t, st, noon+3*day)
	t.Logf("read in %v", time.Since(began))
	for g, most := range [...]int{31, 61, 121, 21, 51} {
		if n := len(l.Groups[g]); n > most || n < 2 {
			t.Errorf("group %d: %d series", g, n)
		}
	}
	raw, _ := at(st, noon+3*day).Get(storage.LifetimeRow)
	if len(raw) == 0 || len(raw) > 200<<10 {
		t.Errorf("the record has %d bytes", len(raw))
	}
	t.Logf("%d bytes", len(raw))
	if before, after := series(l), series(readLifetime(t, st, noon+4*day)); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Error("a later reading differs")
	}
}

// A row of an earlier version has no causes and no sum of first tokens.
func TestLifetimeReadsOldRows(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	tx.Set(storage.UsagePrefix+storage.DayOf(noon)+":00", []byte(`{"day":"`+storage.DayOf(noon)+`","provider":"p",`+
		`"connectionId":"c","model":"m","endpoint":"/v1/x","requests":3,"errors":1,"costUsd":0.5}`))
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	tx = at(st, noon) // of a version with five groups
	tx.Set(storage.LifetimeRow, []byte(`{"through":"`+storage.DayOf(noon-2*day)+`","groups":[null,null,null,null,[{"of":{"requests":0}}]]}`))
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	l := readLifetime(t, st, noon)
	list := l.Groups[storage.ByOperation]
	if got := list[len(list)-1].Total(); len(list) != 2 || got.Of.Requests != 3 || len(got.Sizes) != 0 {
		t.Errorf("got %+v", got)
	}
	list = l.Groups[storage.ByAccount]
	if got := list[len(list)-1].Total(); got.Of.Requests != 3 || got.Of.Errors != 1 || got.NanoUSD != 5e8 {
		t.Errorf("got %+v", got)
	}
}
