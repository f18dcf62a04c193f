package translate_test

import (
	"strings"
	"testing"

	"weir/pkg/translate"
)

// What a target cannot say is carried over in another place or named.
func TestLostFieldsAreNamed(t *testing.T) {
	const hi = `"messages":[{"role":"user","content":"a"}]`
	const text = `"input":"a"`
	format := `{"type":"json_schema","json_schema":{"name":"person","description":"One.","schema":{"type":"object"}}}`
	for _, tt := range []struct {
		name     string
		from, to translate.Dialect
		body     string
		opt      translate.Options
		path     string // of what was carried over
		want     string // its JSON
		dropped  string
	}{
		{"chances", translate.Chat, translate.Messages, `"logprobs":true,"top_logprobs":2,` + hi, translate.Options{}, "logprobs", "", "logprobs,top_logprobs"},
		{"the name of a format", translate.Chat, translate.Messages, `"response_format":` + format + `,` + hi, translate.Options{Model: "claude-opus-4-6"}, "output_config.format.schema.title", `"person"`, ""},
		{"its description", translate.Chat, translate.Gemini, `"response_format":` + format + `,` + hi, translate.Options{}, "generationConfig.responseJsonSchema.description", `"One."`, ""},
		{"a title of its own", translate.Chat, translate.Gemini, `"response_format":` + strings.Replace(format, `{"type":"object"}`, `{"title":"T"}`, 1) + `,` + hi, translate.Options{}, "generationConfig.responseJsonSchema.title", `"T"`, "response_format.json_schema.name"},
		{"the format of Responses", translate.Responses, translate.Gemini, `"text":{"format":{"type":"json_schema","name":"person","schema":{"title":"T"}}},` + text, translate.Options{}, "generationConfig.responseJsonSchema.title", `"T"`, "text.format.name"},
		{"two names of a user", translate.Chat, translate.Messages, `"user":"u","safety_identifier":"s",` + hi, translate.Options{}, "metadata.user_id", `"s"`, "user"},
		{"the same name twice", translate.Chat, translate.Messages, `"user":"s","safety_identifier":"s",` + hi, translate.Options{}, "metadata.user_id", `"s"`, ""},
		{"both reach OpenAI", translate.Responses, translate.Chat, `"user":"u","safety_identifier":"s",` + text, translate.Options{Deviations: translate.DeviationsOf("openai")}, "user", `"u"`, ""},
		{"one reaches a compatible server", translate.Responses, translate.Chat, `"user":"u","safety_identifier":"s",` + text, translate.Options{Deviations: translate.DeviationsOf("")}, "user", `"s"`, "user"},
		{"what to include", translate.Responses, translate.Messages, `"include":["file_search_call.results","reasoning.encrypted_content"],` + text, translate.Options{}, "include", "", "include"},
		{"an effort over the highest", translate.Messages, translate.Chat, `"max_tokens":9,"thinking":{"type":"adaptive"},"output_config":{"effort":"max"},` + hi, translate.Options{Model: "gpt-5", Deviations: translate.DeviationsOf("openai")}, "reasoning_effort", `"high"`, "output_config.effort"},
		{"a budget is an estimate", translate.Messages, translate.Chat, `"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2048},` + hi, translate.Options{Model: "gpt-5", Deviations: translate.DeviationsOf("openai")}, "reasoning_effort", `"medium"`, ""},
		{"levels where there is a switch", translate.Chat, translate.Chat, `"reasoning_effort":"low",` + hi, translate.Options{Deviations: translate.DeviationsOf("zai")}, "thinking.type", `"enabled"`, "reasoning_effort"},
		{"schemas of tools", translate.Chat, translate.Gemini, `"tools":[{"type":"function","function":{"name":"f","parameters":{"$schema":"x","type":"object"}}}],` + hi, translate.Options{}, "tools.0.functionDeclarations.0.parametersJsonSchema", `{"type":"object"}`, ""},
	} {
		got, dropped := send(t, tt.from, tt.to, "{"+tt.body+"}", tt.opt)
		if raw := got.Get(tt.path).Raw; raw != tt.want || strings.Join(dropped, ",") != tt.dropped {
			t.Errorf("%s: got %s, dropped %v in %s", tt.name, raw, dropped, got.Raw)
		}
	}
}
