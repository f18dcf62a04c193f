package storage_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

const perPage = storage.RequestsPerPage

// answered returns the records of n requests.
func answered(n int) []store.Request {
	return slices.Repeat([]store.Request{{ID: "req", Endpoint: "/v1/embeddings", Status: 200, Attempts: 1}}, n)
}

// pageOf returns the numbers of the requests in a page.
func pageOf(t *testing.T, tx *storage.Tx, page int64) (numbers []int64) {
	t.Helper()
	raw, ok := tx.Get(storage.RequestKey(page))
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
			tx.AddRequests(answered(n))
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			st.Flush()
			last += int64(n)
		}
		tx := at(st, noon)
		var stored int64
		if tx.Load(storage.RequestsRow, &stored); stored != last {
			t.Errorf("%v: the last is %d", batches, stored)
		}
		if n := len(tx.List(storage.RequestsRow + ":")); n > storage.RequestPages {
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
	tx.AddRequests(nil)
	if tx.AddRequests([]store.Request{{Status: 1}}); len(tx.Order) != 0 {
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
		tx.AddRequests([]store.Request{answered(1)[0], tt.r, answered(1)[0]})
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
	few := answered(1)[0]
	few.Dropped = []string{"field"}
	tx := at(objects.NewStorage(), noon)
	tx.AddRequests([]store.Request{r, few})
	raw, _ := tx.Get(storage.RequestKey(0))
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
	if len(r.Failed) != 20 || len(r.Failed[0].Text) != rpc.MaxErrorText+1 {
		t.Error("the report was changed")
	}
}

// A page must stay below the size limit of a row.
func TestFullPageLeavesOutFailedAttempts(t *testing.T) {
	r := answered(1)[0]
	r.Failed = slices.Repeat([]store.Attempt{{ConnectionID: "a", Status: 500, Text: strings.Repeat("t", rpc.MaxErrorText)}}, 16)
	r.Dropped = []string{"field"}
	tx := at(objects.NewStorage(), noon)
	tx.AddRequests(slices.Repeat([]store.Request{r}, perPage))
	raw, _ := tx.Get(storage.RequestKey(0))
	var got []store.Request
	if json.Unmarshal(raw, &got) != nil || len(got) != perPage || len(raw) > 256<<10 {
		t.Fatalf("%d requests in %d bytes", len(got), len(raw))
	}
	if first, last := got[0], got[perPage-1]; len(first.Failed) != 16 || len(last.Failed)+len(last.Dropped) != 0 {
		t.Errorf("%d attempts of the first, %d of the last", len(first.Failed), len(last.Failed))
	}
}
