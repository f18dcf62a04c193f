package proxy

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
)

// A translated stream whose line never can have memory does not wait for it: it ends with
// the error of the client's dialect, and its upstream is not read any more.
func TestLineWithoutMemoryEndsTheStreamAtOnce(t *testing.T) {
	full := &memory.Budget{Elsewhere: func() (grown, others int64) { return 200 << 20, 0 }}
	tested := 0
	for _, f := range families {
		for _, d := range clients {
			name := fmt.Sprintf("%s to %v", f.prefix, d)
			w := newWorld(t, provided{prefix: f.prefix, provider: f.provider, base: f.base})
			w.Answer = func(r *fake.Seen) fake.Answer {
				head, _ := begun(upstreamDialect(t, r))
				a := events("")
				a.Pieces = head
				if upstreamDialect(t, r) == llm.Converse {
					a.Header[0].Value = "application/vnd.amazon.eventstream"
				}
				return a
			}
			reply, err := w.ask(d, request(d, f.prefix+"/m", true))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			through, ok := reply.Body.(*stream.Through)
			if !ok {
				continue // the bytes pass
			}
			to, ok := through.T.(*translator)
			if !ok {
				continue
			}
			tested++
			used := full.Used()
			full.Start(&w.call.Memory, w.call.MachineID, 0)
			out, line := "", []byte("data: "+strings.Repeat("a", 256<<10))
			if !to.Ready(line) {
				t.Errorf("%s: it waits", name)
				continue
			}
			out = string(to.Push(line, nil))
			want := "overloaded"
			if d == llm.Gemini {
				want = "UNAVAILABLE"
			}
			if !strings.Contains(out, want) || !to.Stopped() {
				t.Errorf("%s: stopped %v, %q", name, to.Stopped(), out)
			}
			to.End(nil, nil)
			if left := full.Used() - used; left != 0 {
				t.Errorf("%s: %d bytes are left", name, left)
			}
		}
	}
	if tested != 7 {
		t.Errorf("%d pairs of dialects were tested", tested)
	}
}
