package llm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
)

// Claude Code's attribution differs between requests. In front of a prompt for another
// provider it prevented every hit of that provider's prompt cache.
func TestAttributionIsSentToAnthropicOnly(t *testing.T) {
	const line = `x-anthropic-billing-header: cc_version=2.1.177.01c; cc_entrypoint=cli; cch=36ee5;`
	tests := []struct{ name, system, want, text string }{
		{"first block", `[{"type":"text","text":"` + line + `"},{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]`,
			`[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]`, "Be brief."},
		{"first line of a block", `[{"type":"text","text":"` + line + `\nBe brief."}]`, `[{"type":"text","text":"Be brief."}]`, "Be brief."},
		{"first line", `"` + line + `\nBe brief.\nAnd kind."`, `"Be brief.\nAnd kind."`, "Be brief.\nAnd kind."},
		{"only block", `[{"type":"text","text":"` + line + `"}]`, ``, ""},
		{"only line", `"` + line + `"`, ``, ""},
		{"elsewhere", `[{"type":"text","text":"Be brief."},{"type":"text","text":"` + line + `"}]`,
			`[{"type":"text","text":"Be brief."},{"type":"text","text":"` + line + `"}]`, "Be brief." + line},
		{"another text", `"About x-anthropic-billing-header: it"`, `"About x-anthropic-billing-header: it"`, "About x-anthropic-billing-header: it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := `{"model":"m","system":` + tt.system + `,"max_tokens":9,"messages":[{"role":"user","content":"Hello"}]}`
			at, _, err := llm.Request(llm.Messages, llm.Messages, []byte(body), llm.Options{Model: "m", Attribution: true})
			if err != nil || string(at) != body {
				t.Errorf("to Anthropic: %s %v", at, err)
			}
			sent, dropped, err := llm.Request(llm.Messages, llm.Messages, []byte(body), llm.Options{Model: "m"})
			if got := gjson.GetBytes(sent, "system").Raw; err != nil || got != tt.want {
				t.Errorf("to a compatible server: %s %v, want %s", got, err, tt.want)
			}
			had := tt.want != tt.system
			if slices.Contains(dropped, "system.x-anthropic-billing-header") != had {
				t.Errorf("to a compatible server: dropped %v", dropped)
			}
			for _, to := range []llm.Dialect{llm.Chat, llm.Responses, llm.Gemini, llm.Cohere, llm.Converse} {
				sent, dropped, err := llm.Request(llm.Messages, to, []byte(body), llm.Options{Model: "m", Attribution: true})
				if err != nil || had && strings.Contains(string(sent), "cch=") || !had && !strings.Contains(string(sent), "x-anthropic-billing-header:") ||
					slices.Contains(dropped, "system.x-anthropic-billing-header") != had {
					t.Errorf("to %s: %s, dropped %v, %v", to, sent, dropped, err)
				}
				if tt.text != "" && !strings.Contains(strings.NewReplacer(`"},{"type":"text","text":"`, "", `"},{"text":"`, "", `\n\n`, "").Replace(string(sent)), strings.ReplaceAll(tt.text, "\n", `\n`)) {
					t.Errorf("to %s: %s lacks %q", to, sent, tt.text)
				}
			}
		})
	}
}
