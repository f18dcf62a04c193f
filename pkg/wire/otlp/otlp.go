// Package otlp writes the bodies of the OpenTelemetry protocol over HTTP: traces, metrics
// and logs, in protobuf and in JSON (opentelemetry-proto 1.9.0). It reads what matters of
// the answers.
package otlp

import "weir/pkg/wire/tracecontext"

// Scope is the name of the instrumentation in everything that is written.
const Scope = "weir"

// Attr is an attribute. Its value is that field of the others which is not empty; of a
// zero number Kind says which.
type Attr struct {
	Key   string
	Kind  Kind
	Str   string
	Int   int64
	Float float64
	List  []string
	Each  [][]Attr
}

// Kind is the type of an attribute's value.
type Kind uint8

// The kinds.
const (
	Text Kind = iota
	Whole
	Double
	Bool // Int is 1 for true
	Texts
	Objects
)

// String returns an attribute with a text.
func String(key, v string) Attr { return Attr{Key: key, Str: v} }

// Int returns an attribute with a whole number.
func Int(key string, v int64) Attr { return Attr{Key: key, Kind: Whole, Int: v} }

// Float returns an attribute with a number.
func Float(key string, v float64) Attr { return Attr{Key: key, Kind: Double, Float: v} }

// True returns an attribute that is true.
func True(key string) Attr { return Attr{Key: key, Kind: Bool, Int: 1} }

// List returns an attribute with texts.
func List(key string, v []string) Attr { return Attr{Key: key, Kind: Texts, List: v} }

// Maps returns an attribute with a list of objects, whose members are attributes.
func Maps(key string, v [][]Attr) Attr { return Attr{Key: key, Kind: Objects, Each: v} }

// SpanKind is the role of a span.
type SpanKind int64

// The roles that are used.
const (
	Server SpanKind = 2
	Client SpanKind = 3
)

// Span is one operation. Times are nanoseconds since 1970.
type Span struct {
	Trace   tracecontext.TraceID
	ID      tracecontext.SpanID
	Parent  tracecontext.SpanID // zero for a root
	Remote  bool                // the parent is a span of another process
	Flags   byte                // those of the trace context
	Name    string
	Kind    SpanKind
	Start   uint64
	End     uint64
	Attrs   []Attr
	Failed  bool
	Message string // of the failure
}

// Log is a line of a log.
type Log struct {
	At     uint64
	Level  int64 // 9 information, 13 warning, 17 error
	Name   string
	Body   string
	Attrs  []Attr
	Trace  tracecontext.TraceID
	Span   tracecontext.SpanID
	Sample byte // the flags of the trace
}

// MetricKind is the form of a metric.
type MetricKind uint8

// The forms.
const (
	Gauge MetricKind = iota
	Counter
	Histogram
)

// Metric is a family of series.
type Metric struct {
	Name, Unit, Help string
	Kind             MetricKind
	Delta            bool // what came since Start, and not all since a fixed one
	Points           []Point
}

// Point is the value of one series. A histogram has one more bucket than bounds, and
// counts each value once.
type Point struct {
	Attrs   []Attr
	Start   uint64
	At      uint64
	Value   float64 // of a gauge or counter, and the sum of a histogram
	Bounds  []float64
	Buckets []uint64
}

// Format is how a body is written.
type Format uint8

// The formats.
const (
	Protobuf Format = iota
	JSON
)

// ContentType returns the media type of a format.
func (f Format) ContentType() string {
	if f == JSON {
		return "application/json"
	}
	return "application/x-protobuf"
}

// Entry is what a body has a list of: spans for /v1/traces, metrics for /v1/metrics, or lines
// for /v1/logs.
type Entry interface{ Span | Metric | Log }

