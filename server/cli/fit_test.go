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
