package llm_test

import (
	"strings"
	"testing"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
)

// A field that a target does not support is sent in another place or named as
// dropped.
func TestLostFieldsAreNamed(t *testing.T) {
	const hi = `"messages":[{"role":"user","content":"a"}]`
	const text = `"input":"a"`
	format := `{"type":"json_schema","json_schema":{"name":"person","description":"One.","schema":{"type":"object"}}}`
	for _, tt := range []struct {
		name     string
		from, to llm.Dialect
		body     string
		opt      llm.Options
		path     string // of what was carried over
		want     string // its JSON
		dropped  string
	}{
		{"chances", llm.Chat, llm.Messages, `"logprobs":true,"top_logprobs":2,` + hi, llm.Options{}, "logprobs", "", "logprobs,top_logprobs"},
		{"the name of a format", llm.Chat, llm.Messages, `"response_format":` + format + `,` + hi, llm.Options{Model: "claude-opus-4-6"}, "output_config.format.schema.title", `"person"`, ""},
		{"its description", llm.Chat, llm.Gemini, `"response_format":` + format + `,` + hi, llm.Options{}, "generationConfig.responseJsonSchema.description", `"One."`, ""},
		{"a title of its own", llm.Chat, llm.Gemini, `"response_format":` + strings.Replace(format, `{"type":"object"}`, `{"title":"T"}`, 1) + `,` + hi, llm.Options{}, "generationConfig.responseJsonSchema.title", `"T"`, "response_format.json_schema.name"},
		{"the format of Responses", llm.Responses, llm.Gemini, `"text":{"format":{"type":"json_schema","name":"person","schema":{"title":"T"}}},` + text, llm.Options{}, "generationConfig.responseJsonSchema.title", `"T"`, "text.format.name"},
		{"two names of a user", llm.Chat, llm.Messages, `"user":"u","safety_identifier":"s",` + hi, llm.Options{}, "metadata.user_id", `"s"`, "user"},
		{"the same name twice", llm.Chat, llm.Messages, `"user":"s","safety_identifier":"s",` + hi, llm.Options{}, "metadata.user_id", `"s"`, ""},
		{"both reach OpenAI", llm.Responses, llm.Chat, `"user":"u","safety_identifier":"s",` + text, llm.Options{Deviations: ir.DeviationsOf("openai")}, "user", `"u"`, ""},
		{"one reaches a compatible server", llm.Responses, llm.Chat, `"user":"u","safety_identifier":"s",` + text, llm.Options{Deviations: ir.DeviationsOf("")}, "user", `"s"`, "user"},
		{"what to include", llm.Responses, llm.Messages, `"include":["file_search_call.results","reasoning.encrypted_content"],` + text, llm.Options{}, "include", "", "include"},
		{"chances of a response", llm.Responses, llm.Messages, `"include":["message.output_text.logprobs"],` + text, llm.Options{}, "include", "", "include"},
		{"their number", llm.Responses, llm.Messages, `"top_logprobs":2,` + text, llm.Options{}, "top_logprobs", "", "top_logprobs"},
		{"an effort over the highest", llm.Messages, llm.Chat, `"max_tokens":9,"thinking":{"type":"adaptive"},"output_config":{"effort":"max"},` + hi, llm.Options{Model: "gpt-5", Deviations: ir.DeviationsOf("openai")}, "reasoning_effort", `"high"`, "output_config.effort"},
		{"a budget is an estimate", llm.Messages, llm.Chat, `"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2048},` + hi, llm.Options{Model: "gpt-5", Deviations: ir.DeviationsOf("openai")}, "reasoning_effort", `"medium"`, ""},
		{"levels where there is a switch", llm.Chat, llm.Chat, `"reasoning_effort":"low",` + hi, llm.Options{Deviations: ir.DeviationsOf("zai")}, "thinking.type", `"enabled"`, "reasoning_effort"},
		{"schemas of tools", llm.Chat, llm.Gemini, `"tools":[{"type":"function","function":{"name":"f","parameters":{"$schema":"x","type":"object"}}}],` + hi, llm.Options{}, "tools.0.functionDeclarations.0.parametersJsonSchema", `{"type":"object"}`, ""},
	} {
		got, dropped := send(t, tt.from, tt.to, "{"+tt.body+"}", tt.opt)
		if raw := got.Get(tt.path).Raw; raw != tt.want || strings.Join(dropped, ",") != tt.dropped {
			t.Errorf("%s: got %s, dropped %v in %s", tt.name, raw, dropped, got.Raw)
		}
	}
}
