package storage_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

const perPage = storage.RequestsPerPage

// pageRow returns the key of a page of the latest requests, which use a few in turn.
func pageRow(page int64) string {
	return fmt.Sprintf("%s:%d", storage.RequestsRow, page%storage.RequestPages)
}

// answered returns the records of n requests.
func answered(n int) []store.Request {
	return slices.Repeat([]store.Request{{ID: "req", Endpoint: "/v1/embeddings", Status: 200, Attempts: 1}}, n)
}

// pageOf returns the numbers of the requests in a page.
func pageOf(t *testing.T, tx *storage.Tx, page int64) (numbers []int64) {
	t.Helper()
	raw, ok := tx.Get(pageRow(page))
	var list []store.Request
	if ok && json.Unmarshal(raw, &list) != nil {
		t.Fatalf("page %d: %s", page, raw)
	}
	for _, r := range list {
		numbers = append(numbers, r.Seq)
	}
	return numbers
}

func numbers(from, to int64) (list []int64) {
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}

func TestRequestsAreNumberedInPages(t *testing.T) {
	const pages = int64(storage.RequestPages)
	for _, batches := range [][]int{
		{1}, {1, 1, 2}, {perPage - 1}, {perPage}, {perPage + 1}, {perPage - 1, 1}, {perPage, 1}, {perPage - 1, 2}, {perPage - 1, perPage + 3},
		{2*perPage + 5}, {1, 2 * perPage, 1}, {int(pages) * perPage, 3, 4}, {int(pages)*perPage + 3}, {(int(pages) + 2) * perPage}, {int(pages)*perPage - 1, 1, 1}, {0},
	} {
		st := objects.NewStorage()
		var last int64
		for _, n := range batches {
			tx := at(st, noon)
			tx.AddRequests(answered(n), 0, 0)
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			st.Flush()
			last += int64(n)
		}
		tx := at(st, noon)
		var stored int64
		row, _ := tx.Get(storage.RequestsRow)
		if stored = gjson.GetBytes(row, "seq").Int(); stored != last {
			t.Errorf("%v: the last is %d", batches, stored)
		}
		if n := len(tx.List(storage.RequestsRow + ":")); n > storage.RequestPages+1 { // one of those that made way
			t.Errorf("%v: %d pages", batches, n)
		}
		end := (last + perPage - 1) / perPage // of the pages that have begun
		for page := max(0, end-pages); page < end; page++ {
			if got, want := pageOf(t, tx, page), numbers(page*perPage+1, min(last, (page+1)*perPage)); !slices.Equal(got, want) {
				t.Errorf("%v: page %d has %v", batches, page, got)
			}
		}
	}
}

func TestNoRequestWritesNothing(t *testing.T) {
	tx := at(objects.NewStorage(), noon)
	tx.AddRequests(nil, 0, 0)
	if tx.AddRequests([]store.Request{{Status: 1}}, 0, 0); len(tx.Order) != 0 {
		t.Errorf("written %v", tx.Order)
	}
}

func TestInvalidRequestsAreLeftOut(t *testing.T) {
	with := func(change func(r *store.Request)) store.Request { r := answered(1)[0]; change(&r); return r }
	long := strings.Repeat("x", 400)
	for _, tt := range []struct {
		name  string
		r     store.Request
		valid bool
	}{
		{"the longest id", with(func(r *store.Request) { r.ID = long }), true},
		{"a longer id", with(func(r *store.Request) { r.ID = long + "x" }), false},
		{"a longer error", with(func(r *store.Request) { r.Error = long + "x" }), false},
		{"status 99", with(func(r *store.Request) { r.Status = 99 }), false},
		{"status 100", with(func(r *store.Request) { r.Status = 100 }), true},
		{"status 999", with(func(r *store.Request) { r.Status = 999 }), true},
		{"status 1000", with(func(r *store.Request) { r.Status = 1000 }), false},
		{"a negative latency", with(func(r *store.Request) { r.LatencyMs = -1 }), false},
		{"sent before its arrival", with(func(r *store.Request) { r.SentMs = -1 }), false},
		{"a negative size of the request", with(func(r *store.Request) { r.RequestBytes = -1 }), false},
		{"a negative size of the answer", with(func(r *store.Request) { r.AnswerBytes = -1 }), false},
		{"no latency", with(func(r *store.Request) { r.LatencyMs = 0 }), true},
		{"negative input", with(func(r *store.Request) { r.Input = -1 }), false},
		{"negative output", with(func(r *store.Request) { r.Output = -1 }), false},
		{"a negative cost", with(func(r *store.Request) { r.CostUSD = -0.5 }), false},
		{"no cost", with(func(r *store.Request) { r.CostUSD = 0 }), true},
		{"a high cost", with(func(r *store.Request) { r.CostUSD = 999_999_999 }), true},
		{"an absurd cost", with(func(r *store.Request) { r.CostUSD = 1e9 }), false},
		{"no number as a cost", with(func(r *store.Request) { r.CostUSD = math.NaN() }), false},
	} {
		tx := at(objects.NewStorage(), noon)
		tx.AddRequests([]store.Request{answered(1)[0], tt.r, answered(1)[0]}, 0, 0)
		want := numbers(1, 2)
		if tt.valid {
			want = numbers(1, 3)
		}
		if got := pageOf(t, tx, 0); !slices.Equal(got, want) {
			t.Errorf("%s: stored %v", tt.name, got)
		}
	}
}

