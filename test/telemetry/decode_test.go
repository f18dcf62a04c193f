package telemetry

import (
	"bytes"
	"encoding/hex"
	"math"
	"os"
	"reflect"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	logs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// body returns a body of pkg/wire/otlp, which has a value of each kind.
func body(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("../../pkg/wire/otlp/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.TrimSpace(b)
	if b[0] == '{' {
		return b
	}
	raw, err := hex.DecodeString(string(b))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// known fails for a body with fields that the message, or one within it, does not have.
func known(t *testing.T, m proto.Message, body []byte) {
	t.Helper()
	must(t, proto.Unmarshal(body, m))
	if n := unknown(m.ProtoReflect()); n > 0 {
		t.Errorf("%T: %d bytes of unknown fields", m, n)
	}
}

func unknown(m protoreflect.Message) int {
	n := len(m.GetUnknown())
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				n += unknown(v.List().Get(i).Message())
			}
		default:
			n += unknown(v.Message())
		}
		return true
	})
	return n
}

func TestProtobufHasOnlyKnownFields(t *testing.T) {
	known(t, &traces.ExportTraceServiceRequest{}, body(t, "traces.hex"))
	known(t, &metrics.ExportMetricsServiceRequest{}, body(t, "metrics.hex"))
	known(t, &logs.ExportLogsServiceRequest{}, body(t, "logs.hex"))
}

func TestTracesAreRead(t *testing.T) {
	for _, name := range []string{"traces.hex", "traces.json"} {
		r := ptraceotlp.NewExportRequest()
		if name == "traces.json" {
			must(t, r.UnmarshalJSON(body(t, name)))
		} else {
			must(t, r.UnmarshalProto(body(t, name)))
		}
		rs := r.Traces().ResourceSpans().At(0)
		text(t, name, rs.Resource().Attributes(), "service.name", "weir")
		spans := rs.ScopeSpans().At(0).Spans()
		if spans.Len() != 2 || rs.ScopeSpans().At(0).Scope().Name() != "weir" {
			t.Fatalf("%s: %d spans", name, spans.Len())
		}
		s := spans.At(0)
		for what, ok := range map[string]bool{
			"trace id": s.TraceID().String() == "ab000000000000000000000000000001", "span id": s.SpanID().String() == "0000000000000001",
			"parent": s.ParentSpanID().String() == "0000000000000009", "name": s.Name() == "POST /v1/chat/completions",
			"kind": s.Kind() == ptrace.SpanKindServer, "start": s.StartTimestamp() == 1_800_000_000_000_000_000,
			"end": s.EndTimestamp() == 1_800_000_000_250_000_000, "status": s.Status().Code() == ptrace.StatusCodeError,
			"message": s.Status().Message() == "no answer", "flags": s.Flags() == 0x301,
			"second": spans.At(1).Kind() == ptrace.SpanKindClient && spans.At(1).Flags() == 0x100 && spans.At(1).ParentSpanID().IsEmpty(),
		} {
			if !ok {
				t.Errorf("%s: wrong %s", name, what)
			}
		}
		a := s.Attributes()
		text(t, name, a, "quoted", "a \"b\" \\ \n \x00 \u2028 é 😀 \uFFFD <script>")
		whole, _ := a.Get("whole")
		zero, _ := a.Get("zero")
		cost, _ := a.Get("cost")
		yes, _ := a.Get("yes")
		list, _ := a.Get("list")
		if whole.Int() != -5 || zero.Type() != pcommon.ValueTypeInt || cost.Double() != 0.00125 || !yes.Bool() ||
			list.Slice().Len() != 3 || list.Slice().At(2).Str() != "b" {
			t.Errorf("%s: attributes %v", name, a.AsRaw())
		}
	}
}

func text(t *testing.T, name string, m pcommon.Map, key, want string) {
	t.Helper()
	if v, ok := m.Get(key); !ok || v.Str() != want {
		t.Errorf("%s: %s = %q, want %q", name, key, v.AsString(), want)
	}
}

func TestMetricsAreRead(t *testing.T) {
	for _, name := range []string{"metrics.hex", "metrics.json"} {
		r := pmetricotlp.NewExportRequest()
		if name == "metrics.json" {
			must(t, r.UnmarshalJSON(body(t, name)))
		} else {
			must(t, r.UnmarshalProto(body(t, name)))
		}
		list := r.Metrics().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
		cost, requests, state, duration := list.At(0), list.At(1), list.At(2), list.At(3)
		h := duration.Histogram().DataPoints().At(0)
		for what, ok := range map[string]bool{
			"unit": cost.Unit() == "{USD}", "sum": cost.Sum().IsMonotonic() && cost.Sum().DataPoints().At(0).DoubleValue() == 0.5,
			"cumulative": cost.Sum().AggregationTemporality() == pmetric.AggregationTemporalityCumulative,
			"delta":      requests.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta,
			"points":     requests.Sum().DataPoints().Len() == 2, "gauge": state.Gauge().DataPoints().At(0).DoubleValue() == 1,
			"count": h.Count() == 301 && h.Sum() == 3.5, "bounds": h.ExplicitBounds().Len() == 2 && h.ExplicitBounds().At(0) == 0.01,
			"buckets": h.BucketCounts().Len() == 3 && h.BucketCounts().At(2) == 300, "start": h.StartTimestamp() == 1 && h.Timestamp() == 2,
		} {
			if !ok {
				t.Errorf("%s: wrong %s", name, what)
			}
		}
		text(t, name, h.Attributes(), "service.name", "weir")
		if math.IsNaN(h.Sum()) {
			t.Errorf("%s: no number", name)
		}
	}
}

func TestLogsAreRead(t *testing.T) {
	for _, name := range []string{"logs.hex", "logs.json"} {
		r := plogotlp.NewExportRequest()
		if name == "logs.json" {
			must(t, r.UnmarshalJSON(body(t, name)))
		} else {
			must(t, r.UnmarshalProto(body(t, name)))
		}
		list := r.Logs().ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
		l := list.At(0)
		if list.Len() != 2 || l.SeverityText() != "ERROR" || l.SeverityNumber() != 17 || l.Body().Str() != "failed" ||
			l.EventName() != "weir.request.failed" || l.TraceID().String() != "ab000000000000000000000000000001" ||
			l.SpanID().IsEmpty() || uint32(l.Flags()) != 1 || l.Timestamp() != 5 {
			t.Errorf("%s: %v", name, l)
		}
		part := map[string]any{"type": "text", "content": "a \"b\" \n 😀"}
		want := []any{map[string]any{"role": "user", "parts": []any{part, map[string]any{"type": "text"}, map[string]any{}}, "none": []any{}}}
		if got := l.Attributes().AsRaw()["messages"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: messages %v", name, got)
		}
	}
}