// Body returns the first entries of a list, as many as fit into a number of bytes but at least
// one, within their scope and their resource. n is how many they are. The body takes the place
// of an earlier one in its memory, which may be nil.
func Body[E Entry](memory []byte, f Format, resource []Attr, list []E, most int) (body []byte, n int) {
	names := namesOf(list)
	if memory == nil {
		memory = make([]byte, 0, len(list)*spanSize)
	}
	e := begin(f, resource, names[0], names[1], memory[:0])
	e.list(2, names[2], len(list))
	for n < len(list) {
		from := e.size()
		e.item()
		write(e, &list[n])
		e.close()
		if n > 0 && e.size() > most-maxEnds {
			e.cut(from)
			break
		}
		n++
	}
	return end(e, len(list)), n
}

// maxEnds is the most that the end of a body adds: brackets, or the lengths of three messages.
const maxEnds = 16

// namesOf returns the names of the lists around entries in JSON, from the outermost on.
func namesOf(list any) [3]string {
	switch list.(type) {
	case []Span:
		return [3]string{"resourceSpans", "scopeSpans", "spans"}
	case []Metric:
		return [3]string{"resourceMetrics", "scopeMetrics", "metrics"}
	}
	return [3]string{"resourceLogs", "scopeLogs", "logRecords"}
}

func write(e encoder, entry any) {
	switch v := entry.(type) {
	case *Span:
		writeSpan(e, v)
	case *Metric:
		writeMetric(e, v)
	case *Log:
		writeLog(e, v)
	}
}

// spanSize is the usual size of a span, a line or a small metric.
const spanSize = 512

// encoder writes the fields of messages in order, by their number or their name. A field
// with the zero value of its type is left out unless its function says otherwise.
type encoder interface {
	text(number int, name, v string)
	id(number int, name string, v []byte)
	enum(number int, name string, v int64)
	flag(number int, name string, v bool)
	whole(number int, name string, v int64)    // never left out
	fixed64(number int, name string, v uint64) // never left out
	fixed32(number int, name string, v uint32)
	double(number int, name string, v float64) // never left out
	fixed64s(number int, name string, v []uint64)
	doubles(number int, name string, v []float64)
	// open begins a message, and list a list of n of them, each begun by item. close ends a
	// message and, if n is not 0, closeList a list.
	open(number int, name string)
	list(number int, name string, n int)
	item()
	close()
	closeList(n int)
	// size returns how much is written, and cut removes what was written since then.
	size() int
	cut(size int)
	body() []byte
}

// begin writes the levels above the signals: one resource with one scope.
func begin(f Format, resource []Attr, outer, inner string, memory []byte) encoder {
	var e encoder = &proto{b: memory}
	if f == JSON {
		e = &text{b: append(memory, '{')}
	}
	e.list(1, outer, 1)
	e.item()
	e.open(1, "resource")
	writeAttrs(e, 1, "attributes", resource)
	e.close()
	e.list(2, inner, 1)
	e.item()
	e.open(1, "scope")
	e.text(1, "name", Scope)
	e.close()
	return e
}

// end ends what begin has begun, and the list of n entries.
func end(e encoder, n int) []byte {
	e.closeList(n)
	for range 2 {
		e.close()
		e.closeList(1)
	}
	return e.body()
}

func writeAttrs(e encoder, number int, name string, list []Attr) {
	e.list(number, name, len(list))
	for i := range list {
		a := &list[i]
		e.item()
		e.text(1, "key", a.Key)
		e.open(2, "value")
		writeValue(e, a)
		e.close()
		e.close()
	}
	e.closeList(len(list))
}

func writeValue(e encoder, a *Attr) {
	switch a.Kind {
	case Text:
		writeText(e, a.Str)
	case Bool:
		e.flag(2, "boolValue", a.Int != 0)
	case Whole:
		e.whole(3, "intValue", a.Int)
	case Double:
		e.double(4, "doubleValue", a.Float)
	case Texts:
		e.open(5, "arrayValue")
		e.list(1, "values", len(a.List))
		for _, s := range a.List {
			e.item()
			writeText(e, s)
			e.close()
		}
		e.closeList(len(a.List))
		e.close()
	case Objects:
		e.open(5, "arrayValue")
		e.list(1, "values", len(a.Each))
		for _, members := range a.Each {
			e.item()
			e.open(6, "kvlistValue")
			writeAttrs(e, 1, "values", members)
			e.close()
			e.close()
		}
		e.closeList(len(a.Each))
		e.close()
	}
}

