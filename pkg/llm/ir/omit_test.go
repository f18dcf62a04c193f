package ir

import (
	"encoding/json"
	"strings"
	"testing"
)

const strictBody = `{"model":"m","temperature":1,"presence_penalty":0.5,"output_config":{"effort":"low","format":{"type":"json_schema"}},` +
	`"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","scope":"global"}}],` +
	`"tools":[{"name":"a","input_schema":{"x":1},"defer_loading":true},{"name":"b","strict":true,"defer_loading":false}],` +
	`"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}]}],"response_format":{"type":"text"}}`

func TestRefusedFields(t *testing.T) {
	tests := []struct {
		name                      string
		status                    int
		code, param, message, raw string
		want                      string
	}{
		{"param and code", 400, "unsupported_parameter", "temperature", "", "", "temperature"},
		{"a wrong value", 400, "invalid_value", "temperature", "", "", ""},
		{"param without a code", 400, "", "temperature", "too hot", "", ""},
		{"a field that was not sent", 400, "unsupported_parameter", "top_k", "", "", ""},
		{"another status", 500, "unsupported_parameter", "temperature", "", "", ""},
		{"text", 422, "", "", "temperature: Extra inputs are not permitted", "", "temperature"},
		{"several", 400, "", "", "temperature: Extra inputs are not permitted\npresence_penalty: Extra inputs are not permitted", "", "temperature presence_penalty"},
		{"in its other spelling", 400, "", "", "Model x does not support parameter presencePenalty.", "", "presence_penalty"},
		{"member of a field", 400, "", "", "output_config.effort: Extra inputs are not permitted", "", "output_config.effort"},
		{"the whole field", 400, "", "", "output_config: Extra inputs are not permitted", "", "output_config"},
		{"the form of the answer", 400, "", "", "output_config.format: Extra inputs are not permitted", "", ""},
		{"of a tool", 400, "", "", "tools.0.custom.defer_loading: Extra inputs are not permitted", "", "tools.*.defer_loading"},
		{"of two tools", 400, "", "", "tools.0.custom.defer_loading: Extra inputs are not permitted, tools.1.custom.defer_loading: Extra inputs are not permitted", "", "tools.*.defer_loading"},
		{"of a schema", 400, "", "", "tools.0.custom.input_schema.x: Extra inputs are not permitted", "", ""},
		{"of the system prompt", 400, "", "", "system.0.cache_control.ephemeral.scope: Extra inputs are not permitted", "", "system.*.cache_control.scope"},
		{"of a message", 400, "", "", "messages.0.content.0.text.cache_control.ephemeral.ttl: Extra inputs are not permitted", "", "messages.*.content.*.cache_control.ttl"},
		{"the text of a message", 400, "", "", "messages.0.content.0.text: Extra inputs are not permitted", "", ""},
		{"with brackets", 400, "unknown_parameter", "tools[1].strict", "", "", "tools.*.strict"},
		{"what a request needs", 400, "unsupported_parameter", "messages", "", "", ""},
		{"pydantic list", 422, "", "", "Extra inputs are not permitted", `{"detail":[{"type":"extra_forbidden","loc":["body","temperature"]},{"type":"extra_forbidden","loc":["body","tools",0,"defer_loading"]},{"type":"missing","loc":["body","presence_penalty"]}]}`, "temperature tools.*.defer_loading"},
		{"a path of the server's own", 400, "unknown_parameter", "a*.#(b)|@this", "", "", ""},
	}
	for _, tt := range tests {
		names := Refused("messages", []byte(strictBody), tt.status, tt.code, tt.param, tt.message, []byte(tt.raw))
		got := strings.Join(names, " ")
		if got = strings.ReplaceAll(got, "messages:", ""); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestOmit(t *testing.T) {
	const body = `{ "a":1, "b" : {"c":[{"d":1,"e":2},{"e":3},4]}, "f":[1]}`
	for _, tt := range []struct{ path, want string }{
		{"a", `{ "b" : {"c":[{"d":1,"e":2},{"e":3},4]}, "f":[1]}`},
		{"b.c.*.e", `{ "a":1, "b" : {"c":[{"d":1},{},4]}, "f":[1]}`},
		{"b.c", `{ "a":1, "b" : {}, "f":[1]}`},
		{"f.*.x", ""}, {"b.x", ""}, {"x", ""}, {"a.x", ""}, {"f.*", ""},
	} {
		got, had := Omit([]byte(body), tt.path)
		if want := tt.want; had != (want != "") || string(got) != want && (had || string(got) != body) {
			t.Errorf("%s: %s, %v, want %s", tt.path, got, had, want)
		}
	}
}

// An error of an upstream never breaks the request that it is about, whatever both
// hold.
func FuzzRefusedFields(f *testing.F) {
	f.Add([]byte(strictBody), "tools.0.custom.defer_loading: Extra inputs are not permitted", "tools[0].strict", []byte(`{"detail":[{"type":"extra_forbidden","loc":["body","tools",0,"strict"]}]}`))
	f.Add([]byte(`{"a":{"b":[[{"c":1}]]}}`), "Unknown parameter: 'a.b[0][0].c'", "", []byte(`{}`))
	f.Fuzz(func(t *testing.T, sent []byte, message, param string, raw []byte) {
		if !json.Valid(sent) {
			return
		}
		for _, path := range refusedFields(sent, "unknown_parameter", param, message, raw) {
			out, _ := Omit(sent, path)
			if len(path) > maxPath || !json.Valid(out) {
				t.Fatalf("%q: %s", path, out)
			}
		}
	})
}
