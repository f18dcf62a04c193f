package usage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// A random sequence of attempts and calls, through any number of reports, has the same sum by
// each label as without labels.
func TestLabelsAddUpToAllUsage(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		values := 1 + rnd.IntN(3000)
		var day []Label
		var all Row
		for range 1 + rnd.IntN(40) {
			var report []Label
			for range rnd.IntN(300) {
				row := Row{KeyID: fmt.Sprint("k", rnd.IntN(4)), Requests: 1, InputTokens: rnd.Int64N(1000), OutputTokens: rnd.Int64N(50),
					CostUSD: rnd.Float64(), Errors: rnd.Int64N(2)}
				row.Call(rnd.Int64N(9000), 0, []string{"succeeded", "refused", "left", "provider_failed"}[rnd.IntN(4)], "budget")
				all.AddCounts(&row)
				report = AddLabel(report, ByTool, "", fmt.Sprint(rnd.IntN(5)), &row)
				report = AddLabel(report, ByName, "project", fmt.Sprint(rnd.IntN(values)), &row)
			}
			day = AddLabels(day, report, MaxValues)
		}
		for i := range day {
			l := &day[i]
			var sum Row
			seen := map[string]bool{}
			for j := range l.Rows {
				sum.AddCounts(&l.Rows[j].Row)
				if pair := l.Rows[j].Value + "\n" + l.Rows[j].KeyID; seen[pair] {
					t.Fatalf("seed %d: two rows of %q", seed, pair)
				} else {
					seen[pair] = true
				}
			}
			got, want := sum.counts(), all.counts()
			for n := range got {
				if *got[n] != *want[n] {
					t.Fatalf("seed %d, %s: count %d is %d, want %d", seed, l.Kind, n, *got[n], *want[n])
				}
			}
			if math.Abs(sum.CostUSD-all.CostUSD) > 1e-6 || len(l.Rows) > MaxValues+maxOthers {
				t.Fatalf("seed %d, %s: $%v of $%v in %d rows", seed, l.Kind, sum.CostUSD, all.CostUSD, len(l.Rows))
			}
		}
	}
}

// 100,000 invented names, values and keys are few rows.
func TestInventedLabelsAreBounded(t *testing.T) {
	var day []Label
	for n := range 1000 {
		var report []Label
		for i := range 100 {
			invented := fmt.Sprint(n*100 + i)
			row := Row{KeyID: invented, Requests: 1}
			report = AddLabel(report, ByName, "n"+invented, "v", &row)
			report = AddLabel(report, ByName, "project", invented, &row)
		}
		if rows := rowsOf(report); len(report) > maxLabels || rows > maxLabels*(maxReported+maxOthers) {
			t.Fatalf("a report has %d labels and %d rows", len(report), rows)
		}
		day = AddLabels(day, report, MaxValues)
	}
	if len(day) > maxLabels || rowsOf(day) > maxLabels*(MaxValues+maxOthers) {
		t.Errorf("a day has %d labels and %d rows", len(day), rowsOf(day))
	}
	var bad []Label
	long := strings.Repeat("l", maxLabel+1)
	bad = AddLabel(bad, ByName, "project", long, &Row{Requests: 1})
	bad = AddLabel(bad, ByName, long, "v", &Row{Requests: 1})
	bad = AddLabels(bad, []Label{{Kind: ByName, Name: "project", Rows: []LabelRow{{"v", Row{Requests: -1}}, {long, Row{}}}}}, 10)
	if rowsOf(bad) != 0 {
		t.Errorf("invalid rows are added: %+v", bad)
	}
}

func rowsOf(list []Label) (n int) {
	for i := range list {
		n += len(list[i].Rows)
	}
	return n
}

func TestOtherStandsForFurtherValues(t *testing.T) {
	var list []Label
	for i := range maxReported {
		list = AddLabel(list, ByName, "n", fmt.Sprint(i), &Row{KeyID: "a", Requests: 1})
	}
	for _, key := range []string{"a", "b", "a"} {
		list = AddLabel(list, ByName, "n", "new", &Row{KeyID: key, Requests: 1})
	}
	list = AddLabel(list, ByName, "n", "7", &Row{KeyID: "a", Requests: 1})
	rows := list[0].Rows
	if len(rows) != maxReported+2 || rows[7].Requests != 2 || rows[maxReported].Value != Other || rows[maxReported].KeyID != "a" ||
		rows[maxReported].Requests != 2 || rows[maxReported+1].KeyID != "b" {
		t.Errorf("got %+v", rows[maxReported:])
	}
}

// A full label adds to the rows that it has, the first included.
func TestFullLabelAddsToItsRows(t *testing.T) {
	l := Label{Kind: "tag", Name: "team"}
	row := func(value string) LabelRow { return LabelRow{Value: value, Row: Row{KeyID: "k", Requests: 1}} }
	l.Add([]LabelRow{row("a"), row("b"), row("a"), row("b"), row("c")}, 2)
	got := ""
	for _, r := range l.Rows {
		got += fmt.Sprint(r.Value, r.Requests, " ")
	}
	if want := fmt.Sprint("a2 b2 ", Other, "1 "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !l.Is("tag", "team") || l.Is("tag", "project") || l.Is("tool", "team") {
		t.Error("the label is another one")
	}
}

func TestLessLeavesWhatEitherHasMore(t *testing.T) {
	row := Row{Requests: 5, InputTokens: 10, OutputTokens: 1, CostUSD: 0.5}
	part := Row{Requests: 3, InputTokens: 12, OutputTokens: 1, CostUSD: 0.75}
	row.Causes[0], part.Causes[0] = 4, 1
	row.Less(&part)
	if row.Requests != 2 || row.InputTokens != 0 || row.OutputTokens != 0 || row.CostUSD != 0 || row.Causes[0] != 3 {
		t.Errorf("left of the row: %+v", row)
	}
	if part.Requests != 0 || part.InputTokens != 2 || part.OutputTokens != 0 || part.CostUSD != 0.25 || part.Causes[0] != 0 {
		t.Errorf("left of the part: %+v", part)
	}
}
