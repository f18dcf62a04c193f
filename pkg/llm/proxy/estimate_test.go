package proxy

import (
	"testing"

	"weir/pkg/llm"
	"weir/pkg/snapshot"
	"weir/pkg/store"
)

func TestEstimateReadsTheOutputLimitOfEachDialect(t *testing.T) {
	m := snapshot.New(&store.Machine{Budgets: []store.Budget{{ID: "b"}}})
	for _, tt := range []struct {
		dialect llm.Dialect
		body    string
		want    int64
	}{
		{llm.Chat, `{"max_tokens":5}`, 5},
		{llm.Chat, `{"max_tokens":5,"max_completion_tokens":7}`, 7},
		{llm.Chat, `{"max_tokens":5,"max_completion_tokens":1}`, 5},
		{llm.Chat, `{"max_tokens":1,"max_tokens":5}`, 5},
		{llm.Messages, `{"max_completion_tokens":1,"max_tokens":5}`, 5},
		{llm.Gemini, `{"generationConfig":{"maxOutputTokens":1},"generation_config":{"maxOutputTokens":5}}`, 5},
		{llm.Gemini, `{"maxOutputTokens":5}`, 0},
		{llm.Chat, `{"max_tokens":5,"n":3}`, 15},
		{llm.Chat, `{"max_tokens":5,"n":-3}`, 5},
		{llm.Chat, `{"max_tokens":5,"n":1000000}`, 5 * maxChoices},
		{llm.Chat, `{"max_tokens":-5}`, 0},
		{llm.Chat, `{"max_tokens":null}`, 0},
		{llm.Completions, `{"max_tokens":5}`, 5},
		{llm.Messages, `{"max_tokens":5}`, 5},
		{llm.Responses, `{"max_output_tokens":5,"max_tokens":9}`, 5},
		{llm.Gemini, `{"generationConfig":{"maxOutputTokens":5,"candidateCount":2}}`, 10},
		{llm.Gemini, `{"generation_config":{"max_output_tokens":5}}`, 5},
		{llm.Gemini, `{"generation_config":{"max_output_tokens":5,"candidate_count":2}}`, 10},
		{llm.Gemini, `{}`, 0},
	} {
		r := &Request{Dialect: tt.dialect, Body: []byte(tt.body)}
		if e := r.estimate(m); e.Output*e.Choices != tt.want || !e.Text {
			t.Errorf("%s: got %+v, want %d", tt.body, e, tt.want)
		}
	}
	r := &Request{Dialect: llm.Chat, Body: []byte(`{"n":8,"service_tier":"priority"}`)}
	if e := r.estimate(m); e.Output != 0 || e.Choices != 8 || e.Service != "priority" {
		t.Errorf("eight choices: %+v", e)
	}
	r = &Request{Dialect: llm.Messages, Body: []byte(`{"tools":[{"type":"web_search_20250305","max_uses":10},{"type":"web_search_20260209","max_uses":5e18},{"type":"custom","max_uses":7}]}`)}
	if e := r.estimate(m); e.Searches != 10+maxUses {
		t.Errorf("searches: %+v", e)
	}
	r = &Request{Dialect: llm.Chat, Body: []byte(`{"max_tokens":5}`)}
	if e := r.estimate(snapshot.New(&store.Machine{})); e.Text {
		t.Error("without budgets a request is scanned")
	}
}