func TestDetailsOfARequestAreBounded(t *testing.T) {
	r := answered(1)[0]
	r.Failed = slices.Repeat([]store.Attempt{{ConnectionID: "a", Status: 500, Text: strings.Repeat("t", rpc.MaxErrorText+1)}, {ConnectionID: "b", Text: "short"}}, 10)
	r.Dropped = slices.Repeat([]string{"field"}, 33)
	r.Session, r.Tags = strings.Repeat("a", 17), slices.Repeat([]string{"tag", strings.Repeat("t", 401)}, 5)
	r.Headers = map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"}
	few := answered(1)[0]
	few.Dropped = []string{"field"}
	few.Tags = []string{"project=a", "sk-abcdefghijklmnopqrstuvwxyz0123456789"}
	few.Session, few.Headers = strings.Repeat("a", 16), map[string]string{"x-provider": "up", "x-long": strings.Repeat("l", 400)}
	tx := at(objects.NewStorage(), noon)
	tx.AddRequests([]store.Request{r, few}, 0, 0)
	raw, _ := tx.Get(pageRow(0))
	var got []store.Request
	if json.Unmarshal(raw, &got) != nil || len(got) != 2 {
		t.Fatalf("%s", raw)
	}
	if f := got[0].Failed; len(f) != 16 || len(f[0].Text) != rpc.MaxErrorText || f[1].Text != "short" {
		t.Errorf("failed attempts: %+v", f)
	}
	if len(got[0].Dropped) != 32 || len(got[1].Dropped) != 1 {
		t.Errorf("dropped fields: %d and %d", len(got[0].Dropped), len(got[1].Dropped))
	}
	if got[0].Session != "" || got[0].Headers != nil || got[1].Session != few.Session || len(got[1].Headers) != 1 || got[1].Headers["x-provider"] != "up" {
		t.Errorf("sessions %q and %q, headers %v and %v", got[0].Session, got[1].Session, got[0].Headers, got[1].Headers)
	}
	if len(got[0].Tags) != 4 || len(got[1].Tags) != 2 || got[1].Tags[0] != "project=a" || strings.Contains(got[1].Tags[1], "abcdef") {
		t.Errorf("tags %q and %q", got[0].Tags, got[1].Tags)
	}
	if len(r.Failed) != 20 || len(r.Failed[0].Text) != rpc.MaxErrorText+1 || len(few.Headers) != 2 {
		t.Error("the report was changed")
	}
}

// A page must stay below the size limit of a row.
func TestFullPageLeavesOutFailedAttempts(t *testing.T) {
	r := answered(1)[0]
	r.Failed = slices.Repeat([]store.Attempt{{ConnectionID: "a", Status: 500, Text: strings.Repeat("t", rpc.MaxErrorText)}}, 16)
	r.Dropped = []string{"field"}
	tx := at(objects.NewStorage(), noon)
	tx.AddRequests(slices.Repeat([]store.Request{r}, perPage), 0, 0)
	raw, _ := tx.Get(pageRow(0))
	var got []store.Request
	if json.Unmarshal(raw, &got) != nil || len(got) != perPage || len(raw) > 256<<10 {
		t.Fatalf("%d requests in %d bytes", len(got), len(raw))
	}
	if first, last := got[0], got[perPage-1]; len(first.Failed) != 16 || len(last.Failed)+len(last.Dropped) != 0 {
		t.Errorf("%d attempts of the first, %d of the last", len(first.Failed), len(last.Failed))
	}
}

