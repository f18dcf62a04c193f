// Package telemetry makes the spans and logs of OpenTelemetry from the requests that are
// reported to a machine's object. It stores nothing and makes no call.
//
// Names are those of the GenAI conventions 0.1.0, and of HTTP
// (docs/reference/dialects.md, e.1). Names of weir's own begin with "weir.".
package telemetry

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/otlp"
	"weir/pkg/wire/tracecontext"
)

// Fold makes the spans and logs of one machine.
type Fold struct {
	MachineID string
	// Sample is the share in percent of the requests without a traceparent that have spans.
	// For others the caller's flag decides; failed requests always have them.
	Sample float64
	// BaseURL returns where an account's calls go, or "".
	BaseURL func(connectionID, provider string) string
}

// otherError is the type of an error without a code.
const otherError = "_OTHER"

// Spans returns the spans of a request: one of kind SERVER, and one of kind CLIENT for each
// attempt that failed and for the one that answered. It returns none for a request that is
// not sampled.
func (f *Fold) Spans(r *store.Request) []otlp.Span {
	c := tracecontext.ForRequest(r.ID, r.TraceParent)
	sampled := c.Flags&tracecontext.Sampled != 0
	if r.TraceParent == "" {
		sampled = c.Trace.InRatio(f.Sample)
	}
	if !sampled && !r.HasFailed() {
		return nil
	}
	list := make([]otlp.Span, 0, 1+max(r.Attempts, len(r.Failed)))
	list = append(list, f.server(r, c))
	for i := range r.Failed {
		list = append(list, f.failed(r, i))
	}
	if r.Attempts > len(r.Failed) {
		list = append(list, f.answered(r))
	}
	for i := range list {
		s := &list[i]
		s.Trace, s.Flags = c.Trace, c.Flags
		if i > 0 {
			s.Kind, s.Parent, s.End = otlp.Client, list[0].ID, max(s.End, s.Start)
		}
	}
	return list
}

// nano returns a time, in milliseconds after the arrival of a request, in nanoseconds.
func nano(r *store.Request, ms int64) uint64 { return uint64(max(r.At+ms, 0)) * 1e6 }

func (f *Fold) server(r *store.Request, c tracecontext.Context) otlp.Span {
	method := "POST"
	if r.Endpoint == "/v1/realtime" {
		method = "GET"
	}
	s := otlp.Span{
		ID: tracecontext.SpanOf(r.ID, 0), Parent: c.Span, Remote: c.Span != tracecontext.SpanID{},
		Name: method + " " + r.Endpoint, Kind: otlp.Server, Start: nano(r, 0), End: nano(r, r.LatencyMs),
		Failed: r.HasFailed() && (r.Status >= 500 || r.Status < 400),
	}
	s.Attrs = append(f.caller(r), otlp.String("http.request.method", method), otlp.String("http.route", r.Endpoint),
		otlp.Int("http.response.status_code", int64(r.Status)), otlp.Int("weir.attempts", int64(r.Attempts)))
	if kind := errorType(r); kind != "" {
		s.Attrs = append(s.Attrs, otlp.String("error.type", kind))
	}
	if r.Session != "" {
		s.Attrs = append(s.Attrs, otlp.String("weir.session", r.Session))
	}
	if len(r.Tags) > 0 {
		s.Attrs = append(s.Attrs, otlp.List("weir.tags", r.Tags))
	}
	if r.Priced {
		s.Attrs = append(s.Attrs, otlp.Float("weir.cost.usd", r.CostUSD))
	}
	return s
}

// caller returns the attributes of a request that its span and its log have.
func (f *Fold) caller(r *store.Request) []otlp.Attr {
	list := make([]otlp.Attr, 0, 16)
	list = append(list, otlp.String("weir.machine", f.MachineID), otlp.String("weir.request.id", r.ID),
		otlp.String("weir.outcome", r.Outcome))
	for _, a := range [...]otlp.Attr{
		otlp.String("weir.reason", r.Reason), otlp.String("weir.key.id", r.KeyID),
		otlp.String("weir.requested_model", r.Asked),
	} {
		if a.Str != "" {
			list = append(list, a)
		}
	}
	return list
}

// errorType returns the type of the error that a request ended with, "" for none.
func errorType(r *store.Request) string {
	switch {
	case r.Error != "":
		return r.Error
	case r.Status >= 400:
		return strconv.Itoa(r.Status)
	}
	return ""
}

// failed returns the span of an attempt that failed.
func (f *Fold) failed(r *store.Request, i int) otlp.Span {
	a := &r.Failed[i]
	s := f.attempt(r, i+1, a.ConnectionID, a.Provider, a.Model)
	s.Start, s.End = nano(r, a.SentMs), nano(r, a.SentMs+a.Ms)
	why := reason(a.Status, a.Code)
	if s.Failed = why != left; s.Failed {
		s.Message = a.Text
	}
	s.Attrs = append(s.Attrs, otlp.String("error.type", cmp.Or(a.Code, statusText(a.Status))),
		otlp.String("weir.reason", why), otlp.Int("http.response.status_code", int64(a.Status)))
	if a.Place != "" {
		s.Attrs = append(s.Attrs, otlp.String("weir.place", a.Place))
	}
	return s
}

func statusText(status int) string {
	if status == 0 {
		return otherError
	}
	return strconv.Itoa(status)
}

