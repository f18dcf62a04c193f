package deliver

import (
	"encoding/binary"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/contentcoding"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/otlp"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/tracecontext"
	"weir/pkg/wire/upstream"
)

// OTLP is the name of the kind of collectors of OpenTelemetry.
const OTLP = "otlp"

// Fields of the kind otlp that others read, and names of signals.
const (
	Endpoint    = "endpoint"
	Protocol    = "protocol"
	Signals     = "signals"
	Sample      = "sample"
	Temporality = "temporality"
	Resource    = "resource"
	Conventions = "conventions" // of the GenAI metrics
	compression = "compression"

	Traces  = "traces"
	Metrics = "metrics"
	Logs    = "logs"
)

// collector posts items to a collector. The title of an item is its signal, and its body a
// request of OTLP in protobuf or JSON.
var collector = Kind{
	Name: OTLP, Takes: storage.Telemetry,
	Fields: []Field{
		{Name: Endpoint, Secret: true, Required: true, Max: 2000, Address: true, Check: isBase},
		{Name: "headers", Secret: true, Pairs: true, Max: 4000, Check: isHeaders},
		{Name: Protocol, Values: []string{"http/protobuf", "http/json"}},
		{Name: compression, Values: []string{"gzip", "none"}},
		{Name: Signals, Check: isSignals},
		{Name: Sample, Check: isPercent},
		{Name: Temporality, Values: []string{"cumulative", "delta"}},
		{Name: Resource, Max: 1000, Check: isPairs},
		{Name: Conventions, Values: []string{rpc.GenAI, rpc.GenAI141}},
		bodies,
	},
	Check:   bodiesAreLogs,
	Test:    otlpTest,
	Request: otlpRequest,
	Judge:   judgeOTLP,
}

func bodiesAreLogs(values map[string]string) (field, why string) {
	if TakesBodies(values) && !TakesSignal(values, Logs) {
		return bodies.Name, "needs the signal logs, of which bodies are a part"
	}
	return "", ""
}

// OTLPFormat returns the format of the bodies for a collector with these options.
func OTLPFormat(options map[string]string) otlp.Format {
	if options[Protocol] == "http/json" {
		return otlp.JSON
	}
	return otlp.Protobuf
}

// StoresGzip reports whether the bodies for a collector are compressed before they are stored.
// Those of JSON, which are known by their first byte, are compressed when they are sent.
func StoresGzip(options map[string]string) bool {
	return OTLPFormat(options) == otlp.Protobuf && options[compression] != "none"
}

// TakesSignal reports whether a collector gets a signal. Without the option it gets all.
func TakesSignal(options map[string]string, signal string) bool {
	list := options[Signals]
	return list == "" || slices.Contains(words(list), signal)
}

// SampleOf returns the share of traces of a collector, in percent.
func SampleOf(options map[string]string) float64 {
	percent, err := strconv.ParseFloat(options[Sample], 64)
	if err != nil {
		return 100
	}
	return percent
}

// ResourceOf returns the attributes of the resource, service.name first.
func ResourceOf(options map[string]string) []otlp.Attr {
	service, list := "weir", []otlp.Attr(nil)
	pairs, _ := Pairs(options[Resource])
	for _, p := range pairs {
		if p[0] == "service.name" {
			service = p[1]
		} else {
			list = append(list, otlp.String(p[0], p[1]))
		}
	}
	return append([]otlp.Attr{otlp.String("service.name", service)}, list...)
}

func words(list string) (words []string) {
	for w := range strings.SplitSeq(list, ",") {
		words = append(words, strings.TrimSpace(w))
	}
	return words
}

// Pairs reads "name=value,name=value", as OTEL_EXPORTER_OTLP_HEADERS: values may be
// percent-encoded.
func Pairs(text string) (pairs [][2]string, why string) {
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		name = strings.TrimSpace(name)
		if !ok || err != nil || !isName(name) || !storage.IsPrintable(value) {
			return nil, "must be name=value pairs between commas, with values that are percent-encoded if need be"
		}
		pairs = append(pairs, [2]string{name, value})
	}
	return pairs, ""
}

// isName reports whether a name can be that of a header field.
func isName(name string) bool {
	bad := func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }
	return name != "" && !strings.ContainsFunc(name, bad)
}

func isPairs(text string) (why string) {
	_, why = Pairs(text)
	return why
}

