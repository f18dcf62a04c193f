package accounts

import (
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/pkg/catalog"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

func TestOutcomeOfARequest(t *testing.T) {
	limit := apierr.New(429, "rate_limit_exceeded", "x")
	limit.Reason = store.RefusedByKeyLimit
	for _, tt := range []struct {
		attempts, status int
		e                *apierr.Error
		want             string
	}{
		{1, 200, nil, "succeeded "},
		{0, 200, nil, "succeeded "},
		{1, 499, apierr.ClientLeft(nil), "left "},
		{0, 499, apierr.ClientLeft(nil), "left "},
		{1, 200, apierr.ClientLeft(nil), "left "}, // a stream
		{1, 200, apierr.New(502, "upstream_cut", "x"), "provider_failed "},
		{2, 400, apierr.Invalid("messages", "x"), "provider_failed "},
		{1, 429, apierr.New(429, "rate_limit_exceeded", "x"), "provider_failed "},
		{1, 502, nil, "provider_failed "},
		{0, 429, apierr.New(429, "rate_limit_exceeded", "All accounts"), "no_account "},
		{0, 402, apierr.New(402, "insufficient_quota", "x"), "no_account "},
		{0, 401, apierr.New(401, "account_key_refused", "x"), "no_account "},
		{0, 451, apierr.New(451, "upstream_blocked_here", "x"), "no_account "},
		{0, 503, apierr.New(503, "key_unavailable", "x"), "no_account "},
		{0, 503, apierr.New(503, "token_unavailable", "x"), "no_account "},
		{0, 503, apierr.New(503, "account_cooling_down", "x"), "no_account "},
		{1, 400, apierr.New(400, "no_credentials", "x"), "provider_failed "},
		{0, 500, apierr.New(500, "", "x"), "provider_failed "},
		{0, 429, limit, "refused key_limit"},
		{0, 429, apierr.New(429, "budget_exceeded", "x"), "refused budget"},
		{0, 403, apierr.New(403, "model_not_priced", "x"), "refused budget"},
		{0, 503, apierr.New(503, "overloaded", "x"), "refused concurrency"},
		{0, 403, apierr.New(403, "key_paused", "x"), "refused key"},
		{0, 401, apierr.New(401, "invalid_api_key", "x"), "refused key"},
		{0, 400, apierr.New(400, "model_not_found", "x"), "refused model"},
		{0, 403, apierr.New(403, "model_not_allowed", "x"), "refused model"},
		{0, 400, apierr.New(400, "no_credentials", "x"), "refused model"},
		{0, 400, apierr.New(400, "unsupported_endpoint", "x"), "refused model"},
		{0, 400, apierr.Invalid("messages", "x"), "refused request"},
		{0, 413, apierr.New(413, "request_too_large", "x"), "refused request"},
		{0, 400, nil, "refused request"},
	} {
		outcome, reason := outcomeOf(tt.attempts, tt.status, tt.e)
		if got := outcome + " " + reason; got != tt.want {
			t.Errorf("%d attempts, status %d, %+v: got %s, want %s", tt.attempts, tt.status, tt.e, got, tt.want)
		}
	}
}

// A request that was not sent counts under its model if the machine has it.
func TestUntriedRequestKeepsItsModel(t *testing.T) {
	m := snapshot.New(&store.Machine{
		Version: 1, ID: mid,
		Connections: []store.Connection{{ID: "a", Provider: "openai"}, {ID: "b", Provider: "xai", Inactive: true},
			{ID: "c", Provider: "openai-compatible-0123abcd", Inactive: true, Data: store.ProviderData{Prefix: "oa"}}},
		Combos:       []store.Combo{{Name: "fast", Models: []string{"openai/gpt-4o"}, Strategy: store.RoundRobin}},
		ModelAliases: map[string]string{"short": "openai/gpt-5"},
		Disabled:     []store.DisabledModels{{ProviderAlias: "openai", IDs: []string{"gpt-4.1"}}},
	})
	for asked, want := range map[string]string{
		"openai/gpt-4o": "openai/gpt-4o openai", "gpt-4o": "openai/gpt-4o openai", "short": "openai/gpt-5 openai",
		"fast": "fast ", catalog.ClaudePrefix + "fast": "fast ", "text-embedding-3-small": "openai/text-embedding-3-small openai",
		"no-such-model": " ", "nobody/x": " ", "groq/x": " ", "openai/gpt-4.1": " ", "": " ",
		// A regression: a paused account's were booked as an unknown model.
		"xai/grok-4": "xai/grok-4 xai", "oa/x": "oa/x openai-compatible-0123abcd",
	} {
		kind := usage.Row{}
		untried(&kind, m, asked)
		if got := kind.Model + " " + kind.Provider; got != want {
			t.Errorf("%s: got %q, want %q", asked, got, want)
		}
	}
	if turn := m.NextTurn("combo/fast"); turn != 0 {
		t.Errorf("a combo that was looked up has taken turn %d", turn)
	}
}

func TestRefusedRequestsHaveNoLatency(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	record := func(attempts, status int, e *apierr.Error) {
		r := &httpmsg.Request{ID: "r", Method: "POST", Start: w.Now().Add(-1e9), Route: "/v1/embeddings"}
		sent := make([]Outcome, attempts)
		for i := range sent {
			sent[i].Sent = true
		}
		w.pool.Record(w.Now(), w.machine, r, &Trace{KeyID: "k", Asked: "openai/gpt", Outcomes: sent, Model: "openai/gpt", Provider: "openai"}, status, e)
	}
	record(1, 200, nil)
	record(1, 502, apierr.New(502, "upstream_reset", "x"))
	record(0, 429, apierr.New(429, "budget_exceeded", "x"))
	record(0, 499, apierr.ClientLeft(nil))
	u := w.pool.reportOf(mid).Usage
	if len(u) != 1 {
		t.Fatalf("got %+v, want one row of key and model", u)
	}
	v := u[0].View()
	if v.Requests != 4 || v.Succeeded != 1 || v.ProviderFailed != 1 || v.Refused != 1 || v.RefusedBudget != 1 || v.Left != 1 || v.FailedRequests != 2 || v.LatencyMs != 3000 {
		t.Errorf("got %+v", v)
	}
	rec := w.pool.reportOf(mid).Requests[2]
	if rec.Outcome != store.Refused || rec.Reason != store.RefusedByBudget || rec.Model != "openai/gpt" || rec.KeyID != "k" {
		t.Errorf("got %+v", rec)
	}
}

// A stream can be long: what it keeps of the failures before it has no bodies.
func TestOutcomesKeepNoErrors(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	w.script[key("a")] = []fake.Answer{{Status: 500, Body: strings.Repeat("x", 60<<10)}}
	if _, e := w.send(); e != nil || len(w.trace.Outcomes) != 2 {
		t.Fatalf("%v, %d outcomes", e, len(w.trace.Outcomes))
	}
	for _, o := range w.trace.Outcomes {
		if o.failure != nil || o.err != nil {
			t.Errorf("%s keeps %v, %v", o.Connection.ID, o.failure, o.err)
		}
	}
	if failed := w.trace.Failed(); len(failed) != 1 || failed[0].Status != 500 {
		t.Errorf("failed: %+v", failed)
	}
}
