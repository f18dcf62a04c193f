package redact

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// PanicLine returns the log line of a panic with its stack, for the host that
// recovers from it. The value of a panic may contain data of a request, so only
// errors of the runtime are written.
func PanicLine(requestID string, p any) string {
	what := fmt.Sprintf("%T", p)
	if e, ok := p.(runtime.Error); ok {
		what = e.Error()
	}
	var frames []string
	for _, l := range strings.Split(string(debug.Stack()), "\n") {
		if l, ok := strings.CutPrefix(l, "\t"); ok && !strings.Contains(l, "/runtime/") {
			l, _, _ = strings.Cut(l, " +")
			frames = append(frames, l)
		}
	}
	return fmt.Sprintf(`{"level":"error","msg":"panic","request_id":%q,"what":%q,"stack":%q}`, requestID, what, frames)
}
