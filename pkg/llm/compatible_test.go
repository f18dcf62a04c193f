package llm_test

import (
	"strings"
	"testing"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
)

// The reasoning of a tool loop is sent to a compatible server in the field that
// DeepSeek and Kimi require, under any name of the client's.
func TestReasoningGoesToCompatibleServers(t *testing.T) {
	messages := `{"messages":[{"role":"user","content":"a"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"I think","signature":"weir.chat."},{"type":"tool_use","id":"c1","name":"f","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"}]}]}`
	responses := `{"input":[{"role":"user","content":"a"},
		{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I think"}]},
		{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"r"}]}`
	foreign := strings.Replace(messages, "weir.chat.", "CLAUDE", 1)
	for _, tt := range []struct {
		name  string
		from  llm.Dialect
		body  string
		model string
		want  string
	}{
		{"messages", llm.Messages, messages, "deepseek-v4-pro", "I think"},
		{"responses", llm.Responses, responses, "kimi-k2.5", "I think"},
		{"thoughts of another provider", llm.Messages, foreign, "deepseek-v4-pro", "I think"},
		{"a model of OpenAI refuses the field", llm.Messages, messages, "openai/gpt-5", ""},
	} {
		opt := llm.Options{Model: tt.model, Deviations: ir.DeviationsOf("openai-compatible-12345678")}
		got, dropped := send(t, tt.from, llm.Chat, tt.body, opt)
		if text := got.Get("messages.1.reasoning_content").Str; text != tt.want || (tt.want == "") != (len(dropped) > 0) {
			t.Errorf("%s: got %q, dropped %v in %s", tt.name, text, dropped, got.Raw)
		}
	}
}

// Signed details of a compatible server (OpenRouter behind another gateway) are
// sent back beside the plain text.
func TestSignedReasoningGoesBackToCompatibleServer(t *testing.T) {
	opt := llm.Options{Model: "m", Deviations: ir.DeviationsOf("")}
	answer := `{"choices":[{"message":{"role":"assistant","content":"x","reasoning":"why","reasoning_details":[{"type":"reasoning.text","text":"why","signature":"S","format":"anthropic-claude-v1"}]},"finish_reason":"stop"}]}`
	out, _, err := llm.Response(llm.Chat, llm.Messages, []byte(answer), opt)
	if err != nil {
		t.Fatal(err)
	}
	turn := string(out)
	turn = turn[strings.Index(turn, `"content":[`):]
	turn = turn[:strings.Index(turn, `],"stop_reason"`)+1]
	got, _ := send(t, llm.Messages, llm.Chat, `{"messages":[{"role":"user","content":"a"},{"role":"assistant",`+turn+`},{"role":"user","content":"b"}]}`, opt)
	m := got.Get("messages.1")
	if m.Get("reasoning_content").Str != "why" || m.Get("reasoning_details.0.signature").Str != "S" || m.Get("reasoning_details.0.format").Str != "anthropic-claude-v1" {
		t.Errorf("got %s", m.Raw)
	}
}

func TestOpenAIModelsKeepTheirRulesOnCompatibleServers(t *testing.T) {
	body := `{"max_tokens":222,"temperature":0.5,"stop_sequences":["x"],"thinking":{"type":"enabled","budget_tokens":2000},"messages":[{"role":"user","content":"a"}]}`
	for _, tt := range []struct{ model, max, effort, dropped string }{
		{"gpt-5", "max_completion_tokens", "low", "temperature,stop_sequences"},
		{"openai/o4-mini", "max_completion_tokens", "low", "temperature,stop_sequences"},
		{"gpt-4o", "max_tokens", "", "thinking"},
		{"gpt-oss-120b", "max_tokens", "low", ""},
		{"deepseek-v4-pro", "max_tokens", "low", ""},
	} {
		got, dropped := send(t, llm.Messages, llm.Chat, body, llm.Options{Model: tt.model, Deviations: ir.DeviationsOf("")})
		if got.Get(tt.max).Int() != 222 || got.Get("reasoning_effort").Str != tt.effort || strings.Join(dropped, ",") != tt.dropped {
			t.Errorf("%s: got %s, dropped %v", tt.model, got.Raw, dropped)
		}
	}
	// A server that refuses the newer name of the limit keeps the other rules.
	got, dropped := send(t, llm.Messages, llm.Chat, body, llm.Options{Model: "gpt-5", Deviations: ir.DeviationsOf(""), Refuses: llm.Refusals{"max_completion_tokens"}})
	if got.Get("max_tokens").Int() != 222 || got.Get("max_completion_tokens").Exists() || strings.Join(dropped, ",") != "temperature,stop_sequences" {
		t.Errorf("got %s, dropped %v", got.Raw, dropped)
	}
	// Their efforts as well: thinking of gpt-5.1 can be disabled, of gpt-5 it
	// cannot.
	off := `{"max_tokens":222,"thinking":{"type":"disabled"},"messages":[{"role":"user","content":"a"}]}`
	for model, want := range map[string]string{"gpt-5": "minimal", "gpt-5.1": "none", "gpt-4o": ""} {
		got, _ := send(t, llm.Messages, llm.Chat, off, llm.Options{Model: model, Deviations: ir.DeviationsOf("")})
		if e := got.Get("reasoning_effort").Str; e != want {
			t.Errorf("%s: effort %q, want %q", model, e, want)
		}
	}
}

// A model name without a version may be any generation, so its temperature is
// sent.
func TestClaudeWithoutVersionKeepsTemperature(t *testing.T) {
	got, dropped := send(t, llm.Chat, llm.Messages, `{"temperature":0.2,"top_p":0.9,"messages":[{"role":"user","content":"a"}]}`, llm.Options{Model: "claude-test"})
	if got.Get("temperature").Raw != "0.2" || got.Get("top_p").Exists() || strings.Join(dropped, ",") != "top_p" {
		t.Errorf("got %s, dropped %v", got.Raw, dropped)
	}
}
