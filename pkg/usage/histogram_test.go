package usage

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestPercentileIsNearTheTrueOne(t *testing.T) {
	for _, tt := range []struct {
		name string
		of   func(i int) int64 // the duration of call i of 1000
	}{
		{"even", func(i int) int64 { return int64(20 + i*7) }},
		{"growing", func(i int) int64 { return int64(20 * math.Exp(float64(i)/100)) }},
		{"equal", func(int) int64 { return 777 }},
		{"two groups", func(i int) int64 { return []int64{90, 40_000}[i/900] }},
	} {
		var h Histogram
		var all []int64
		for i := range 1000 {
			all = append(all, tt.of(i))
			h.Observe(tt.of(i))
		}
		slices.Sort(all)
		for _, p := range []int64{1, 50, 90, 95, 99, 100} {
			want := all[(len(all)*int(p)+99)/100-1]
			if got := h.Percentile(p); math.Abs(float64(got-want)) > 0.2*float64(want) {
				t.Errorf("%s: p%d is %d ms, want about %d", tt.name, p, got, want)
			}
		}
	}
}

func TestHistogramOfExtremes(t *testing.T) {
	var h Histogram
	if got := h.Percentile(95); got != 0 {
		t.Errorf("without durations: %d", got)
	}
	for i := range len(h) - 1 {
		if BucketEnd(i+1) <= BucketEnd(i) {
			t.Errorf("bucket %d ends at %d, the next at %d", i, BucketEnd(i), BucketEnd(i+1))
		}
	}
	h.Observe(-1)
	h.Observe(0)
	h.Observe(math.MaxInt64)
	if h[0] != 2 || h[len(h)-1] != 1 || h.Percentile(50) != 16 || h.Percentile(100) < 524_000 || h.Percentile(100) > 741_000 {
		t.Errorf("got %v", h)
	}
}

func TestHistogramJSON(t *testing.T) {
	var h Histogram
	for _, ms := range []int64{600, 700, 710, 2000} {
		h.Observe(ms)
	}
	raw, err := json.Marshal(h)
	if err != nil || string(raw) != "[11,3,14,1]" {
		t.Errorf("got %s %v", raw, err)
	}
	read := Histogram{3: 9}
	if err := json.Unmarshal(raw, &read); err != nil || read != h {
		t.Errorf("read %v %v", read, err)
	}
	for _, bad := range []string{"[1]", "[32,1]", "[0,-1]", "[0,4294967296]", `"x"`, "[0,1.5]", "[" + strings.Repeat("0,1,", 32) + "0,1]"} {
		if json.Unmarshal([]byte(bad), &read) == nil {
			t.Errorf("%s was read", bad)
		}
	}
	raw, _ = json.Marshal(Row{})
	if strings.Contains(string(raw), "latency") || strings.Contains(string(raw), "firstToken") {
		t.Errorf("an empty histogram is written: %s", raw)
	}
}