// isHeaders refuses pairs that cannot be sent as header fields, and fields that belong to the
// connection or to the gateway.
func isHeaders(text string) (why string) {
	pairs, why := Pairs(text)
	for _, p := range pairs {
		name := strings.ToLower(p[0])
		bad := func(r rune) bool { return r < ' ' || r > '~' }
		switch {
		case strings.ContainsAny(name, `"(),/;<=>?@[\]{}`), strings.ContainsFunc(p[1], bad):
			return "has a field that cannot be sent as a header" // of a secret, a comma may begin a name
		case slices.Contains(ownFields[:], name):
			return "has the field " + name + ", which cannot be set"
		}
	}
	return why
}

// ownFields are header fields that a list cannot set.
var ownFields = [...]string{"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer",
	"transfer-encoding", "upgrade", clientheader.Hop}

func isBase(url string) (why string) {
	if strings.Contains(url, "?") {
		return "must be the base address, to which /v1/traces and the others are appended, without a query"
	}
	return ""
}

func isSignals(list string) (why string) {
	for _, w := range words(list) {
		if w != Traces && w != Metrics && w != Logs {
			return "must be some of traces, metrics and logs between commas"
		}
	}
	return ""
}

func isPercent(text string) (why string) {
	if n, err := strconv.ParseFloat(text, 64); err != nil || !(n >= 0 && n <= 100) {
		return "must be a number of percent from 0 to 100"
	}
	return ""
}

// otlpTest returns an item with one span, one line or one point, by the signals of the
// collector.
func otlpTest(d *Opened) storage.Delivery {
	const name = "weir.test"
	at, format, resource := uint64(d.Now.UnixNano()), OTLPFormat(d.Options), ResourceOf(d.Options)
	span := otlp.Span{Name: name, Kind: otlp.Server, Start: at, End: at, Flags: tracecontext.Sampled}
	binary.BigEndian.PutUint64(span.Trace[:], at)
	binary.BigEndian.PutUint64(span.ID[:], at)
	item := storage.Delivery{DestinationID: d.ID, Type: storage.Telemetry}
	switch {
	case TakesSignal(d.Options, Traces):
		item.Title = Traces
		item.Body, _ = otlp.Body(nil, format, resource, []otlp.Span{span}, 0)
	case TakesSignal(d.Options, Logs):
		item.Title = Logs
		line := otlp.Log{At: at, Level: 9, Name: name, Body: name, Trace: span.Trace, Span: span.ID}
		item.Body, _ = otlp.Body(nil, format, resource, []otlp.Log{line}, 0)
	default:
		item.Title = Metrics
		gauge := otlp.Metric{Name: name, Points: []otlp.Point{{Start: at, At: at, Value: 1}}}
		item.Body, _ = otlp.Body(nil, format, resource, []otlp.Metric{gauge}, 0)
	}
	return item
}

// signalURL returns where a signal goes: to its own address, or below the base.
func signalURL(d *Opened, signal string) string {
	if own := d.Value(Endpoint + "." + signal); own != "" {
		return own
	}
	return strings.TrimSuffix(d.Value(Endpoint), "/") + "/v1/" + signal
}

const maxTimeout = time.Minute

func otlpRequest(d *Opened, item *storage.Delivery) (*upstream.Request, error) {
	var h httpmsg.Header
	pairs, why := Pairs(d.Value("headers"))
	if why != "" {
		return nil, errors.New("the headers " + why)
	}
	for _, p := range pairs {
		h.Set(strings.ToLower(p[0]), p[1])
	}
	body := item.Body
	h.Set("content-type", otlp.FormatOf(body).ContentType())
	gzipped := contentcoding.IsGzip(body)
	if !gzipped && d.Value(compression) != "none" {
		gzipped, body = true, contentcoding.Gzip(body)
	}
	if gzipped {
		h.Set("content-encoding", "gzip")
	}
	ms, _ := strconv.Atoi(d.Value("timeout")) // 0 is the limit of all kinds
	return &upstream.Request{URL: signalURL(d, item.Title), Header: h, Body: stream.FromBytes(body),
		Timeout: min(time.Duration(ms)*time.Millisecond, maxTimeout)}, nil
}

// judgeOTLP follows the specification of OTLP: only 429, 502, 503 and 504 are repeated, and
// an item that was taken in part never is.
func judgeOTLP(status int, body []byte, r storage.Result) storage.Result {
	switch status {
	case 200, 202, 204:
		lost, why := otlp.Rejected(body)
		if r.Lost = lost; lost > 0 {
			r.Why = strconv.FormatInt(lost, 10) + " rejected: " + why
		}
	case 429, 502, 503, 504:
	case 410, 401, 403, 404, 405: // the address or its credentials are wrong
	default:
		if status < 300 || status > 399 {
			r.Verdict = storage.Dropped
		}
	}
	return r
}
