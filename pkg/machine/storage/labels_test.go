package storage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
	"weir/pkg/usage"
)

// labelled returns labels with a call for each value of a tag.
func labelled(name string, values ...string) (list []usage.Label) {
	for _, v := range values {
		list = usage.AddLabel(list, usage.ByName, name, v, &usage.Row{KeyID: "k", Requests: 1, CostUSD: 0.25})
	}
	return list
}

// labelsOf returns the values of a tag with their attempts, by day.
func labelsOf(tx *storage.Tx, from, to int64, name string) string {
	var out []string
	tx.Labels(from, to, usage.ByName, name, func(day string, r *usage.LabelRow) {
		out = append(out, fmt.Sprintf("%s %s=%d $%v", day[8:], r.Value, r.Requests, r.CostUSD))
	})
	return strings.Join(out, ", ")
}

func TestLabelsAreStoredByDay(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	tx.AddLabels(noon, labelled("project", "a", "b", "a"))
	tx.AddLabels(noon, labelled("team", "x"))
	commit(t, st, tx)
	first := len(st.Listed(""))
	tx = at(st, noon+day)
	tx.AddLabels(noon+day, labelled("project", "a"))
	commit(t, st, tx)
	tx = at(st, noon+day)
	want := fmt.Sprintf("%s a=2 $0.5, %[1]s b=1 $0.25, %s a=1 $0.25", storage.DayOf(noon)[8:], storage.DayOf(noon + day)[8:])
	if got := labelsOf(tx, noon, noon+day, "project"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := tx.TagNames(noon); len(got) != 2 || !slices.Contains(got, "team") || !slices.Contains(got, "project") {
		t.Errorf("names %q", got)
	}
	// Those of the day are a part of the activity row; those of an earlier day have one each.
	if rows := len(st.Listed("")); first != 1 || rows != 3 {
		t.Errorf("%d and then %d rows", first, rows)
	}
	tx = at(st, noon+400*day)
	tx.PruneUsage()
	if got := labelsOf(tx, noon, noon+day, "project"); got != "" {
		t.Errorf("after 400 days: %s", got)
	}
}

// Tags that a client invents are a bounded number of rows and bytes of a day, and a bounded
// number of rows that are written.
func TestInventedTagsAreBoundedRowsOfADay(t *testing.T) {
	st := objects.NewStorage()
	for n := range 100 {
		tx := at(st, noon+int64(n)*10_000)
		var list []usage.Label
		for i := range 1000 {
			tag := fmt.Sprintf("%s%d", strings.Repeat("v", 40), n*1000+i)
			list = usage.AddLabel(list, usage.ByName, "project", tag, &usage.Row{KeyID: "key00000000000000001", Requests: 1, InputTokens: 1e6, CostUSD: 0.123456789})
			list = usage.AddLabel(list, usage.ByName, tag[30:], tag, &usage.Row{Requests: 1})
		}
		tx.AddLabels(tx.Now, list)
		commit(t, st, tx)
	}
	tx := at(st, noon+1_000_000)
	if names := tx.TagNames(noon); len(names) != usage.MaxTagNames {
		t.Errorf("%d names", len(names))
	}
	size, sum := 0, int64(0)
	for _, r := range st.Listed("") {
		size += len(r.Value)
	}
	tx.Labels(noon, noon, usage.ByName, "project", func(_ string, r *usage.LabelRow) { sum += r.Requests })
	if sum != 100_000 || size > 512<<10 || len(st.Listed("")) > 2+usage.MaxTagNames {
		t.Errorf("%d of 100000 attempts, %d bytes in %d rows", sum, size, len(st.Listed("")))
	}
}

func BenchmarkAddLabels(b *testing.B) {
	st := objects.NewStorage()
	tx := at(st, noon)
	for i := range 2 * usage.MaxValues {
		tx.AddLabels(noon, labelled("project", fmt.Sprint("value-", i)))
	}
	list := labelled("project", "value-1", "value-2", "new-1", "new-2")
	b.ReportAllocs()
	for b.Loop() {
		tx.AddLabels(noon, list)
	}
}

// A thousand values whose JSON is long do not make a row that cannot be stored.
func TestRowOfALabelIsBoundedInBytes(t *testing.T) {
	st := objects.NewStorage()
	const calls = 1100
	for from := 0; from < calls; from += 100 {
		var list []usage.Label
		for i := range 100 {
			row := usage.Row{KeyID: fmt.Sprintf("key%017d", from+i), Requests: 1e9, Errors: 1e9, InputTokens: 1e12, OutputTokens: 1e12,
				ReasoningTokens: 1e12, CacheReadTokens: 1e12, CacheWriteTokens: 1e12, CostUSD: 0.123456789, LatencyMs: 1e12, Calls: 1,
				FailedCalls: 1e9, LeftCalls: 1e9, RefusedBudget: 1e9, RefusedKey: 1e9, RefusedModel: 1e9, RefusedRequest: 1e9, Unpriced: 1e9,
				Estimated: 1e9, FirstTokenMs: 1e12, RefusedKeyLimit: 1e9, RefusedConcurrency: 1e9}
			list = usage.AddLabel(list, usage.ByName, "project", fmt.Sprint(strings.Repeat("<", 60), from+i), &row)
		}
		tx := at(st, noon)
		tx.AddLabels(noon, list)
		commit(t, st, tx) // fails if the row is too large
	}
	tx := at(st, noon)
	size, rows, sum := 0, 0, int64(0)
	for _, r := range tx.List(storage.LabelPrefix) {
		size = len(r.Value)
	}
	tx.Labels(noon, noon, usage.ByName, "project", func(_ string, r *usage.LabelRow) {
		rows++
		sum += r.Calls
	})
	if size > 512<<10 || rows < 100 || sum != calls {
		t.Errorf("%d rows of %d bytes have %d calls", rows, size, sum)
	}
}

// countedReads counts the rows that are read one by one.
type countedReads struct {
	storage.Storage
	gets int
}

func (c *countedReads) Get(key string) ([]byte, error) {
	c.gets++
	return c.Storage.Get(key)
}

// A report from the year 1 on does not look for a row of each day since.
func TestLabelsOfManyYearsReadFewRows(t *testing.T) {
	st := &countedReads{Storage: objects.NewStorage()}
	tx := storage.Open(st, "m", time.UnixMilli(noon), func(*storage.Tx) int64 { return 0 })
	tx.AddLabels(noon, labelled("project", "a"))
	got := 0
	tx.Labels(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), noon, usage.ByName, "project", func(string, *usage.LabelRow) { got++ })
	if got != 1 || st.gets > 500 {
		t.Errorf("%d rows after %d reads", got, st.gets)
	}
}
