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
