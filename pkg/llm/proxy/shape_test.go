package proxy

import (
	"errors"
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/wire/apierr"
)

// A request to the chat endpoint in the form of another dialect is answered as chat.
func TestOtherShapesOfChat(t *testing.T) {
	const nested = `{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}`
	for _, tt := range []struct{ name, body, sent, dropped string }{
		{"input", `{"model":"up/m","input":"hi","instructions":"be brief","max_output_tokens":99,"truncation":"auto","store":false}`,
			`{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],"max_completion_tokens":99}`, "truncation"},
		{"input with flat tools", `{"model":"up/m","stream":true,"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"done"}],"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"}}]}`,
			`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"done"}],"tools":[` + nested + `],"stream":true,"stream_options":{"include_usage":true}}`, ""},
		{"flat tools", `{"model":"up/m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"}},{"type":"custom","name":"p","format":{"type":"grammar","syntax":"lark","definition":"x"}}],"tool_choice":{"type":"function","name":"f"}}`,
			`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[` + nested + `,{"type":"custom","custom":{"name":"p","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"x"}}}}],"tool_choice":{"type":"function","function":{"name":"f"}}}`, ""},
		{"tools of Messages", `{"model":"up/m","messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}],"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}}`,
			`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}],"tools":[` + nested + `],"tool_choice":"required"}`, ""},
		{"blocks of Messages", `{"model":"up/m","system":"s","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"done"}]}],"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}]}`,
			`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"done"}],"max_completion_tokens":9,"tools":[` + nested + `]}`, ""},
		{"chat's own", `{"model":"up/m","messages":[{"role":"user","content":"hi"}],"tools":[` + nested + `],"input":"x"}`,
			`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[` + nested + `],"input":"x"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, usual...)
			w.Answer = func(r *fake.Seen) fake.Answer {
				return recorded(t, llm.Chat, strings.Contains(tt.body, `"stream":true`))
			}
			res, err := w.ask(llm.Chat, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			if w.Seen[0].Body != tt.sent || !strings.HasSuffix(w.Seen[0].URL, "/chat/completions") {
				t.Errorf("sent %s\nwant %s", w.Seen[0].Body, tt.sent)
			}
			if got := w.text(res); !strings.Contains(got, `chat.completion`) {
				t.Errorf("got %s", got)
			}
			if d := strings.Join(w.call.Trace.Dropped, ","); d != tt.dropped {
				t.Errorf("dropped %q, want %q", d, tt.dropped)
			}
		})
	}
	for _, body := range []string{`{"model":"up/m"}`, `{"model":"up/m","input":7}`, `{"model":"up/m","input":"x","previous_response_id":"resp_1"}`, `{"model":"up/m","input":[]}`, `{"model":"up/m","messages":"x","tools":[{"name":"f"}]}`} {
		w := newWorld(t, usual...)
		w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Status: 500} }
		_, err := w.ask(llm.Chat, body)
		if status(err) != 400 || len(w.Seen) != 0 {
			t.Errorf("%s: %v", body, err)
		}
		var e *apierr.Error
		if body == `{"model":"up/m"}` && errors.As(err, &e) && e.Param != "messages" {
			t.Errorf("%s: %v", body, e)
		}
	}
}

// The work for flat tools grows as their number.
func TestFlatToolsGrowLinearly(t *testing.T) {
	allocations := func(n int) float64 {
		body := []byte(`{"model":"m","messages":[],"tools":[` + strings.Repeat(`{"name":"f","input_schema":{"type":"object"}},`, n) + `{"name":"g"}]}`)
		return testing.AllocsPerRun(3, func() {
			if _, err := ReadRequest(llm.Chat, body); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations(100), allocations(800); many > 9*few {
		t.Errorf("%.0f allocations for 100 tools, %.0f for 800", few, many)
	}
}
