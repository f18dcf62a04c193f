package ir

import (
	"testing"

	"github.com/tidwall/gjson"
)

func TestCountIsAWholeNumberWithABound(t *testing.T) {
	for raw, want := range map[string]int64{
		"7": 7, "0": 0, "-1": 0, "1.9": 1, `"7"`: 0, "null": 0, "1e308": maxCount, "-1e308": 0, "1e999": maxCount,
		"9223372036854775807": maxCount, "99999999999999999999999": maxCount, "1099511627775": 1<<40 - 1,
	} {
		if got := Count(gjson.Parse(raw)); got != want {
			t.Errorf("%s: got %d, want %d", raw, got, want)
		}
	}
}
