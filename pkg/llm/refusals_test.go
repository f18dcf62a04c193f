package llm_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
)

// A compatible server gets a chat client's bytes except for the model, and
// older forms only of what it has refused by name.
func TestCompatibleServerGetsClientBytes(t *testing.T) {
	const in = `{ "model":"eo/gpt-5", "max_completion_tokens":222, "reasoning_effort":"xhigh","messages":[{"role":"developer","content":"be developer"},{"role":"assistant","content":"","reasoning_content":"I think","tool_calls":[{"id":"1","extra_content":{"a":1}}]}], "seed":1}`
	tests := []struct {
		name    string
		refuses llm.Refusals
		want    string
		dropped []string
	}{
		{"nothing refused", nil,
			`{ "model":"up", "max_completion_tokens":222, "reasoning_effort":"xhigh","messages":[{"role":"developer","content":"be developer"},{"role":"assistant","content":"","reasoning_content":"I think","tool_calls":[{"id":"1","extra_content":{"a":1}}]}], "seed":1}`, nil},
		{"max_completion_tokens refused", llm.Refusals{"max_completion_tokens"},
			`{ "model":"up", "reasoning_effort":"xhigh","messages":[{"role":"developer","content":"be developer"},{"role":"assistant","content":"","reasoning_content":"I think","tool_calls":[{"id":"1","extra_content":{"a":1}}]}], "seed":1,"max_tokens":222}`, []string{"max_completion_tokens"}},
		{"developer refused", llm.Refusals{"developer"},
			`{ "model":"up", "max_completion_tokens":222, "reasoning_effort":"xhigh","messages":[{"role":"system","content":"be developer"},{"role":"assistant","content":"","reasoning_content":"I think","tool_calls":[{"id":"1","extra_content":{"a":1}}]}], "seed":1}`, []string{"developer"}},
		{"reasoning_effort refused", llm.Refusals{"reasoning_effort"},
			`{ "model":"up", "max_completion_tokens":222,"messages":[{"role":"developer","content":"be developer"},{"role":"assistant","content":"","reasoning_content":"I think","tool_calls":[{"id":"1","extra_content":{"a":1}}]}], "seed":1}`, []string{"reasoning_effort"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opt := llm.Options{Model: "up", Deviations: ir.DeviationsOf("openai-compatible-0123abcd"), Refuses: tt.refuses}
			got, dropped, err := llm.Request(llm.Chat, llm.Chat, []byte(in), opt)
			if err != nil || string(got) != tt.want || !reflect.DeepEqual(dropped, tt.dropped) {
				t.Errorf("got\n%s %v %v\nwant\n%s %v", got, dropped, err, tt.want, tt.dropped)
			}
		})
	}
}

// A model that reasons cannot be forced to call a tool by these vendors.
func TestForcedToolYieldsToReasoning(t *testing.T) {
	const tools = `"tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"a"}]`
	for _, tt := range []struct {
		from     llm.Dialect
		provider string
		body     string
		forced   bool
	}{
		{llm.Chat, "moonshot", `{"model":"m","reasoning_effort":"high","tool_choice":"required",` + tools + `}`, false},
		{llm.Chat, "moonshot", `{"model":"m","reasoning_effort":"high","tool_choice":{"type":"function","function":{"name":"f"}},` + tools + `}`, false},
		{llm.Chat, "moonshot", `{"model":"m","reasoning_effort":"none","tool_choice":"required",` + tools + `}`, true},
		{llm.Chat, "moonshot", `{"model":"m","tool_choice":"required",` + tools + `}`, true},
		{llm.Chat, "dashscope", `{"model":"m","reasoning_effort":"high","tool_choice":"required",` + tools + `}`, false},
		{llm.Chat, "openai", `{"model":"m","reasoning_effort":"high","tool_choice":"required",` + tools + `}`, true},
		{llm.Messages, "moonshot", `{"model":"m","max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2000},"tool_choice":{"type":"any"},"tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"a"}]}`, false},
	} {
		got, dropped, err := llm.Request(tt.from, llm.Chat, []byte(tt.body), llm.Options{Model: "up", Vendor: true, Deviations: ir.DeviationsOf(tt.provider)})
		if forced := gjson.GetBytes(got, "tool_choice").Exists(); err != nil || forced != tt.forced || slices.Contains(dropped, "tool_choice") == forced {
			t.Errorf("%s, %s: got %s, dropped %v, %v", tt.provider, tt.body, got, dropped, err)
		}
	}
}

// A translated request has the newer name if the older one was refused.
func TestTranslatedRequestAvoidsRefusedNames(t *testing.T) {
	const in = `{"model":"a","max_tokens":7,"system":"s","messages":[{"role":"user","content":"b"}]}`
	for _, tt := range []struct {
		refuses llm.Refusals
		want    string
	}{
		{nil, `{"model":"up","messages":[{"role":"system","content":"s"},{"role":"user","content":"b"}],"max_tokens":7}`},
		{llm.Refusals{"max_tokens"}, `{"model":"up","messages":[{"role":"system","content":"s"},{"role":"user","content":"b"}],"max_completion_tokens":7}`},
	} {
		opt := llm.Options{Model: "up", Deviations: ir.DeviationsOf("openai-compatible-0123abcd"), Refuses: tt.refuses}
		got, _, err := llm.Request(llm.Messages, llm.Chat, []byte(in), opt)
		if err != nil || string(got) != tt.want {
			t.Errorf("got\n%s %v\nwant\n%s", got, err, tt.want)
		}
	}
}

func TestRefused(t *testing.T) {
	const sent = `{"max_completion_tokens":1,"reasoning_effort":"low","messages":[{"role":"developer","content":"a"}]}`
	tests := []struct {
		name                      string
		status                    int
		code, param, message, raw string
		want                      string // of the names that have another form
	}{
		{"param and code", 400, "unsupported_parameter", "max_completion_tokens", "", "", "max_completion_tokens"},
		{"param alone", 400, "", "max_completion_tokens", "nope", "", "max_completion_tokens"},
		{"a wrong value", 400, "invalid_value", "max_completion_tokens", "", "", ""},
		{"another field", 400, "unsupported_parameter", "top_k", "", "", ""},
		{"a field that was not sent", 400, "unsupported_parameter", "max_tokens", "", "", ""},
		{"documented text", 400, "", "", "Unrecognized request argument supplied: max_completion_tokens", "", "max_completion_tokens"},
		{"any other text", 400, "", "", "max_completion_tokens is nice", "", ""},
		{"pydantic list", 422, "", "", "Extra inputs are not permitted", `{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted"}]}`, "max_completion_tokens"},
		{"pydantic list of a nested field", 422, "", "", "", `{"detail":[{"type":"extra_forbidden","loc":["body","messages",0,"max_completion_tokens"]}]}`, ""},
		{"role by param", 400, "invalid_value", "messages[0].role", "", "", "developer"},
		{"role by text", 400, "", "", "messages[0].role: unknown variant `developer`, expected one of `system`", "", "developer"},
		{"effort", 400, "unsupported_parameter", "reasoning_effort", "", "", "reasoning_effort"},
		{"a value of effort", 400, "unsupported_value", "reasoning_effort", "", "", ""},
		{"effort without a code", 400, "", "reasoning_effort", "", "", ""},
		{"another status", 500, "unsupported_parameter", "max_completion_tokens", "", "", ""},
	}
	for _, tt := range tests {
		got := ""
		for _, name := range llm.Refused(llm.Chat, []byte(sent), tt.status, tt.code, tt.param, tt.message, []byte(tt.raw)) {
			if ir.HasOtherForm(name) {
				got += name
			}
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
