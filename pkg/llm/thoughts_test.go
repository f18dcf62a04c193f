package llm_test

import (
	"slices"
	"strings"
	"testing"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
)

// Of a conversation whose signatures were refused, the thoughts are left out and
// everything else stays.
func TestThoughtsAreLeftOut(t *testing.T) {
	const think = `{"type":"thinking","thinking":"hm","signature":"EqRk"}`
	const loop = `{"role":"assistant","content":[` + think + `,{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}]}`
	tests := []struct {
		name     string
		from, to llm.Dialect
		provider string
		in, want string
		dropped  string
	}{
		{
			"messages", llm.Messages, llm.Messages, "anthropic",
			`{"model":"m","max_tokens":9, "messages":[{"role":"user","content":"a"},{"role":"assistant","content":[` + think + `,{"type":"redacted_thinking","data":"x"},{"type":"text","text":"b"}]},{"role":"assistant","content":[` + think + `]},{"role":"user","content":[{"type":"text", "text":"thinking"}]}]}`,
			`{"model":"up","max_tokens":9, "messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text", "text":"thinking"}]}]}`,
			"messages.thinking",
		},
		{
			"messages, within a turn that has called tools", llm.Messages, llm.Messages, "anthropic",
			`{"model":"m","max_tokens":9,"thinking":{"type":"enabled","budget_tokens":5},"messages":[{"role":"user","content":"a"},` + loop + `]}`,
			`{"model":"up","max_tokens":9,"thinking":{"type":"disabled"},"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}]}]}`,
			"messages.thinking thinking",
		},
		{
			"responses", llm.Responses, llm.Responses, "openai",
			`{"model":"m","input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},{"type":"reasoning","id":"rs_2","summary":[]},{"role":"user","content":"a"}]}`,
			`{"model":"up","input":[{"type":"reasoning","id":"rs_2","summary":[]},{"role":"user","content":"a"}]}`,
			"input.reasoning",
		},
		{
			"chat", llm.Chat, llm.Chat, "openai-compatible-0123abcd",
			`{"model":"m","messages":[{"role":"assistant","content":"a","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}],"tool_calls":[{"id":"1","extra_content":{"google":{"thought_signature":"s"}}},{"id":"2"}]}]}`,
			`{"model":"up","messages":[{"role":"assistant","content":"a","tool_calls":[{"id":"1","extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}},{"id":"2"}]}]}`,
			"reasoning_details tool_calls.extra_content",
		},
		{
			"messages to responses", llm.Messages, llm.Responses, "openai",
			`{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"weir.openai.gAAA"},{"type":"text","text":"b"}]},{"role":"user","content":"a"}]}`,
			"", "messages.thinking",
		},
		{
			"chat to Gemini", llm.Chat, llm.Gemini, "gemini",
			`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]},{"role":"tool","tool_call_id":"1","content":"x"}]}`,
			"", "reasoning_content",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opt := llm.Options{Model: "up", Deviations: ir.DeviationsOf(tt.provider), NoThoughts: true, Tools: &llm.Tools{}}
			if tt.to == llm.Gemini {
				opt.Model = "gemini-3-pro"
			}
			got, dropped, err := llm.Request(tt.from, tt.to, []byte(tt.in), opt)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want != "" && string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if strings.Contains(string(got), "gAAA") || strings.Contains(string(got), "c2ln") {
				t.Errorf("a signature was sent: %s", got)
			}
			if !slices.Equal(dropped, strings.Fields(tt.dropped)) {
				t.Errorf("dropped %v, want %s", dropped, tt.dropped)
			}
		})
	}
}
