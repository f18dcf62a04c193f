package store

import (
	"fmt"
	"testing"

	"weir/pkg/wire/quota"
)

func TestQuotaOver(t *testing.T) {
	const at = int64(1_800_000_000_000)
	for _, tt := range []struct {
		name string
		w    quota.Window
		end  int64 // after at
	}{
		{"until the reset", quota.Window{ResetsAt: at + 300_000, Span: 86400}, 300_000},
		{"a near reset is shown for a minute", quota.Window{ResetsAt: at + 12, Span: 86400}, 60_000},
		{"without a reset for its span", quota.Window{Span: 3600}, 3_600_000},
		{"without both for a minute", quota.Window{}, 60_000},
	} {
		tt.w.At = at
		if QuotaOver(&tt.w, at+tt.end-1) || !QuotaOver(&tt.w, at+tt.end) {
			t.Errorf("%s: want it over after %d ms", tt.name, tt.end)
		}
	}
}

func TestMergeWindows(t *testing.T) {
	w := func(name, model string, left float64, at int64) quota.Window {
		return quota.Window{Name: name, Model: model, Left: left, At: at}
	}
	list := MergeWindows(nil, []quota.Window{w("5h", "", 0.5, 10), w("requests", "a", 0.5, 10), w("requests", "b", 0.5, 10)}, 10)
	list = MergeWindows(list, []quota.Window{w("5h", "", 0.4, 9), w("requests", "a", 0.3, 11), w("requests", "b", 0.2, 10)}, 11)
	want := []float64{0.5, 0.3, 0.2} // older, newer, at the same time
	for i := range want {
		if list[i].Left != want[i] {
			t.Errorf("%s %s: left %v, want %v", list[i].Name, list[i].Model, list[i].Left, want[i])
		}
	}
	if list = MergeWindows(list, nil, 60_010); len(list) != 1 || list[0].Model != "a" {
		t.Errorf("after a minute: %+v", list)
	}
	list = nil
	for i := range 3 * MaxWindows {
		list = MergeWindows(list, []quota.Window{w("requests", fmt.Sprint(i), 0.5, int64(i))}, int64(i))
	}
	if len(list) != MaxWindows || list[0].Model != fmt.Sprint(2*MaxWindows) {
		t.Errorf("%d windows, the first of %s", len(list), list[0].Model)
	}
}
