package llm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"weir/pkg/llm"
)

// inflate makes the texts of a request long, and one of them very long.
func inflate(v any, key string, long *int) any {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			v[k] = inflate(v[k], k, long)
		}
	case []any:
		for i := range v {
			v[i] = inflate(v[i], "", long)
		}
	case string:
		if !slices.Contains([]string{"text", "content", "system", "instructions", "output"}, key) {
			return v
		}
		n := 20 << 10
		if *long++; *long == 1 {
			n = 640 << 10
		}
		return v + strings.Repeat(fmt.Sprintf(`"%d" <é> \`+"\n\t", *long), n/16)
	}
	return v
}

// A request whose long texts have escapes is translated without copying them, to the
// same values. JSON that is a string in one of the dialects is not mistaken for a text.
func TestEscapedTextsAreNotCopied(t *testing.T) {
	aside := 0
	for _, from := range clients {
		for i, body := range cases(t, "requests/"+from.String(), ".json") {
			var v any
			if json.Unmarshal(body, &v) != nil {
				continue
			}
			long := 0
			in, _ := json.Marshal(inflate(v, "", &long))
			if long == 0 {
				continue
			}
			for _, to := range upstreams {
				if to == from {
					continue
				}
				opt := options()
				opt.Tools = &llm.Tools{}
				want, dropped, err := llm.Request(from, to, in, opt)
				opt.Tools = &llm.Tools{}
				least := int64(1 << 40)
				opt.Memory = func(n int64) error { least = min(least, n); return nil }
				parts, dropped2, err2 := llm.RequestParts(from, to, in, opt)
				name := fmt.Sprintf("%s %s to %s", from, i, to)
				if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
					t.Errorf("%s: %v, want %v", name, err2, err)
				}
				if err != nil || err2 != nil {
					continue
				}
				got := bytes.Join(parts, nil)
				var a, b any
				if err := json.Unmarshal(got, &a); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				_ = json.Unmarshal(want, &b)
				if !reflect.DeepEqual(a, b) || !slices.Equal(dropped, dropped2) {
					t.Errorf("%s: another request, of %d bytes, want %d; dropped %q, want %q", name, len(got), len(want), dropped2, dropped)
				}
				if least < int64(len(in)) {
					aside++
				}
			}
		}
	}
	if aside < 100 {
		t.Errorf("the texts of %d requests were set aside", aside)
	}
}
