package usage

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"weir/pkg/catalog"
	"weir/pkg/llm"
)

// The costs of testdata/calls.tsv are computed apart from the program, in decimal
// arithmetic, from the prices on the vendors' pages; the last column has the working.
// A new price in the catalogue changes its lines.
func TestCostsComputedByHand(t *testing.T) {
	text, err := os.ReadFile("testdata/calls.tsv")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' {
			continue
		}
		calls++
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 20 {
			t.Fatalf("%d fields: %q", len(f), line)
		}
		n := func(i int) int64 {
			v, err := strconv.ParseInt("0"+f[i], 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			return v
		}
		u := llm.Usage{
			Known: f[2] != "", Input: n(2), Output: n(3), CacheRead: n(4), CacheWrite: n(5), CacheWriteHour: n(6),
			AudioInput: n(7), AudioOutput: n(8), ImageInput: n(9), ImageOutput: n(10), Searches: n(11), Service: f[12],
		}
		seconds, _ := strconv.ParseFloat("0"+f[14], 64)
		m := &Media{Images: n(13), Seconds: seconds, Characters: n(15), Requests: n(16), Options: strings.Fields(f[17])}
		got, known := Cost(catalog.PriceOf(f[0], f[1]).With(catalog.ToolPrice(f[0], f[1])), &u, m)
		want, err := strconv.ParseFloat(f[18], 64)
		if known != (err == nil) || known && math.Abs(got-want) > 1e-9 {
			t.Errorf("%s/%s: got %v %v, want %s = %s", f[0], f[1], got, known, f[18], f[19])
		}
	}
	if calls < 200 {
		t.Errorf("%d calls, want 200", calls)
	}
}
