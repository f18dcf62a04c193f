package llm

import (
	"slices"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// A limit that budgets ask for is sent in every dialect, and named. A lower one of the client
// stays.
func TestOutputLimit(t *testing.T) {
	const n = 5000
	bodies := map[Dialect][3]string{ // without a limit, with one of 70, with a larger one
		Chat:      {`{"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":null}`, `{"model":"m","messages":[{"role":"user","content":"a"}],"max_completion_tokens":70}`, `{"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":60,"max_completion_tokens":100000000}`},
		Responses: {`{"model":"m","input":"a"}`, `{"model":"m","input":"a","max_output_tokens":70}`, `{"model":"m","input":"a","max_output_tokens":100000000}`},
		Messages:  {`{"model":"m","messages":[{"role":"user","content":"a"}]}`, `{"model":"m","max_tokens":70,"messages":[{"role":"user","content":"a"}]}`, `{"model":"m","max_tokens":100000000,"messages":[{"role":"user","content":"a"}]}`},
		Gemini: {
			`{"contents":[{"role":"user","parts":[{"text":"a"}]}],"generationConfig":{"topK":3}}`,
			`{"contents":[{"role":"user","parts":[{"text":"a"}]}],"generationConfig":{"maxOutputTokens":70}}`,
			`{"contents":[{"role":"user","parts":[{"text":"a"}]}],"generationConfig":{"maxOutputTokens":100000000}}`,
		},
		Completions: {`{"model":"m","prompt":"a"}`, `{"model":"m","prompt":"a","max_tokens":70}`, `{"model":"m","prompt":"a","max_tokens":100000000}`},
	}
	named := map[Dialect]string{
		Chat: "max_completion_tokens=5000", Responses: "max_output_tokens=5000", Messages: "max_tokens=5000",
		Gemini: "generationConfig.maxOutputTokens=5000", Completions: "max_tokens=5000",
	}
	sent := map[Dialect]string{
		Chat: "max_completion_tokens", Responses: "max_output_tokens", Messages: "max_tokens", Gemini: "generationConfig.maxOutputTokens",
		Cohere: "max_tokens", Converse: "inferenceConfig.maxTokens",
	}
	for from, body := range bodies {
		for to, field := range sent {
			for i, want := range [...]int64{n, 70, n} {
				out, dropped, err := Request(from, to, []byte(body[i]), Options{Model: "claude-opus-5", MaxOutput: 128_000, MaxTokens: 128_000, OutputLimit: n})
				if err != nil {
					t.Fatalf("%v to %v: %v", from, to, err)
				}
				if got := gjson.GetBytes(out, field).Int(); got != want {
					t.Errorf("%v to %v: %s is %d, want %d: %s", from, to, field, got, want, out)
				}
				if got := slices.Contains(dropped, named[from]); got != (i != 1) {
					t.Errorf("%v to %v: dropped %q", from, to, dropped)
				}
			}
		}
	}
}

func TestOutputLimitHasTheNameThatTheUpstreamKnows(t *testing.T) {
	for _, tt := range []struct {
		d                        Dialect
		provider, body, sent, to string
	}{
		{Chat, "mistral", `{"model":"m","messages":[]}`, "max_tokens", "max_tokens=9"},
		{Chat, "openai-compatible-0123abcd", `{"model":"m","messages":[]}`, "max_tokens", "max_tokens=9"},
		{Gemini, "gemini", `{"contents":[],"generation_config":{"top_k":3}}`, "generation_config.maxOutputTokens", "generation_config.maxOutputTokens=9"},
	} {
		out, dropped, err := Request(tt.d, tt.d, []byte(tt.body), Options{Model: "m", Deviations: ir.DeviationsOf(tt.provider), OutputLimit: 9})
		if err != nil || gjson.GetBytes(out, tt.sent).Int() != 9 || !slices.Contains(dropped, tt.to) {
			t.Errorf("%s: %v, %s, dropped %q", tt.provider, err, out, dropped)
		}
	}
}

// A regression: for a Claude whose thinking has a budget, the tokens of that came on top of
// the client's limit, which is what budgets have reserved.
func TestThinkingStaysWithinTheOutputLimit(t *testing.T) {
	body := []byte(`{"model":"m","max_tokens":6000,"reasoning_effort":"high","messages":[{"role":"user","content":"a"}]}`)
	for to, field := range map[Dialect]string{Messages: "max_tokens", Converse: "inferenceConfig.maxTokens"} {
		for limit, want := range map[int64]bool{0: false, 6000: true} {
			out, _, err := Request(Chat, to, body, Options{Model: "anthropic.claude-sonnet-4-5-v1:0", MaxOutput: 64_000, OutputLimit: limit})
			if err != nil {
				t.Fatal(err)
			}
			if got := gjson.GetBytes(out, field).Int(); (got <= 6000) != want {
				t.Errorf("%v, limit %d: %s is %d: %s", to, limit, field, got, out)
			}
		}
	}
}
