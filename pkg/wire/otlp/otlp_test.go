package otlp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"weir/internal/golden"
	"weir/pkg/wire/tracecontext"
)

// everything has a value of each kind, texts that need care, and empty ones.
func everything() (resource []Attr, spans []Span, metrics []Metric, logs []Log) {
	trace := tracecontext.TraceID{0: 0xab, 15: 1}
	resource = []Attr{String("service.name", "weir"), String("empty", "")}
	spans = []Span{{
		Trace: trace, ID: tracecontext.SpanID{7: 1}, Parent: tracecontext.SpanID{7: 9}, Remote: true, Flags: 1,
		Name: "POST /v1/chat/completions", Kind: Server, Start: 1_800_000_000_000_000_000, End: 1_800_000_000_250_000_000,
		Attrs: []Attr{
			String("quoted", "a \"b\" \\ \n \x00 \u2028 é 😀 \xff <script>"), Int("whole", -5), Int("zero", 0), Float("cost", 0.00125),
			Float("no", math.NaN()), True("yes"), List("list", []string{"a", "", "b"}), List("none", nil), String("long", strings.Repeat("x", 300)),
		},
		Failed: true, Message: "no answer",
	}, {Trace: trace, ID: tracecontext.SpanID{7: 2}, Name: "chat gpt", Kind: Client, Start: 1, End: 2}}
	metrics = []Metric{
		{Name: "weir.cost", Unit: "{USD}", Help: "Cost", Kind: Counter, Points: []Point{{Start: 1, At: 2, Value: 0.5, Attrs: resource}}},
		{Name: "weir.requests", Kind: Counter, Delta: true, Points: []Point{{Start: 1, At: 2, Value: 3}, {Start: 1, At: 2}}},
		{Name: "weir.state", Kind: Gauge, Points: []Point{{At: 2, Value: 1}}},
		{Name: "weir.duration", Unit: "s", Kind: Histogram, Points: []Point{{
			Start: 1, At: 2, Value: 3.5, Bounds: []float64{0.01, 1}, Buckets: []uint64{1, 0, 300}, Attrs: resource[:1],
		}}},
	}
	part := []Attr{String("type", "text"), String("content", "a \"b\" \n 😀")}
	message := []Attr{String("role", "user"), Maps("parts", [][]Attr{part, part[:1], nil}), Maps("none", nil)}
	attrs := append(resource[:2:2], Maps("messages", [][]Attr{message}))
	logs = []Log{{At: 5, Level: 17, Name: "weir.request.failed", Body: "failed", Attrs: attrs, Trace: trace, Span: tracecontext.SpanID{7: 1}, Sample: 1},
		{At: 6, Level: 13, Body: "refused", Trace: trace}}
	return resource, spans, metrics, logs
}

func bodies(f Format) map[string][]byte {
	resource, spans, metrics, logs := everything()
	return map[string][]byte{"traces": whole(f, resource, spans), "metrics": whole(f, resource, metrics), "logs": whole(f, resource, logs)}
}

func whole[E Entry](f Format, resource []Attr, list []E) []byte {
	body, _ := Body(nil, f, resource, list, math.MaxInt)
	return body
}

func TestBodyHasTheEntriesThatFit(t *testing.T) {
	resource, spans, _, _ := everything()
	many := slices.Repeat(spans, 100)
	for _, f := range []Format{Protobuf, JSON} {
		const most = 4 << 10
		body, n := Body(nil, f, resource, many, most)
		if len(body) > most || len(body) < most*3/4 || n == len(many) {
			t.Errorf("%s: %d entries in %d bytes", f.ContentType(), n, len(body))
		}
		if !bytes.Equal(body, whole(f, resource, many[:n])) {
			t.Errorf("%s: the body is not that of its %d entries", f.ContentType(), n)
		}
		if body, n := Body(nil, f, resource, many, 1); n != 1 || !bytes.Equal(body, whole(f, resource, many[:1])) {
			t.Errorf("%s: %d entries, want one that is too large", f.ContentType(), n)
		}
	}
}

func TestBodiesAreGolden(t *testing.T) {
	for signal, body := range bodies(JSON) {
		if !json.Valid(body) {
			t.Errorf("%s is not valid JSON: %s", signal, body)
		}
		golden.Bytes(t, signal+".json", append(body, '\n'))
	}
	for signal, body := range bodies(Protobuf) {
		golden.Bytes(t, signal+".hex", append(hex.AppendEncode(nil, body), '\n'))
	}
}

func TestEncodingDoesNotAllocateForEachField(t *testing.T) {
	resource, spans, _, _ := everything()
	many := make([]Span, 100)
	for i := range many {
		many[i] = spans[1]
	}
	if n := testing.AllocsPerRun(10, func() { whole(Protobuf, resource, many) }); n > 500 {
		t.Errorf("%v allocations for 100 spans", n)
	}
}

func TestRejectedCountsOnlyPartialSuccess(t *testing.T) {
	for name, c := range map[string]struct {
		answer  string
		n       int64
		message string
	}{
		"nothing":               {"", 0, ""},
		"empty JSON":            {"{}", 0, ""},
		"JSON, number":          {`{"partialSuccess":{"rejectedSpans":3,"errorMessage":"too old"}}`, 3, "too old"},
		"JSON, text":            {`{"partialSuccess":{"rejectedDataPoints":"4"}}`, 4, ""},
		"JSON, negative":        {`{"partialSuccess":{"rejectedLogRecords":-4}}`, 0, ""},
		"JSON, garbage":         {`{"partialSuccess":[`, 0, ""},
		"protobuf":              {"\x0a\x05\x08\x03\x12\x01x", 3, "x"},
		"protobuf, text first":  {"\x0a\x05\x12\x01x\x08\x03", 3, "x"},
		"protobuf, other field": {"\x15abcd\x0a\x02\x08\x03", 3, ""},
		"protobuf, only a text": {"\x0a\x03\x12\x01x", 0, "x"},
		"protobuf, cut":         {"\x0a\x7f\x08", 0, ""},
		"protobuf, endless":     {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 0, ""},
		"HTML":                  {"<html>not here</html>", 0, ""},
	} {
		if n, message := Rejected([]byte(c.answer)); n != c.n || message != c.message {
			t.Errorf("%s: %d %q, want %d %q", name, n, message, c.n, c.message)
		}
	}
}

func FuzzRejected(f *testing.F) {
	f.Add([]byte("\x0a\x05\x08\x03\x12\x01x"))
	f.Add([]byte(`{"partialSuccess":{"rejectedSpans":"3"}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if n, _ := Rejected(answer); n < 0 {
			t.Errorf("%d", n)
		}
	})
}

func BenchmarkTraces(b *testing.B) {
	resource, spans, _, _ := everything()
	many := make([]Span, 256)
	for i := range many {
		many[i] = spans[i%2]
	}
	for _, f := range []Format{Protobuf, JSON} {
		b.Run(f.ContentType(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.SetBytes(int64(len(whole(f, resource, many))))
			}
		})
	}
}