// answered returns the span of the attempt that answered. Its stream may have failed later.
func (f *Fold) answered(r *store.Request) otlp.Span {
	s := f.attempt(r, r.Attempts, r.ConnectionID, r.Provider, r.Model)
	s.Start, s.End = nano(r, r.SentMs), nano(r, r.LatencyMs)
	add := func(a otlp.Attr) { s.Attrs = append(s.Attrs, a) }
	if kind := errorType(r); kind != "" {
		s.Failed = !r.Left()
		add(otlp.String("error.type", kind))
	}
	if s.Failed && r.FirstMs > 0 {
		add(otlp.List("gen_ai.response.finish_reasons", []string{"error"}))
	}
	if r.FirstMs > 0 {
		add(otlp.True("gen_ai.request.stream"))
		add(otlp.Float("gen_ai.response.time_to_first_chunk", float64(max(r.FirstMs-r.SentMs, 0))/1000))
	}
	for _, n := range [...]struct {
		name  string
		value int64
	}{
		{"input_tokens", r.Input}, {"output_tokens", r.Output}, {"reasoning.output_tokens", r.Reasoning},
		{"cache_read.input_tokens", r.CacheRead}, {"cache_write.input_tokens", r.CacheWrite},
		{"cache_creation.input_tokens", r.CacheWrite}, // of the conventions up to 1.41
	} {
		if n.value > 0 {
			add(otlp.Int("gen_ai.usage."+n.name, n.value))
		}
	}
	if r.Priced {
		add(otlp.Float("weir.cost.usd", r.CostUSD))
	}
	return s
}

// attempt returns the span of an attempt without its times and its end. number counts
// from 1 on. model is a public id, "<alias>/<model>".
func (f *Fold) attempt(r *store.Request, number int, connection, providerID, model string) otlp.Span {
	operation := Operation(r.Endpoint)
	if _, sent, ok := strings.Cut(model, "/"); ok {
		model = sent
	}
	s := otlp.Span{ID: tracecontext.SpanOf(r.ID, number), Name: strings.TrimSpace(operation + " " + model)}
	s.Attrs = make([]otlp.Attr, 0, 20)
	s.Attrs = append(s.Attrs, otlp.String("gen_ai.operation.name", operation),
		otlp.String("gen_ai.provider.name", ProviderName(providerID)), otlp.String("weir.machine", f.MachineID),
		otlp.String("weir.connection.id", connection), otlp.Int("weir.attempt", int64(number)))
	if model != "" {
		s.Attrs = append(s.Attrs, otlp.String("gen_ai.request.model", model))
	}
	if host, port := hostPort(f.BaseURL(connection, providerID)); host != "" {
		s.Attrs = append(s.Attrs, otlp.String("server.address", host), otlp.Int("server.port", port))
	}
	return s
}

// hostPort returns the host and the port of a URL.
func hostPort(url string) (host string, port int64) {
	scheme, host, ok := strings.Cut(provider.Origin(url), "://")
	if !ok || strings.ContainsAny(host, "{}") { // a variable of the account
		return "", 0
	}
	if port = 443; scheme == "http" {
		port = 80
	}
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		if n, err := strconv.ParseInt(host[i+1:], 10, 32); err == nil {
			host, port = host[:i], n
		}
	}
	return host, port
}

// left is the reason of an attempt that ended because the client did not wait.
const left = "client_left"

// reason returns why an attempt failed, of a fixed set.
func reason(status int, code string) string {
	if status == apierr.StatusClientLeft || code == apierr.CodeClientLeft {
		return left
	}
	return usage.CauseOf(status, code)
}

// Operation returns the name of the operation of an endpoint.
func Operation(endpoint string) string {
	switch endpoint {
	case "/v1/chat/completions", "/v1/messages", "/v1/responses":
		return "chat"
	case "/v1/completions":
		return "text_completion"
	case "/v1/embeddings":
		return "embeddings"
	case "/v1/search", "/v1/rerank":
		return "retrieval"
	}
	if strings.HasPrefix(endpoint, "/v1beta/") {
		return "generate_content"
	}
	return strings.ReplaceAll(strings.TrimPrefix(endpoint, "/v1/"), "/", "_") // audio_speech
}

// providerNames are the names of the conventions for the providers that they list.
var providerNames = [...][2]string{
	{"azure", "azure.ai.openai"}, {"bedrock", "aws.bedrock"}, {"gemini", "gcp.gemini"}, {"mistral", "mistral_ai"},
	{"moonshot", "moonshot_ai"}, {"vertex", "gcp.vertex_ai"}, {"xai", "x_ai"},
}

// ProviderName returns the name of a provider in the conventions.
func ProviderName(id string) string {
	i := slices.IndexFunc(providerNames[:], func(n [2]string) bool { return n[0] == id })
	if i < 0 {
		return cmp.Or(id, otherError)
	}
	return providerNames[i][1]
}

// Log returns the line of a request that failed, or nil. It has no text of the request or
// the answer.
func (f *Fold) Log(r *store.Request) *otlp.Log {
	if !r.HasFailed() {
		return nil
	}
	c := tracecontext.ForRequest(r.ID, r.TraceParent)
	l := &otlp.Log{
		At: nano(r, r.LatencyMs), Level: 17, Name: "weir.request.failed", Trace: c.Trace, Sample: c.Flags,
		Span: tracecontext.SpanOf(r.ID, 0), Attrs: f.caller(r),
	}
	if r.Outcome == store.Refused {
		l.Level = 13
	}
	kind := errorType(r)
	l.Body = r.Endpoint + " " + strconv.Itoa(r.Status) + " " + kind
	l.Attrs = append(l.Attrs, otlp.String("http.route", r.Endpoint), otlp.String("error.type", kind),
		otlp.Int("http.response.status_code", int64(r.Status)), otlp.Int("weir.attempts", int64(r.Attempts)))
	for _, a := range [...]otlp.Attr{
		otlp.String("gen_ai.provider.name", r.Provider), otlp.String("weir.connection.id", r.ConnectionID),
		otlp.String("weir.model", r.Model),
	} {
		if a.Str != "" {
			l.Attrs = append(l.Attrs, a)
		}
	}
	return l
}
