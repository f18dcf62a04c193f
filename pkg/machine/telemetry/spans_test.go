package telemetry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/golden"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/otlp"
	"weir/pkg/wire/tracecontext"
)

const (
	id     = "req_0123456789abcdef0123456789abcdef"
	caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// requests are one of each kind.
func requests() map[string]store.Request {
	used := store.Used{Input: 1200, Output: 40, Reasoning: 8, CacheRead: 1000, CacheWrite: 100, CostUSD: 0.0031, Priced: true}
	success := store.Request{
		ID: id, At: 1_800_000_000_000, KeyID: "k1", Endpoint: "/v1/chat/completions", Asked: "fast", Model: "openai/gpt-5/mini",
		Provider: "openai", ConnectionID: "c1", Status: 200, Outcome: store.Succeeded, LatencyMs: 900, SentMs: 5, Attempts: 1,
		Tags: []string{"project=a"}, Session: "ab12", Used: used,
	}
	fallback := success
	fallback.TraceParent, fallback.Attempts, fallback.SentMs, fallback.ConnectionID, fallback.FirstMs = caller, 4, 320, "c3", 500
	fallback.Finish = "STOP"
	fallback.Provider, fallback.Model = "vertex", "vertex/gemini-2.5-pro"
	fallback.Failed = []store.Attempt{
		{ConnectionID: "c1", Provider: "openai", Model: "openai/gpt-5", Status: 401, Code: "invalid_api_key", Text: "who are you", SentMs: 5, Ms: 95},
		{ConnectionID: "c2", Provider: "openai", Model: "openai/gpt-5", Status: 403, Code: "upstream_blocked_here", Place: "HKG", SentMs: 100, Ms: 100},
		{ConnectionID: "c4", Provider: "bedrock", Model: "bedrock/claude", Status: 429, Text: "slow down", SentMs: 200, Ms: 120},
	}
	cut := success
	cut.Endpoint, cut.Error, cut.Outcome, cut.FirstMs, cut.Used = "/v1/messages", "upstream_cut", store.ProviderFailed, 300, store.Used{}
	refused := store.Request{
		ID: id, At: 1_800_000_000_000, Endpoint: "/v1/responses", Asked: "none\nsuch \"model\" 😀", Status: 404, Error: "model_not_found",
		Outcome: store.Refused, Reason: store.RefusedByModel, Message: "There is no model none.", LatencyMs: 1,
	}
	gone := success
	gone.Status, gone.Error, gone.Outcome, gone.Attempts = 499, apierr.CodeClientLeft, store.Left, 1
	gone.Failed, gone.Used = []store.Attempt{{ConnectionID: "c1", Provider: "openai", Model: "openai/gpt-5", Status: 499, SentMs: 5, Ms: 800}}, store.Used{}
	embeddings := success
	embeddings.Endpoint, embeddings.Model, embeddings.Used = "/v1/embeddings", "up/m", store.Used{Input: 7}
	embeddings.Provider, embeddings.SentMs = "openai-compatible-1", 0
	dead := success
	dead.Status, dead.Error, dead.Outcome, dead.Attempts, dead.Used = 502, "upstream_unreachable", store.ProviderFailed, 1, store.Used{}
	dead.Failed = []store.Attempt{{ConnectionID: "c1", Provider: "openai", Model: "openai/gpt-5", Status: 502, Code: "upstream_unreachable", SentMs: 5, Ms: 10}}
	return map[string]store.Request{
		"success": success, "fallback": fallback, "cut": cut, "refused": refused, "left": gone, "embeddings": embeddings, "failed": dead,
	}
}

func fold(sample float64) *Fold {
	return &Fold{Sample: sample, BaseURL: func(connection, provider string) string {
		return map[string]string{"openai": "https://api.openai.com/v1", "vertex": "https://{location}-x.example/v1",
			"openai-compatible-1": "http://[fd00::1]:8000/v1"}[provider]
	}}
}

func TestRequestsFoldIntoSpans(t *testing.T) {
	for name, r := range requests() {
		var b strings.Builder
		for _, s := range fold(100).Spans(nil, &r) {
			fmt.Fprintf(&b, "%s kind=%d trace=%x id=%x parent=%x remote=%v flags=%d +%v for %v failed=%v %s\n", s.Name, s.Kind, s.Trace, s.ID,
				s.Parent, s.Remote, s.Flags, time.Duration(s.Start-uint64(r.At)*1e6), time.Duration(s.End-s.Start), s.Failed, s.Message)
			attrs(&b, s.Attrs)
		}
		for _, l := range fold(0).Log(nil, &r) {
			fmt.Fprintf(&b, "log %d %q trace=%x span=%x %d +%v\n", l.Level, l.Body, l.Trace, l.Span, l.Sample, time.Duration(l.At-uint64(r.At)*1e6))
			attrs(&b, l.Attrs)
		}
		golden.Bytes(t, name+".golden", []byte(b.String()))
	}
}

func attrs(b *strings.Builder, list []otlp.Attr) {
	for _, a := range list {
		switch a.Kind {
		case otlp.Text:
			fmt.Fprintf(b, "  %s %q\n", a.Key, a.Str)
		case otlp.Whole:
			fmt.Fprintf(b, "  %s %d\n", a.Key, a.Int)
		case otlp.Double:
			fmt.Fprintf(b, "  %s %v\n", a.Key, a.Float)
		case otlp.Bool:
			fmt.Fprintf(b, "  %s %v\n", a.Key, a.Int != 0)
		case otlp.Texts:
			fmt.Fprintf(b, "  %s %q\n", a.Key, a.List)
		}
	}
}

// The decision of the caller is respected, that of a root depends on its id, and failures
// are always exported.
func TestSamplingIsByParent(t *testing.T) {
	all := requests()
	for name, c := range map[string]struct {
		request string
		parent  string
		sample  float64
		want    bool
	}{
		"root in the share":               {"success", "", 100, true},
		"root, none":                      {"success", "", 0, false},
		"root out of the share":           {"success", "", 13, false}, // its last bytes are 23 45 67 …
		"root within it":                  {"success", "", 14, true},
		"sampled by the caller":           {"success", caller, 0, true},
		"not sampled by the caller":       {"success", caller[:53] + "00", 100, false},
		"failed, not sampled":             {"failed", "", 0, true},
		"failed, not sampled by caller":   {"failed", caller[:53] + "00", 0, true},
		"refused":                         {"refused", "", 0, true},
		"the client left, out of a share": {"left", "", 0, false},
	} {
		r := all[c.request]
		r.TraceParent = c.parent
		if got := len(fold(c.sample).Spans(nil, &r)) > 0; got != c.want {
			t.Errorf("%s: exported %v", name, got)
		}
	}
}

// The gateway names the span of an attempt alike when it passes its context to the provider.
func TestSpanOfAttemptIsThatOfUpstream(t *testing.T) {
	r := requests()["fallback"]
	for i, s := range fold(0).Spans(nil, &r) {
		if s.ID != tracecontext.SpanOf(id, i) {
			t.Errorf("span %d has the id %x", i, s.ID)
		}
	}
}
