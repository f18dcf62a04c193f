package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestColumnsKeepTheirLeastWidth(t *testing.T) {
	long := cell{text: strings.Repeat("x", 40)}
	least := []int{15, 0}
	if got := fit([][]cell{{long, long}}, least, 25); !slices.Equal(got, []int{15, 8}) || least[1] != 0 {
		t.Errorf("widths %v of at least %v", got, least)
	}
}

func TestNarrowTables(t *testing.T) {
	long := cell{text: strings.Repeat("x", 40)}
	stream := table{columns: []column{{title: "ID", min: 30}, {title: "COST", min: 30, extra: true}, {title: "ERROR"}},
		rows: [][]cell{{long, long, long}}}
	if got := stream.narrowed(80).columns; len(got) != 3 {
		t.Errorf("80 columns are enough: %+v", got)
	}
	narrow := stream.narrowed(30)
	if len(narrow.columns) != 2 || narrow.columns[1].title != "ERROR" || len(narrow.rows[0]) != 2 {
		t.Errorf("30 columns: %+v", narrow)
	}
	more := table{columns: narrow.columns, rows: [][]cell{{plain("1"), plain("2")}}}
	if got, next := narrow.widths(30), more.widths(30); !slices.Equal(got, []int{23, 5}) || !slices.Equal(got, next) {
		t.Errorf("widths %v, then %v", got, next)
	}
	if got := Lines("one two threefourfive", 7); !slices.Equal(got, []string{"one two", "threefo", "urfive"}) {
		t.Errorf("lines %q", got)
	}
}

// Models and errors differ at their ends, sentences begin with what matters.
func TestWordsAreCutInTheMiddle(t *testing.T) {
	for text, want := range map[string]string{"openai/gpt-5.4-mini": "opena…-mini", "short": "short", "One two three four": "One two th…"} {
		if got := shortened(text, 11); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got := shortened("long", 1); got != "…" {
		t.Errorf("one column: %s", got)
	}
}

// At 80 columns the outcome, the duration and the cost of requests are worth more than an id, which
// is of no use if it is cut.
func TestRequestsOnNarrowTerminals(t *testing.T) {
	text := map[string]string{"TIME": "12:00:00", "KEY": "laptop", "MODEL": "openai/gpt-6.1-sol", "OUTCOME": "provider_failed",
		"DURATION": "12.3 s", "COST": "$0.00012", "STATUS": "500", "ACCOUNT": "main account", "INPUT": "12345", "OUTPUT": "12345",
		"ID": "req_0123456789abcdef0123456789abcdef", "ERROR": "server_error"}
	all := table{columns: slices.Clone(requestColumns), rows: [][]cell{{}}}
	for i, c := range all.columns {
		all.rows[0] = append(all.rows[0], plain(text[c.title]))
		all.columns[i].min = 0
	}
	for _, all := range []table{all, {columns: requestColumns, rows: all.rows}} { // a list, and a tail
		for width, want := range map[int]string{
			80:  "TIME KEY MODEL OUTCOME DURATION COST ERROR",
			130: "TIME KEY MODEL OUTCOME DURATION COST STATUS ACCOUNT INPUT OUTPUT ERROR",
			170: "TIME KEY MODEL OUTCOME DURATION COST STATUS ACCOUNT INPUT OUTPUT ID ERROR",
		} {
			got, titles := all.narrowed(width), ""
			widths := got.widths(width)
			for i, c := range got.columns {
				titles += " " + c.title
				if c.title == "ID" && widths[i] != len(text["ID"]) {
					t.Errorf("%d columns: the id has %d", width, widths[i])
				}
			}
			if titles != " "+want || sum(widths)+2*(len(widths)-1) > width {
				t.Errorf("%d columns: %s, of widths %v, want %s", width, titles, widths, want)
			}
		}
	}
}