// scanned returns the requests that a scan visits, and reads pages in several steps.
func scanned(tx *storage.Tx, before, after int64) (list []store.Request) {
	for next := before; next > 0; {
		next = tx.ScanRequests(next, after, func(r *store.Request) bool {
			list = append(list, *r)
			return true
		})
	}
	return list
}

// A machine that lists few and one that lists many are compared with a model: all of the
// latest, and of the older ones all failures, the slowest and the dearest.
func TestRequestsThatMatterOutliveOthers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, most := range []int64{0, 700, 12_000} {
		st := objects.NewStorage()
		var all []store.Request
		var unlisted int64
		for len(all) < 9000 {
			tx := at(st, noon)
			tx.MaxRequests = most
			batch := answered(1 + random.IntN(600))
			for i := range batch {
				r := &batch[i]
				r.ID, r.At, r.LatencyMs, r.CostUSD = fmt.Sprintf("req_%d.", len(all)+i), noon, 1+random.Int64N(1000), random.Float64()
				if random.IntN(20) == 0 {
					r.Status = 500
				}
			}
			lost := random.Int64N(3)
			unlisted += lost
			tx.AddRequests(batch, lost, 0)
			for i := range batch {
				batch[i].Seq = int64(len(all)+i) + 1 + unlisted
			}
			all = append(all, batch...)
			commit(t, st, tx)
		}
		tx := at(st, noon)
		tx.MaxRequests = most
		got := scanned(tx, 1<<53, 0)
		listed := map[int64]bool{}
		for i := range got {
			if i > 0 && got[i].Seq >= got[i-1].Seq {
				t.Fatalf("%d: %d after %d", most, got[i].Seq, got[i-1].Seq)
			}
			listed[got[i].Seq] = true
		}
		latest := max(most, storage.MaxRequests)
		if most > 0 {
			latest = most
		}
		for i := range all {
			if newest := len(all)-i <= int(latest); (newest || all[i].HasFailed()) && !listed[all[i].Seq] {
				t.Fatalf("%d: request %d of %d is not listed: %+v", most, i, len(all), all[i])
			}
		}
		slowest, dearest := 0, 0
		for i := range all {
			if all[i].LatencyMs >= 990 && listed[all[i].Seq] {
				slowest++
			}
			if all[i].CostUSD >= 0.99 && listed[all[i].Seq] {
				dearest++
			}
		}
		if slowest < 60 || dearest < 60 { // of about 90
			t.Errorf("%d: %d of the slowest, %d of the dearest", most, slowest, dearest)
		}
		counts := tx.RequestCounts()
		if counts.Kept != int64(len(got)) || counts.Total != int64(len(all))+unlisted || counts.LostFailureAt != 0 {
			t.Errorf("%d: %+v, %d listed of %d and %d", most, counts, len(got), len(all), unlisted)
		}
		for range 50 {
			before, after := random.Int64N(int64(len(all))), random.Int64N(int64(len(all)))
			var want []int64
			for i := range got {
				if got[i].Seq < before && got[i].Seq > after {
					want = append(want, got[i].Seq)
				}
			}
			var seqs []int64
			for _, r := range scanned(tx, before, after) {
				seqs = append(seqs, r.Seq)
			}
			if before > 0 && !slices.Equal(seqs, want) {
				t.Fatalf("%d: from %d to %d: got %d requests, want %d", most, after, before, len(seqs), len(want))
			}
		}
		for range 20 {
			r, found := all[random.IntN(len(all))], (*store.Request)(nil)
			for from := int64(0); ; {
				if found, from = tx.FindRequest(r.ID, from); found != nil || from == 0 {
					break
				}
			}
			if listed[r.Seq] != (found != nil) || found != nil && found.Seq != r.Seq {
				t.Errorf("%d: %s: found %+v", most, r.ID, found)
			}
		}
	}
}

func TestLostFailureIsKnown(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	tx.AddRequests(answered(1), 5, 1)
	if c := tx.RequestCounts(); c.Kept != 1 || c.Total != 6 || c.LostFailureAt != noon {
		t.Errorf("not listed: %+v", c)
	}
	failed := answered(perPage)
	for i := range failed {
		failed[i].Status, failed[i].At = 500, noon-1000
	}
	tx = at(objects.NewStorage(), noon)
	for range 2 * storage.RequestPages {
		tx.AddRequests(failed, 0, 0)
		if c := tx.RequestCounts(); c.LostFailureAt != 0 {
			t.Fatalf("none was lost: %+v", c)
		}
	}
	tx.AddRequests(failed[:1], 0, 0)
	if c := tx.RequestCounts(); c.LostFailureAt != noon-1000 || c.Kept != 9*perPage+1 || c.Total != c.Kept {
		t.Errorf("pushed out: %+v", c)
	}
}

