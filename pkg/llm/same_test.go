package llm_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
)

func TestSameDialectPassesBytes(t *testing.T) {
	tests := []struct {
		name, provider string
		d              llm.Dialect
		in, want       string
		dropped        []string
	}{
		{"only_the_model_changes", "openai", llm.Chat,
			`{ "model" : "alias/x", "seed":9007199254740993,"x":0.1000,"messages":[] }`,
			`{ "model" : "up", "seed":9007199254740993,"x":0.1000,"messages":[] }`, nil},
		{"responses", "openai", llm.Responses,
			`{"input":"a","model":"alias/x","store":true}`, `{"input":"a","model":"up","store":true}`, nil},
		{"messages", "anthropic", llm.Messages,
			`{"model":"alias/x","max_tokens":1,"messages":[{"role":"user","content":"a"}]}`,
			`{"model":"up","max_tokens":1,"messages":[{"role":"user","content":"a"}]}`, nil},
		{"gemini", "gemini", llm.Gemini,
			`{ "contents" : [{"parts":{"text":"a"}}],"safetySettings":[],"x":0.1000}`, `{ "contents" : [{"parts":{"text":"a"}}],"safetySettings":[],"x":0.1000}`, nil},
		{"gemini_with_the_model_in_the_body", "gemini", llm.Gemini,
			`{"model":"models/alias/x","contents":[]}`, `{"model":"models/up","contents":[]}`, nil},
		{"gemini_signatures_of_others_are_removed", "gemini", llm.Gemini,
			`{"contents":[{"role":"model","parts":[{"text":"t","thought":true,"thoughtSignature":"d2Vpci5hbnRocm9waWMuU0lH"}]},{"role":"model","parts":[{"text":"own","thought":true,"thoughtSignature":"R0VN"},{"functionCall":{"name":"f"},"thoughtSignature":"d2Vpci5jaGF0Lg=="},{"functionCall":{"name":"g"},"thought_signature":"d2Vpci52ZXJ0ZXguU0lH"}]},{"parts":[{"text":"d2Vpci5"}]}]}`,
			`{"contents":[{"role":"model","parts":[{"text":"own","thought":true,"thoughtSignature":"R0VN"},{"functionCall":{"name":"f"},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"g"},"thought_signature":"skip_thought_signature_validator"}]},{"parts":[{"text":"d2Vpci5"}]}]}`, []string{"contents.parts.thoughtSignature"}},
		{"openai_gets_max_tokens_unchanged", "openai", llm.Chat,
			`{"model":"a","max_tokens":5,"messages":[]}`, `{"model":"up","max_tokens":5,"messages":[]}`, nil},
		{"max_tokens_is_renamed", "deepseek", llm.Chat,
			`{"model":"a","max_completion_tokens":5,"messages":[]}`, `{"model":"up","messages":[],"max_tokens":5}`, nil},
		{"seed_is_renamed", "mistral", llm.Chat,
			`{"model":"a","seed":1,"messages":[],"logprobs":true,"stream_options":{}}`,
			`{"model":"up","messages":[],"random_seed":1}`, []string{"logprobs"}},
		{"tool_ids_are_shortened_alike", "mistral", llm.Chat,
			`{"model":"a","messages":[{"role":"assistant","tool_calls":[{"id":"call_long_1"}]},{"role":"tool","tool_call_id":"call_long_1"},{"role":"tool","tool_call_id":"abcDEF123"}]}`,
			`{"model":"up","messages":[{"role":"assistant","tool_calls":[{"id":"ID"}]},{"role":"tool","tool_call_id":"ID"},{"role":"tool","tool_call_id":"abcDEF123"}]}`, nil},
		{"developer_is_system_elsewhere", "groq", llm.Chat,
			`{"model":"a","messages":[{"role":"developer","content":"developer"},{"role":"user","content":"b"}]}`,
			`{"model":"up","messages":[{"role":"system","content":"developer"},{"role":"user","content":"b"}]}`, nil},
		{"temperature_zero", "zai", llm.Chat,
			`{"model":"a","temperature":0,"messages":[]}`, `{"model":"up","messages":[],"do_sample":false}`, nil},
		{"effort_is_rounded", "xai", llm.Chat,
			`{"model":"a","reasoning_effort":"xhigh","messages":[]}`, `{"model":"up","reasoning_effort":"high","messages":[]}`, []string{"reasoning_effort"}},
		{"effort_becomes_thinking", "deepseek", llm.Chat,
			`{"model":"a","reasoning_effort":"none","messages":[]}`, `{"model":"up","messages":[],"thinking":{"type":"disabled"}}`, nil},
		{"fields_sent_always", "minimax", llm.Chat,
			`{"model":"a","messages":[]}`, `{"model":"up","messages":[],"reasoning_split":true}`, nil},
		{"added_fields_are_removed", "openai", llm.Chat,
			`{"model":"a","messages":[{"role":"assistant","content":"x","reasoning_content":"r","reasoning_details":[],"tool_calls":[{"id":"1","extra_content":{"google":{}}}]}]}`,
			`{"model":"up","messages":[{"role":"assistant","content":"x","tool_calls":[{"id":"1"}]}]}`, []string{"reasoning_content", "reasoning_details"}},
		{"compatible_server_gets_its_reasoning", "openai-compatible-12345678", llm.Chat,
			`{"model":"a","messages":[{"role":"assistant","content":"","reasoning_content":"I think","reasoning_details":[{"type":"x"}],"tool_calls":[{"id":"1","extra_content":{"google":{}}}]},{"role":"assistant","content":"x","reasoning":"r"}]}`,
			`{"model":"up","messages":[{"role":"assistant","content":"","reasoning_content":"I think","reasoning_details":[{"type":"x"}],"tool_calls":[{"id":"1","extra_content":{"google":{}}}]},{"role":"assistant","content":"x","reasoning":"r"}]}`, nil},
		{"googles_openai_api_gets_supported_fields", "gemini", llm.Chat,
			`{"model":"a","seed":1,"frequency_penalty":0.1,"store":false,"user":"u","metadata":null,"temperature":0.5,"n":2,"messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"$schema":"d","type":"object"}}},"tools":[{"type":"function","function":{"name":"f","parameters":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"$schema":{"type":"string","$schema":"s"},"a":{"default":{"$schema":1}}}}}}]}`,
			`{"model":"up","temperature":0.5,"n":2,"messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}},"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"$schema":{"type":"string"},"a":{"default":{"$schema":1}}}}}}]}`, []string{"seed", "frequency_penalty", "store", "user"}},
		{"an_effort_beside_reasoning_is_named", "openrouter", llm.Chat,
			`{"model":"a","reasoning":{"effort":"low"},"reasoning_effort":"high","messages":[]}`, `{"model":"up","reasoning":{"effort":"low"},"messages":[]}`, []string{"reasoning_effort"}},
		{"google_keeps_its_signatures", "gemini", llm.Chat,
			`{"model":"a","messages":[{"role":"assistant","tool_calls":[{"id":"1","extra_content":{"google":{"thought_signature":"S"}}}]}]}`,
			`{"model":"up","messages":[{"role":"assistant","tool_calls":[{"id":"1","extra_content":{"google":{"thought_signature":"S"}}}]}]}`, nil},
		{"reasoning_has_the_upstreams_name", "openrouter", llm.Chat,
			`{"model":"a","messages":[{"role":"assistant","content":"x","reasoning_content":"r"}]}`,
			`{"model":"up","messages":[{"role":"assistant","content":"x","reasoning":"r"}]}`, nil},
		{"foreign_thinking_is_removed", "anthropic", llm.Messages,
			`{"model":"a","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"weir.gemini.S"},{"type":"text","text":"x"}]},{"role":"user","content":"y"},{"role":"assistant","content":[{"type":"redacted_thinking","data":"weir.openai.D"}]},{"role":"user","content":[{"type":"thinking","thinking":"n","signature":"NATIVE"}]}]}`,
			`{"model":"up","messages":[{"role":"assistant","content":[{"type":"text","text":"x"}]},{"role":"user","content":"y"},{"role":"user","content":[{"type":"thinking","thinking":"n","signature":"NATIVE"}]}]}`, []string{"messages.thinking"}},
		{"foreign_reasoning_is_removed", "openai", llm.Responses,
			`{"model":"a","input":[{"type":"reasoning","encrypted_content":"weir.anthropic.S"},{"type":"reasoning","encrypted_content":"N"}]}`,
			`{"model":"up","input":[{"type":"reasoning","encrypted_content":"N"}]}`, []string{"input.reasoning"}},
		{"hosted_claude_has_version_in_body", "vertex", llm.Messages,
			`{"model":"a","stream":true,"messages":[]}`, `{"stream":true,"messages":[],"anthropic_version":"vertex-2023-10-16"}`, nil},
		{"bedrock_streams_by_its_url", "bedrock", llm.Messages,
			`{"model":"a","stream":true,"messages":[]}`, `{"messages":[],"anthropic_version":"bedrock-2023-05-31"}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opt := llm.Options{Model: "up", Deviations: ir.DeviationsOf(tt.provider)}
			in := []byte(tt.in)
			got, dropped, err := llm.Request(tt.d, tt.d, in, opt)
			if err != nil {
				t.Fatal(err)
			}
			parts, _, err := llm.RequestParts(tt.d, tt.d, in, opt)
			if err != nil || !strings.Contains(tt.want, `"ID"`) && string(bytes.Join(parts, nil)) != string(got) {
				t.Errorf("in parts %s %v", bytes.Join(parts, nil), err)
			}
			if string(in) != tt.in {
				t.Errorf("the client's body was changed: %s", in)
			}
			want := tt.want
			if strings.Contains(want, `"ID"`) {
				id := string(got[strings.Index(string(got), `"id":"`)+6:][:9])
				want = strings.ReplaceAll(want, `"ID"`, `"`+id+`"`)
			}
			if string(got) != want || !reflect.DeepEqual(dropped, tt.dropped) {
				t.Errorf("got\n%s %v\nwant\n%s %v", got, dropped, want, tt.dropped)
			}
		})
	}
}

func TestInvalidRequestIsRefused(t *testing.T) {
	for _, body := range []string{``, `[]`, `"x"`, `{"model":}`, `{"a":1}{`, "{\"a\":\"\xff\"}", strings.Repeat(`[`, 1000)} {
		for _, to := range upstreams {
			if _, _, err := llm.Request(llm.Chat, to, []byte(body), llm.Options{}); err == nil {
				t.Errorf("%q to %v was taken", body, to)
			}
		}
	}
}
