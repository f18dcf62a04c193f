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

// Fold makes the spans and logs of one machine. Their attributes share its memory until
// Reset.
type Fold struct {
	// Sample is the share in percent of the requests without a traceparent that have spans.
	// For others the caller's flag decides; failed requests always have them.
	Sample float64
	// BaseURL returns where an account's calls go, or "".
	BaseURL func(connectionID, provider string) string

	attrs []otlp.Attr
}

// Reset ends the use of all spans and logs, so that their memory serves the next ones.
func (f *Fold) Reset() { f.attrs = f.attrs[:0] }

func (f *Fold) add(a otlp.Attr) { f.attrs = append(f.attrs, a) }

// text adds an attribute with a text, unless that is empty.
func (f *Fold) text(key, v string) {
	if v != "" {
		f.add(otlp.String(key, v))
	}
}

// since returns the attributes that were added since there were n.
func (f *Fold) since(n int) []otlp.Attr { return f.attrs[n:len(f.attrs):len(f.attrs)] }

// otherError is the type of an error without a code.
const otherError = "_OTHER"

// Spans appends the spans of a request: one of kind SERVER, and one of kind CLIENT for each
// attempt that failed and for the one that answered. It appends none for a request that is
// not sampled.
func (f *Fold) Spans(list []otlp.Span, r *store.Request) []otlp.Span {
	c := tracecontext.ForRequest(r.ID, r.TraceParent)
	sampled := c.Flags&tracecontext.Sampled != 0
	if r.TraceParent == "" {
		sampled = c.Trace.InRatio(f.Sample)
	}
	if !sampled && !r.HasFailed() {
		return list
	}
	from := len(list)
	list = append(list, f.server(r, c))
	for i := range r.Failed {
		list = append(list, f.failed(r, i))
	}
	if r.Attempts > len(r.Failed) {
		list = append(list, f.answered(r))
	}
	for i := from; i < len(list); i++ {
		s := &list[i]
		s.Trace, s.Flags = c.Trace, c.Flags
		if i > from {
			s.Kind, s.Parent, s.End = otlp.Client, list[from].ID, max(s.End, s.Start)
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
	n := len(f.attrs)
	f.caller(r)
	f.add(otlp.String("http.request.method", method))
	f.text("weir.session", r.Session)
	if len(r.Tags) > 0 {
		f.add(otlp.List("weir.tags", r.Tags))
	}
	if r.Priced {
		f.add(otlp.Float("weir.cost.usd", r.CostUSD))
	}
	return otlp.Span{
		ID: tracecontext.SpanOf(r.ID, 0), Parent: c.Span, Remote: c.Span != tracecontext.SpanID{},
		Name: method + " " + r.Endpoint, Kind: otlp.Server, Start: nano(r, 0), End: nano(r, r.LatencyMs),
		Failed: r.HasFailed() && (r.Status >= 500 || r.Status < 400), Attrs: f.since(n),
	}
}

// caller adds the attributes of a request that its span and its log have.
func (f *Fold) caller(r *store.Request) {
	f.add(otlp.String("weir.request.id", r.ID))
	f.text("weir.outcome", r.Outcome)
	f.text("weir.reason", r.Reason)
	f.text("weir.key.id", r.KeyID)
	f.text("weir.requested_model", r.Asked)
	f.add(otlp.String("http.route", r.Endpoint))
	f.add(otlp.Int("http.response.status_code", int64(r.Status)))
	f.text("error.type", errorType(r))
	f.add(otlp.Int("weir.attempts", int64(r.Attempts)))
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
	n := len(f.attrs)
	s := f.attempt(r, i+1, a.ConnectionID, a.Provider, a.Model)
	s.Start, s.End = nano(r, a.SentMs), nano(r, a.SentMs+a.Ms)
	why := reason(a.Status, a.Code)
	if s.Failed = why != left; s.Failed {
		s.Message = a.Text
	}
	f.add(otlp.String("error.type", cmp.Or(a.Code, statusText(a.Status))))
	f.add(otlp.String("weir.reason", why))
	f.add(otlp.Int("http.response.status_code", int64(a.Status)))
	f.text("weir.place", a.Place)
	s.Attrs = f.since(n)
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
	n := len(f.attrs)
	s := f.attempt(r, r.Attempts, r.ConnectionID, r.Provider, r.Model)
	s.Start, s.End = nano(r, r.SentMs), nano(r, r.LatencyMs)
	if kind := errorType(r); kind != "" {
		s.Failed = !r.Left()
		f.add(otlp.String("error.type", kind))
	}
	if s.Failed && r.FirstMs > 0 {
		f.add(otlp.List("gen_ai.response.finish_reasons", cutReasons[:]))
	} else if r.Finish != "" {
		f.add(otlp.List("gen_ai.response.finish_reasons", []string{r.Finish}))
	}
	if r.FirstMs > 0 {
		f.add(otlp.True("gen_ai.request.stream"))
		f.add(otlp.Float("gen_ai.response.time_to_first_chunk", float64(max(r.FirstMs-r.SentMs, 0))/1000))
	}
	for _, n := range [...]struct {
		name  string
		value int64
	}{
		{"gen_ai.usage.input_tokens", r.Input}, {"gen_ai.usage.output_tokens", r.Output},
		{"gen_ai.usage.reasoning.output_tokens", r.Reasoning},
		{"gen_ai.usage.cache_read.input_tokens", r.CacheRead},
		{"gen_ai.usage.cache_write.input_tokens", r.CacheWrite},
		{"gen_ai.usage.cache_creation.input_tokens", r.CacheWrite}, // of the conventions up to 1.41
	} {
		if n.value > 0 {
			f.add(otlp.Int(n.name, n.value))
		}
	}
	if r.Priced {
		f.add(otlp.Float("weir.cost.usd", r.CostUSD))
	}
	s.Attrs = f.since(n)
	return s
}

// cutReasons are the finish reasons of a stream that broke off.
var cutReasons = [...]string{"error"}

// attempt adds the attributes of an attempt, and returns its span without them, its times
// and its end. number counts from 1 on. model is a public id, "<alias>/<model>".
func (f *Fold) attempt(r *store.Request, number int, connection, providerID, model string) otlp.Span {
	operation := usage.Operation(r.Endpoint)
	if _, sent, ok := strings.Cut(model, "/"); ok {
		model = sent
	}
	f.add(otlp.String("gen_ai.operation.name", operation))
	f.add(otlp.String("gen_ai.provider.name", ProviderName(providerID)))
	f.add(otlp.String("weir.connection.id", connection))
	f.add(otlp.Int("weir.attempt", int64(number)))
	f.text("gen_ai.request.model", model)
	if host, port := hostPort(f.BaseURL(connection, providerID)); host != "" {
		f.add(otlp.String("server.address", host))
		f.add(otlp.Int("server.port", port))
	}
	return otlp.Span{ID: tracecontext.SpanOf(r.ID, number), Name: strings.TrimSpace(operation + " " + model)}
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

// Log appends the line of a request, if it failed. It has no text of the request or the
// answer.
func (f *Fold) Log(list []otlp.Log, r *store.Request) []otlp.Log {
	if !r.HasFailed() {
		return list
	}
	c := tracecontext.ForRequest(r.ID, r.TraceParent)
	level := int64(17)
	if r.Outcome == store.Refused {
		level = 13
	}
	n := len(f.attrs)
	f.caller(r)
	if r.Provider != "" {
		f.add(otlp.String("gen_ai.provider.name", ProviderName(r.Provider)))
	}
	f.text("weir.connection.id", r.ConnectionID)
	f.text("weir.model", r.Model)
	return append(list, otlp.Log{
		At: nano(r, r.LatencyMs), Level: level, Name: "weir.request.failed", Trace: c.Trace, Sample: c.Flags,
		Span: tracecontext.SpanOf(r.ID, 0), Attrs: f.since(n),
		Body: r.Endpoint + " " + strconv.Itoa(r.Status) + " " + errorType(r),
	})
}
