package golden

import (
	"strings"
	"testing"
)

func TestDifferenceShowsOnlyTheLinesThatDiffer(t *testing.T) {
	many := strings.Repeat("x\n", maxShown+2)
	for _, tt := range []struct{ name, want, got, shown string }{
		{"changed", "a\nb\nc\n", "a\nB\nc\n", "line 2:\n- b\n+ B\n"},
		{"added", "a\nc\n", "a\nb\nc\n", "line 2:\n+ b\n"},
		{"removed", "a\nb\nc\n", "a\nc\n", "line 2:\n- b\n"},
		{"empty", "", "a", "line 1:\n- \n+ a\n"},
		{"long", "a\nz", "a\n" + many + "z", "line 2:\n" + strings.Repeat("+ x\n", maxShown) + "+ … 2 more lines\n"},
	} {
		if shown := difference([]byte(tt.want), []byte(tt.got)); shown != tt.shown {
			t.Errorf("%s: got\n%s", tt.name, shown)
		}
	}
}
