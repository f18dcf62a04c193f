package host

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRequestTargetIsReadAsByWorkerd(t *testing.T) {
	n := 0
	golden(t, "targets.jsonl", func(row []json.RawMessage) {
		n++
		raw := text(t, row[0])
		path, query, ok := requestPath(raw)
		if !ok && (isNull(row[1]) || raw == "*") { // workerd answers 500 to *
			return
		}
		if wantPath, wantQuery, _ := strings.Cut(text(t, row[1]), "?"); !ok || path != wantPath || query != wantQuery {
			t.Errorf("%q: got %q %q %v, want %s", raw, path, query, ok, row[1])
		}
	})
	if n < 500 {
		t.Errorf("%d targets", n)
	}
}

func TestOrdinaryTargetDoesNotAllocate(t *testing.T) {
	for _, raw := range []string{"/v1/chat/completions", "/v1/models?a=b", "/0123456789abcdef/v1/messages?beta=true"} {
		if n := testing.AllocsPerRun(100, func() {
			if _, _, ok := requestPath(raw); !ok {
				t.Fatal(raw)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", raw, n)
		}
	}
}
