package proxy

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/wire/httpmsg"
)

func TestBetasOfHostedClaude(t *testing.T) {
	for _, tt := range []struct{ name, model, betas, header, body, dropped string }{
		{"vertex", "ve/claude-sonnet-4-5", "context-1m-2025-08-07, web-search-2025-03-05,,effort-2025-11-24", "context-1m-2025-08-07,web-search-2025-03-05", "", "anthropic-beta"},
		{"bedrock", "br/anthropic.claude-sonnet-4-5-v1:0", "context-1m-2025-08-07,effort-2025-11-24", "", `["context-1m-2025-08-07","effort-2025-11-24"]`, ""},
		{"another_name", "br/anthropic.claude-sonnet-4-5-v1:0", "advanced-tool-use-2025-11-20", "", `["tool-search-tool-2025-10-19"]`, ""},
		{"claude_3_does_not_interleave", "br/anthropic.claude-3-7-sonnet-v1:0", "interleaved-thinking-2025-05-14", "", "", "anthropic-beta"},
		{"unknown", "br/anthropic.claude-sonnet-4-5-v1:0", `x"y,files-api-2025-04-14`, "", "", "anthropic-beta"},
		{"converse_has_no_betas", "br/amazon.nova-lite-v1:0", "context-1m-2025-08-07", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, append(usual, provided{prefix: "ve", provider: "vertex", vars: map[string]string{"project": "p-1", "location": "us-east5"}})...)
			var body []byte
			w.Answer = func(r *fake.Seen) fake.Answer {
				body = []byte(r.Body)
				if strings.Contains(r.URL, "/converse") {
					return recorded(t, llm.Converse, false)
				}
				return recorded(t, llm.Messages, false)
			}
			if _, err := w.ask(llm.Messages, request(llm.Messages, tt.model, false), httpmsg.Field{Name: "anthropic-beta", Value: tt.betas}); err != nil {
				t.Fatal(err)
			}
			if got := w.Seen[0].Header.Get("anthropic-beta"); got != tt.header {
				t.Errorf("header %q, want %q", got, tt.header)
			}
			if got := gjson.GetBytes(body, "anthropic_beta").Raw; got != tt.body || !gjson.ValidBytes(body) {
				t.Errorf("body has %q, want %q, in %s", got, tt.body, body)
			}
			if got := strings.Join(w.call.Trace.Dropped, ","); strings.Contains(got, "anthropic-beta") != (tt.dropped != "") {
				t.Errorf("dropped %q, want %q", got, tt.dropped)
			}
		})
	}
}

// A field without its beta feature is refused, so both reach an upstream or neither
// does.
func TestFieldsGoWithTheirBetas(t *testing.T) {
	const body = `{"model":"%s","max_tokens":9,"speed":"fast","output_config":{"effort":"low","task_budget":{"type":"tokens","total":9}},"context_management":{"edits":[]},` +
		`"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","scope":"global"}}],` +
		`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"scope":{"type":"string"}}},"eager_input_streaming":true,"cache_control":{"type":"ephemeral","scope":"global"}}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"scope","cache_control":{"type":"ephemeral","scope":"global"}}]}]}`
	all := []string{"speed", "output_config.task_budget", "context_management", "system.0.cache_control.scope", "tools.0.cache_control.scope", "tools.0.eager_input_streaming", "messages.0.content.0.cache_control.scope"}
	const betas = "fast-mode-2026-02-01,task-budgets-2026-03-13,context-management-2025-06-27,prompt-caching-scope-2026-01-05,fine-grained-tool-streaming-2025-05-14"
	for _, tt := range []struct{ name, model, betas, gone, dropped string }{
		{"anthropic", "cl/claude-sonnet-4-5", betas, "", ""},
		{"compatible", "an/m", betas, "", ""},
		{"bedrock", "br/anthropic.claude-sonnet-4-5-v1:0", betas,
			"speed output_config.task_budget system.0.cache_control.scope tools.0.cache_control.scope messages.0.content.0.cache_control.scope",
			"anthropic-beta messages.content.cache_control.scope output_config.task_budget speed system.cache_control.scope tools.cache_control.scope"},
		{"vertex", "ve/claude-sonnet-4-5", betas,
			"speed output_config.task_budget system.0.cache_control.scope tools.0.cache_control.scope tools.0.eager_input_streaming messages.0.content.0.cache_control.scope",
			"anthropic-beta messages.content.cache_control.scope output_config.task_budget speed system.cache_control.scope tools.cache_control.scope tools.eager_input_streaming"},
		{"fields without a beta are the client's choice", "br/anthropic.claude-sonnet-4-5-v1:0", "context-1m-2025-08-07", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, append(usual, provided{prefix: "ve", provider: "vertex", vars: map[string]string{"project": "p-1", "location": "us-east5"}})...)
			w.Answer = func(*fake.Seen) fake.Answer { return recorded(t, llm.Messages, false) }
			if _, err := w.ask(llm.Messages, strings.ReplaceAll(body, "%s", tt.model), httpmsg.Field{Name: "anthropic-beta", Value: tt.betas}); err != nil {
				t.Fatal(err)
			}
			sent := w.bodies()[0]
			var gone []string
			for _, path := range all {
				if !gjson.Get(sent, path).Exists() {
					gone = append(gone, path)
				}
			}
			if got := strings.Join(gone, " "); got != tt.gone || !gjson.Valid(sent) {
				t.Errorf("gone %q, want %q, in %s", got, tt.gone, sent)
			}
			dropped := slices.Clone(w.call.Trace.Dropped)
			slices.Sort(dropped)
			if got := strings.Join(dropped, " "); got != tt.dropped {
				t.Errorf("dropped %q, want %q", got, tt.dropped)
			}
			if !gjson.Get(sent, "tools.0.input_schema.properties.scope").Exists() || gjson.Get(sent, "output_config.effort").Str != "low" {
				t.Errorf("sent %s", sent)
			}
		})
	}
}
