package tracecontext

import (
	"strings"
	"testing"

	"weir/pkg/wire/httpmsg"
)

const valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestTraceparentIsParsedByTheRecommendation(t *testing.T) {
	tail := valid[2:]
	for name, c := range map[string]struct {
		in string
		ok bool
	}{
		"valid":                    {valid, true},
		"not sampled":              {valid[:53] + "00", true},
		"random trace id":          {valid[:53] + "03", true},
		"later version":            {"01" + tail, true},
		"later version, longer":    {"cc" + tail + "-more", true},
		"later version, no hyphen": {"cc" + tail + ".more", false},
		"later version, a digit":   {"cc" + tail + "0", false},
		"version ff":               {"ff" + tail, false},
		"version in upper case":    {"0A" + tail, false},
		"version 00, longer":       {valid + "-more", false},
		"version 00, hyphen":       {valid + "-", false},
		"short":                    {valid[:54], false},
		"empty":                    {"", false},
		"upper case":               {strings.ToUpper(valid), false},
		"trace id in upper case":   {"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false},
		"zero trace id":            {"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", false},
		"zero parent id":           {"00-0af7651916cd43dd8448eb211c80319c-" + strings.Repeat("0", 16) + "-01", false},
		"no hexadecimal digit":     {"00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01", false},
		"flags not hexadecimal":    {valid[:53] + "0x", false},
		"wrong separator":          {"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false},
		"two fields as one":        {valid + ", " + valid, false},
	} {
		got, ok := Parse(c.in)
		if ok != c.ok {
			t.Errorf("%s: Parse(%q) = %v, want %v", name, c.in, ok, c.ok)
		}
		if !ok && got != (Context{}) {
			t.Errorf("%s: an invalid field leaves %v", name, got)
		}
	}
	c, _ := Parse(valid)
	if c.Field() != valid || c.Flags != Sampled {
		t.Errorf("Field() = %s, want %s", c.Field(), valid)
	}
}

func TestSeveralTraceparentsAreIgnored(t *testing.T) {
	one := httpmsg.Field{Name: Parent, Value: valid}
	if got := Of(httpmsg.Header{{Name: "a", Value: "b"}, one}); got != valid {
		t.Errorf("one field = %q", got)
	}
	for _, h := range []httpmsg.Header{nil, {one, one}, {{Name: Parent, Value: "x"}, one}, {one, {Name: Parent, Value: "x"}}} {
		if got := Of(h); got != "" {
			t.Errorf("%v = %q, want none", h, got)
		}
	}
}

func TestTracestateKeepsWholeMembers(t *testing.T) {
	state := func(values ...string) string {
		var h httpmsg.Header
		for _, v := range values {
			h.Add(State, v)
		}
		return StateOf(h)
	}
	if got := state("a=1, b=2 ,", "c=3"); got != "a=1,b=2,c=3" {
		t.Errorf("members = %q", got)
	}
	if got := state("a=1,b=" + strings.Repeat("x", 510)); got != "a=1" {
		t.Errorf("a member that does not fit is cut: %q", got)
	}
	if got := state(strings.Repeat("a=1,", 40)); strings.Count(got, "=") != 32 {
		t.Errorf("%d members, want 32", strings.Count(got, "="))
	}
	if got := state("a=1,b\x01=2"); got != "a=1" {
		t.Errorf("control characters pass: %q", got)
	}
}

func TestTraceOfRequestIsItsID(t *testing.T) {
	const id = "req_0123456789abcdef0123456789abcdef"
	root := ForRequest(id, "")
	if got := root.Field(); got[3:35] != id[4:] || root.Span != (SpanID{}) {
		t.Errorf("root = %s", got)
	}
	if got := ForRequest(id, valid).Field(); got != valid {
		t.Errorf("with a caller = %s", got)
	}
	seen := map[SpanID]bool{}
	for _, id := range []string{id, "req_f123456789abcdef0123456789abcdef", "req_" + strings.Repeat("0", 32), "another"} {
		for n := range 6 {
			seen[SpanOf(id, n)] = true
		}
	}
	if len(seen) != 24 || seen[SpanID{}] {
		t.Errorf("%d different ids of spans, want 24, none zero", len(seen))
	}
	if ForRequest("req_"+strings.Repeat("0", 32), "").Trace == (TraceID{}) {
		t.Error("the trace id is zero")
	}
}

func TestRatioFollowsTheLastSevenBytes(t *testing.T) {
	id := func(last string) TraceID {
		c, ok := Parse("00-ffffffffffffffffff" + last + "-b7ad6b7169203331-01")
		if !ok {
			t.Fatal(last)
		}
		return c.Trace
	}
	low, half, high := id("00000000000000"), id("80000000000000"), id("ffffffffffffff")
	for _, c := range []struct {
		id      TraceID
		percent float64
		in      bool
	}{
		{low, 0, false}, {low, 0.001, true}, {half, 50, false}, {half, 50.1, true}, {high, 99.99, false}, {high, 100, true},
	} {
		if got := c.id.InRatio(c.percent); got != c.in {
			t.Errorf("%x in %v %% = %v", c.id, c.percent, got)
		}
	}
}

func TestRequestsWithoutTraceAllocateNothing(t *testing.T) {
	h := httpmsg.Header{{Name: "authorization", Value: "Bearer x"}, {Name: "content-type", Value: "application/json"}}
	if n := testing.AllocsPerRun(100, func() { _ = Of(h) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(valid)
	f.Add("cc" + valid[2:] + "-more")
	f.Fuzz(func(t *testing.T, s string) {
		c, ok := Parse(s)
		if ok && (c.Field()[2:55] != s[2:55] || c.Trace == (TraceID{}) || c.Span == (SpanID{})) {
			t.Errorf("Parse(%q) = %v", s, c)
		}
	})
}