// writeText writes a text as an AnyValue. An empty one is a value without a field.
func writeText(e encoder, s string) { e.text(1, "stringValue", s) }

// Bits of the flags of a span, of which the low 8 are those of the trace context.
const (
	knowsRemote = 1 << 8
	isRemote    = 1 << 9
)

func writeSpan(e encoder, s *Span) {
	e.id(1, "traceId", s.Trace[:])
	e.id(2, "spanId", s.ID[:])
	if s.Parent != (tracecontext.SpanID{}) {
		e.id(4, "parentSpanId", s.Parent[:])
	}
	e.text(5, "name", s.Name)
	e.enum(6, "kind", int64(s.Kind))
	e.fixed64(7, "startTimeUnixNano", s.Start)
	e.fixed64(8, "endTimeUnixNano", s.End)
	writeAttrs(e, 9, "attributes", s.Attrs)
	if s.Failed {
		e.open(15, "status")
		e.text(2, "message", s.Message)
		e.enum(3, "code", 2)
		e.close()
	}
	flags := uint32(s.Flags) | knowsRemote
	if s.Remote {
		flags |= isRemote
	}
	e.fixed32(16, "flags", flags)
}

func writeLog(e encoder, l *Log) {
	e.fixed64(1, "timeUnixNano", l.At)
	e.enum(2, "severityNumber", l.Level)
	e.text(3, "severityText", severity(l.Level))
	e.open(5, "body")
	writeText(e, l.Body)
	e.close()
	writeAttrs(e, 6, "attributes", l.Attrs)
	e.fixed32(8, "flags", uint32(l.Sample))
	e.id(9, "traceId", l.Trace[:])
	e.id(10, "spanId", l.Span[:])
	e.fixed64(11, "observedTimeUnixNano", l.At)
	e.text(12, "eventName", l.Name)
}

func severity(level int64) string {
	switch {
	case level >= 17:
		return "ERROR"
	case level >= 13:
		return "WARN"
	}
	return "INFO"
}

// forms are the fields of a metric with its points.
var forms = [...]struct {
	number int
	name   string
}{Gauge: {5, "gauge"}, Counter: {7, "sum"}, Histogram: {9, "histogram"}}

func writeMetric(e encoder, m *Metric) {
	e.text(1, "name", m.Name)
	e.text(2, "description", m.Help)
	e.text(3, "unit", m.Unit)
	e.open(forms[m.Kind].number, forms[m.Kind].name)
	e.list(1, "dataPoints", len(m.Points))
	for i := range m.Points {
		e.item()
		if m.Kind == Histogram {
			writeHistogram(e, &m.Points[i])
		} else {
			writeNumber(e, &m.Points[i])
		}
		e.close()
	}
	e.closeList(len(m.Points))
	if m.Kind != Gauge {
		temporality := int64(2)
		if m.Delta {
			temporality = 1
		}
		e.enum(2, "aggregationTemporality", temporality)
		e.flag(3, "isMonotonic", m.Kind == Counter)
	}
	e.close()
}

func writeNumber(e encoder, p *Point) {
	e.fixed64(2, "startTimeUnixNano", p.Start)
	e.fixed64(3, "timeUnixNano", p.At)
	e.double(4, "asDouble", p.Value)
	writeAttrs(e, 7, "attributes", p.Attrs)
}

func writeHistogram(e encoder, p *Point) {
	count := uint64(0)
	for _, n := range p.Buckets {
		count += n
	}
	e.fixed64(2, "startTimeUnixNano", p.Start)
	e.fixed64(3, "timeUnixNano", p.At)
	e.fixed64(4, "count", count)
	e.double(5, "sum", p.Value)
	e.fixed64s(6, "bucketCounts", p.Buckets)
	e.doubles(7, "explicitBounds", p.Bounds)
	writeAttrs(e, 9, "attributes", p.Attrs)
}
