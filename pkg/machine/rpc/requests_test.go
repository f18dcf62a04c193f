package rpc

import (
	"errors"
	"testing"

	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// Each parameter is met by one request alone: the first by its answer, the second by a failed
// attempt, the third by neither.
func TestRequestFilters(t *testing.T) {
	served := store.Request{
		ID: "req_1", At: 1000, Status: 200, Asked: "Fast", Model: "openai/gpt-4o", Endpoint: "/v1/chat/completions", Provider: "openai",
		ConnectionID: "c1", KeyID: "k1", Outcome: store.Succeeded, LatencyMs: 300, FirstMs: 50, Used: store.Used{CostUSD: 0.5}, Tags: []string{"team", "project=atlas"}, Tool: "codex",
	}
	retried := store.Request{ID: "req_2", At: 1500, Status: 200, Outcome: store.Succeeded, Failed: []store.Attempt{
		{ConnectionID: "c8", Provider: "xai", Model: "xai/grok", Code: "timeout", Text: "No answer"},
		{ConnectionID: "c9", Provider: "groq", Model: "groq/llama", Code: "rate_limited", Text: "Slow down"},
	}}
	refused := store.Request{ID: "req_3", At: 2000, Status: 429, Error: "budget_exceeded", Outcome: store.Refused, Reason: store.RefusedByBudget}
	left := store.Request{ID: "req_4", At: 2500, Status: apierr.StatusClientLeft, Error: apierr.CodeClientLeft, Outcome: store.Left}
	for _, tt := range []struct{ name, value, want string }{
		{"q", "", "1234"}, {"q", " REQ_2 ", "2"}, {"q", "fast", "1"}, {"q", "GPT", "1"}, {"q", "chat/", "1"}, {"q", "exceeded", "3"}, {"q", "atlas", "1"},
		{"q", "groq/LLAMA", "2"}, {"q", "xai", "2"}, {"q", "rate_", "2"}, {"q", "slow", "2"}, {"q", "none", ""},
		{"status", "200", "12"}, {"status", "201", ""}, {"status", "2xx", "12"}, {"status", "4xx", "34"}, {"status", "error", "3"}, {"status", "client_left", "4"},
		{"code", "budget_exceeded", "3"}, {"code", "rate_limited", "2"}, {"code", "other", ""},
		{"key", "k1", "1"}, {"tag", "team", "1"}, {"tag", "project=atlas", "1"}, {"tag", "project", ""}, {"tool", "codex", "1"},
		{"endpoint", "/v1/chat/completions", "1"}, {"connection", "c1", "1"}, {"connection", "c8", "2"}, {"connection", "c9", "2"},
		{"provider", "openai", "1"}, {"provider", "groq", "2"},
		{"model", "Fast", "1"}, {"model", "openai/gpt-4o", "1"}, {"model", "groq/llama", "2"}, {"model", "fast", ""},
		{"outcome", "succeeded", "12"}, {"outcome", "refused", "3"}, {"outcome", "left", "4"}, {"outcome", "provider_failed", ""},
		{"reason", "budget", "3"}, {"reason", "key", ""}, {"failed", "true", "23"}, {"failed", "false", "14"},
		{"from", "1500", "234"}, {"from", "1501", "34"}, {"to", "1500", "12"}, {"to", "1499", "1"},
		{"minDurationMs", "300", "1"}, {"minDurationMs", "300.5", ""}, {"minDurationMs", "0", "1234"},
		{"minFirstTokenMs", "50", "1"}, {"minFirstTokenMs", "51", ""}, {"minCostUsd", "0.5", "1"}, {"minCostUsd", "0.51", ""},
	} {
		q, err := ReadRequestQuery(map[string]string{tt.name: tt.value})
		if err != nil {
			t.Errorf("%s=%s: %v", tt.name, tt.value, err)
			continue
		}
		got := ""
		for _, r := range []*store.Request{&served, &retried, &refused, &left} {
			if q.Wanted(r) {
				got += r.ID[len("req_"):]
			}
		}
		if got != tt.want {
			t.Errorf("%s=%s: requests %q, want %q", tt.name, tt.value, got, tt.want)
		}
	}
}

func TestRequestFiltersAreValidated(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		valid       bool
	}{
		{"limit", "1", true}, {"limit", "200", true}, {"limit", "0", false}, {"limit", "201", false}, {"limit", "x", false},
		{"before", "1", true}, {"after", "1", true}, {"after", "-1", false}, {"from", "9007199254740992", true}, {"to", "9007199254740993", false},
		{"sort", "cost", true}, {"sort", "price", false}, {"order", "asc", true}, {"order", "up", false},
		{"cursor", "1", true}, {"cursor", "0", false}, {"cursor", "x", false},
		{"status", "100", true}, {"status", "999", true}, {"status", "99", false}, {"status", "1000", false}, {"status", "1xx", true}, {"status", "9xx", true},
		{"status", "0xx", false}, {"status", ":xx", false}, {"status", "4xy", false}, {"status", "44xx", false}, {"status", "failed", false},
		{"failed", "yes", false}, {"outcome", "failed", false}, {"reason", "budgets", false},
		{"minDurationMs", "-1", false}, {"minCostUsd", "NaN", false}, {"minCostUsd", "x", false}, {"unknown", "", false},
	} {
		_, err := ReadRequestQuery(map[string]string{tt.name: tt.value})
		e, _ := errors.AsType[*apierr.Error](err)
		if tt.valid != (err == nil) || !tt.valid && (e == nil || e.Param != tt.name) {
			t.Errorf("%s=%s: %v", tt.name, tt.value, err)
		}
	}
}

// A scan from the newest request to the oldest ends an hour before the first that is wanted.
func TestScanEndsAnHourBeforeTheFirst(t *testing.T) {
	const hour = 3_600_000
	q, err := ReadRequestQuery(map[string]string{"from": "7200000"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		at, latency int64
		goesOn      bool
	}{{2 * hour, 0, true}, {hour, 0, true}, {hour - 1, 0, false}, {hour - 1, 1, true}, {hour - 5, 4, false}, {0, 0, false}} {
		if got := q.MayBeFollowed(&store.Request{At: tt.at, LatencyMs: tt.latency}); got != tt.goesOn {
			t.Errorf("after a request at %d of %d ms: %v", tt.at, tt.latency, got)
		}
	}
}

func TestJSONIsThatOfAnswers(t *testing.T) {
	if got := string(JSON(map[string]string{"a": "<b> & c"})); got != `{"a":"<b> & c"}` {
		t.Errorf("got %s", got)
	}
	if got := string(JSON(func() {})); got != "{}" {
		t.Errorf("of a value without JSON: %s", got)
	}
}
