package accounts

import (
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/tracecontext"
)

const (
	callersTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	requestID    = "req_0123456789abcdef0123456789abcdef"
)

func TestTraceContextGoesToNamedHostsOnly(t *testing.T) {
	sent := func(hosts []string, header ...httpmsg.Field) []*fake.Seen {
		w := newWorld(t).add(accounts("ab")...)
		w.script[key("a")] = []fake.Answer{{Status: 500}}
		w.machine.Settings.TraceUpstream = hosts
		w.req.ID, w.req.Header = requestID, header
		if _, e := w.send(); e != nil {
			t.Fatal(e)
		}
		return w.Seen
	}
	caller := httpmsg.Field{Name: tracecontext.Parent, Value: callersTrace}
	state := httpmsg.Field{Name: tracecontext.State, Value: "a=1"}
	for _, hosts := range [][]string{nil, {"other.example"}, {"up.example:8443"}} {
		for _, seen := range sent(hosts, caller, state) {
			h := seen.Request.Header
			if got := h.Get(tracecontext.Parent) + h.Get(tracecontext.State); got != "" {
				t.Errorf("%v: the provider gets %q", hosts, got)
			}
		}
	}
	for i, seen := range sent([]string{"other.example", "up.example"}, caller, state) {
		want, _ := tracecontext.Parse(callersTrace)
		want.Span = tracecontext.SpanOf(requestID, i+1)
		h := seen.Request.Header
		if h.Get(tracecontext.Parent) != want.Field() || h.Get(tracecontext.State) != "a=1" {
			t.Errorf("attempt %d: %v", i+1, h)
		}
	}
	for i, seen := range sent([]string{"up.example"}, state) {
		want := "00-" + requestID[4:] + tracecontext.Context{Span: tracecontext.SpanOf(requestID, i+1), Flags: 1}.Field()[35:]
		h := seen.Request.Header
		if h.Get(tracecontext.Parent) != want || h.Get(tracecontext.State) != "" {
			t.Errorf("root, attempt %d: %v, want %s", i+1, h, want)
		}
	}
}

func TestRecordHasTraceparentIfValid(t *testing.T) {
	for _, c := range [][2]string{{callersTrace, callersTrace}, {callersTrace[:54], ""}, {"", ""}} {
		w := newWorld(t).add(accounts("a")...)
		w.req.Header = httpmsg.Header{{Name: tracecontext.Parent, Value: c[0]}}
		if got := w.recorded(w.kind("llm"), time.Millisecond).Get("requests.0.traceparent").Str; got != c[1] {
			t.Errorf("%q is recorded as %q", c[0], got)
		}
	}
}