func TestOldRequestsArePruned(t *testing.T) {
	for _, most := range []int64{0, 5000} {
		st := objects.NewStorage()
		add := func(n int, now int64) *storage.Tx {
			tx := at(st, now)
			tx.MaxRequests = most
			list := answered(n)
			for i := range list {
				list[i].At = now
			}
			tx.AddRequests(list, 0, 0)
			commit(t, st, tx)
			return tx
		}
		add(3*perPage+10, noon)
		add(perPage, noon+storage.KeepRequests/2)
		for _, step := range []struct{ at, kept int64 }{{noon + storage.KeepRequests - 1, 4*perPage + 10}, {noon + storage.KeepRequests, perPage + 10}, {noon + 2*storage.KeepRequests, 0}} {
			tx := at(st, step.at)
			tx.MaxRequests = most
			tx.PruneRequests()
			commit(t, st, tx)
			if c := tx.RequestCounts(); c.Kept != step.kept || c.Total != step.kept || len(scanned(tx, 1<<53, 0)) != int(step.kept) {
				t.Errorf("%d: kept %+v, want %d", most, c, step.kept)
			}
		}
		tx := add(3, noon+2*storage.KeepRequests)
		if got := scanned(tx, 1<<53, 0); len(got) != 3 || got[0].Seq != 4*perPage+13 || tx.RequestCounts().Total != 3 {
			t.Errorf("%d: after it %+v", most, got)
		}
		if n := len(tx.List(storage.RequestsRow + ":")); n != 1 {
			t.Errorf("%d: %d pages", most, n)
		}
	}
}

// An earlier version has stored the number of the last request alone, and used five keys
// in turn.
func TestEarlierFormOfTheListIsRead(t *testing.T) {
	for _, most := range []int64{0, 5000} {
		st := objects.NewStorage()
		const last = 7*perPage + 3
		for page := int64(3); page <= 7; page++ {
			list := answered(perPage)
			for i := range list {
				list[i].Seq, list[i].At = page*perPage+int64(i)+1, noon
			}
			if page == 7 {
				list = list[:3]
			}
			raw, _ := json.Marshal(list)
			st.Rows[fmt.Sprintf("requests:%d", page%5)] = raw
		}
		st.Rows["requests"] = fmt.Appendf(nil, "%d", last)
		tx := at(st, noon)
		tx.MaxRequests = most
		tx.AddRequests(answered(2), 0, 0)
		commit(t, st, tx)
		got := scanned(tx, 1<<53, 0)
		if len(got) != 4*perPage+5 || got[0].Seq != last+2 || got[len(got)-1].Seq != 3*perPage+1 || tx.RequestCounts().Total != int64(len(got)) {
			t.Errorf("%d: %d requests, %+v", most, len(got), tx.RequestCounts())
		}
	}
}

// A request is looked for in a number of pages at a time, each of them once.
func TestRequestIsFoundInEveryPage(t *testing.T) {
	const pages, each = 45, 20 // each: scanPages
	tx := at(objects.NewStorage(), noon)
	tx.MaxRequests = pages * perPage
	for page := range pages {
		rows := answered(perPage)
		for i := range rows {
			rows[i].ID = fmt.Sprintf("req_%d_", page)
		}
		tx.AddRequests(rows, 0, 0)
	}
	for page := range pages {
		var looked []int64
		var found *store.Request
		for from := int64(0); ; looked = append(looked, from) {
			if found, from = tx.FindRequest(fmt.Sprintf("req_%d_", page), from); from == 0 {
				break
			}
		}
		before := (pages - 1 - page) / each
		if found == nil || len(looked) != before || before > 0 && looked[0] != each || before > 1 && looked[1] != 2*each {
			t.Errorf("page %d: found %v after the pages %v", page, found != nil, looked)
		}
	}
	if found, more := tx.FindRequest("req_none", 2*each); found != nil || more != 0 {
		t.Errorf("an unknown one: %v, %d", found, more)
	}
}
