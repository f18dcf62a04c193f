package proxy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/objects"
	"weir/pkg/llm"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

const messageAnswer = `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`

// strict is a Messages server that refuses fields and beta features by name, one at a
// time, as Anthropic does.
func strict(w *world, betas []string, fields ...string) func(*fake.Seen) fake.Answer {
	refused := func(message string) fake.Answer {
		return jsonOf(400, `{"type":"error","error":{"type":"invalid_request_error","message":"`+message+`"}}`)
	}
	return func(*fake.Seen) fake.Answer {
		sent := w.Seen[len(w.Seen)-1]
		for _, beta := range betas {
			if strings.Contains(sent.Header.Get("anthropic-beta"), beta) {
				return refused("Unexpected value(s) `" + beta + "` for the `anthropic-beta` header. Please consult our documentation at docs.anthropic.com or try again without the header.")
			}
		}
		for _, field := range fields {
			if gjson.Get(sent.Body, strings.ReplaceAll(field, ".custom.", ".")).Exists() {
				return refused(field + ": Extra inputs are not permitted")
			}
		}
		return jsonOf(200, messageAnswer)
	}
}

const codeRequest = `{"model":"an/m","max_tokens":9,"context_management":{"edits":[]},"tools":[{"name":"t","input_schema":{"type":"object"},"defer_loading":true}],"messages":[{"role":"user","content":"a"}]}`

// A compatible Messages server is called without the fields and beta features that it
// refuses by name, and from then on at once.
func TestMessagesServerGetsNoRefusedFields(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = strict(w, []string{"fine-2025-05-14"}, "context_management", "tools.0.custom.defer_loading")
	betas := httpmsg.Field{Name: "anthropic-beta", Value: "claude-code-20250219, fine-2025-05-14"}
	const plain = `{"model":"m","max_tokens":9,"tools":[{"name":"t","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"a"}]}`
	if _, err := w.ask(llm.Messages, codeRequest, betas); err != nil {
		t.Fatal(err)
	}
	last := w.Seen[len(w.Seen)-1]
	if len(w.Seen) != 4 || last.Body != plain || last.Header.Get("anthropic-beta") != "claude-code-20250219" {
		t.Errorf("%d calls, sent %s, beta %q", len(w.Seen), last.Body, last.Header.Get("anthropic-beta"))
	}
	dropped := []string{"context_management", "tools.defer_loading", "fine-2025-05-14"}
	if got := w.call.Trace.Dropped; !slices.Equal(got, dropped) {
		t.Errorf("dropped %v", got)
	}
	w.Seen = nil
	if _, err := w.ask(llm.Messages, codeRequest, betas); err != nil || len(w.Seen) != 1 || w.Seen[0].Body != plain {
		t.Errorf("the second time: %v, sent %v", err, w.bodies())
	}
	if got := w.call.Trace.Dropped; !slices.Equal(got, dropped) {
		t.Errorf("dropped %v the second time", got)
	}
	w.Seen = nil
	w.Add(25 * time.Hour)
	if _, err := w.ask(llm.Messages, codeRequest, betas); err != nil || len(w.Seen) != 4 {
		t.Errorf("a day later: %d calls, %v", len(w.Seen), err)
	}
}

// The report has what a connection's server refuses, and another isolate leaves it out.
func TestRefusedNamesReachOtherIsolates(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = strict(w, nil, "context_management")
	var report string
	w.pool.Object = &objects.Script{Answer: func(_ string, body []byte) (int, []byte, error) {
		report = string(body)
		return 200, []byte(`{"generation":2}`), nil
	}}
	if _, err := w.ask(llm.Messages, codeRequest); err != nil {
		t.Fatal(err)
	}
	w.pool.Flush(context.Background(), w.machine)
	got := gjson.Get(report, "refusals")
	if got.Get("#").Int() != 1 || got.Get("0.connectionId").Str != "c-an" || got.Get("0.field").Str != "messages:context_management" {
		t.Fatalf("report %s", report)
	}
	other := *w.machine.Machine
	other.Refusals = []store.Refusal{{ConnectionID: "c-an", Field: "messages:context_management", Until: got.Get("0.until").Int()}}
	w.machine, w.Seen = snapshot.New(&other), nil
	if _, err := w.ask(llm.Messages, codeRequest); err != nil || len(w.Seen) != 1 {
		t.Errorf("%v after %d calls", err, len(w.Seen))
	}
}

// A message that quotes no beta feature means all of them.
func TestUnnamedBetaMeansAll(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = func(s *fake.Seen) fake.Answer {
		if s.Header.Get("anthropic-beta") != "" {
			return jsonOf(400, `{"error":{"message":"{\"message\":\"invalid beta flag\"}"}}`)
		}
		return jsonOf(200, messageAnswer)
	}
	if _, err := w.ask(llm.Messages, codeRequest, httpmsg.Field{Name: "anthropic-beta", Value: "a-1,b-2"}); err != nil || len(w.Seen) != 2 {
		t.Errorf("%v after %d calls", err, len(w.Seen))
	}
	if got := w.call.Trace.Dropped; !slices.Equal(got, []string{"a-1", "b-2"}) {
		t.Errorf("dropped %v", got)
	}
}

// Anthropic's own refusals are for its clients.
func TestAnthropicsRefusalsPass(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = strict(w, nil, "context_management")
	_, err := w.ask(llm.Messages, strings.Replace(codeRequest, "an/m", "cl/claude-opus-5-5", 1))
	var e *apierr.Error
	if !errors.As(err, &e) || e.Status != 400 || len(w.Seen) != 1 || !strings.Contains(string(e.Body), "context_management") {
		t.Errorf("%v after %d calls", err, len(w.Seen))
	}
}

// A field that the server refuses although it is left out, or that a request needs, is
// not asked for twice.
func TestRefusalWithoutAnotherFormIsReturned(t *testing.T) {
	for _, tt := range []struct{ name, message string }{
		{"needed", "messages: Extra inputs are not permitted"},
		{"not sent", "top_k: Extra inputs are not permitted"},
	} {
		w := newWorld(t, usual...)
		w.Answer = func(*fake.Seen) fake.Answer {
			return jsonOf(400, `{"type":"error","error":{"type":"invalid_request_error","message":"`+tt.message+`"}}`)
		}
		if _, err := w.ask(llm.Messages, codeRequest); status(err) != 400 || len(w.Seen) != 1 {
			t.Errorf("%s: %v after %d calls", tt.name, err, len(w.Seen))
		}
	}
	w := newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer {
		return jsonOf(400, `{"type":"error","error":{"type":"invalid_request_error","message":"context_management: Extra inputs are not permitted"}}`)
	}
	if _, err := w.ask(llm.Messages, codeRequest); status(err) != 400 || len(w.Seen) != 2 {
		t.Errorf("refused again: %v after %d calls", err, len(w.Seen))
	}
}

// Any field of a chat server, not only those with an older form.
func TestChatServerGetsNoRefusedFields(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = refusing(w, "parallel_tool_calls")
	if _, err := w.ask(llm.Chat, `{"model":"up/m","parallel_tool_calls":true,"messages":[{"role":"user","content":"a"}]}`); err != nil {
		t.Fatal(err)
	}
	if want := `{"model":"m","messages":[{"role":"user","content":"a"}]}`; len(w.Seen) != 2 || w.Seen[1].Body != want {
		t.Errorf("sent %v", w.bodies())
	}
}

// A vendor's model is asked once more in the form that its error names, each time:
// another model of the vendor may take the field.
func TestVendorIsAskedOnceMoreWithoutRefusedFields(t *testing.T) {
	const rest = `"messages":[{"role":"user","content":"a"}]`
	unsupported := func(param string) string {
		return `{"error":{"message":"Unsupported parameter: '` + param + `' is not supported with this model.","type":"invalid_request_error","param":"` + param + `","code":"unsupported_parameter"}}`
	}
	for _, tt := range []struct{ name, body, path, answer, want, dropped string }{
		{"any field", `{"model":"oa/gpt-5","parallel_tool_calls":true,` + rest + `}`, "parallel_tool_calls", unsupported("parallel_tool_calls"), `{"model":"gpt-5",` + rest + `}`, "parallel_tool_calls"},
		{"limit", `{"model":"oa/gpt-5","max_tokens":9,` + rest + `}`, "max_tokens",
			`{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`,
			`{"model":"gpt-5",` + rest + `,"max_completion_tokens":9}`, "max_tokens"},
		{"temperature", `{"model":"oa/gpt-5","temperature":0.7,` + rest + `}`, "temperature",
			`{"error":{"message":"Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`,
			`{"model":"gpt-5",` + rest + `}`, "temperature"},
		{"effort", `{"model":"oa/gpt-4o","reasoning_effort":"low",` + rest + `}`, "reasoning_effort", `{"error":{"message":"Unrecognized request argument supplied: reasoning_effort","type":"invalid_request_error","param":null,"code":null}}`, `{"model":"gpt-4o",` + rest + `}`, "reasoning_effort"},
		{"xai's names", `{"model":"xa/grok-4","reasoning_effort":"low",` + rest + `}`, "reasoning_effort", `{"code":"Client specified an invalid argument","error":"Model grok-4 does not support parameter reasoningEffort."}`, `{"model":"grok-4",` + rest + `}`, "reasoning_effort"},
	} {
		w := newWorld(t, append(usual, provided{prefix: "xa", provider: "xai"})...)
		w.Answer = func(*fake.Seen) fake.Answer {
			if gjson.Get(w.Seen[len(w.Seen)-1].Body, tt.path).Exists() {
				return jsonOf(400, tt.answer)
			}
			return jsonOf(200, plainAnswer)
		}
		for range 2 {
			w.Seen = nil
			if _, err := w.ask(llm.Chat, tt.body); err != nil || len(w.Seen) != 2 || w.Seen[1].Body != tt.want || strings.Join(w.call.Trace.Dropped, ",") != tt.dropped {
				t.Errorf("%s: %v, sent %v, dropped %v", tt.name, err, w.bodies(), w.call.Trace.Dropped)
			}
		}
	}
	// A value that is wrong is the client's mistake.
	w := newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer {
		return jsonOf(400, `{"error":{"message":"Invalid value: 'x'.","type":"invalid_request_error","param":"temperature","code":"invalid_value"}}`)
	}
	if _, err := w.ask(llm.Chat, `{"model":"oa/gpt-5","temperature":7,`+rest+`}`); status(err) != 400 || len(w.Seen) != 1 {
		t.Errorf("%v after %d calls", err, len(w.Seen))
	}
}

// A translated request is sent again without what the gateway wrote and the server
// refuses; the client did not set it.
func TestTranslatedRequestLosesRefusedFields(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer {
		if strings.Contains(w.Seen[len(w.Seen)-1].Body, "stream_options") {
			return jsonOf(400, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`)
		}
		return events("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}
	if _, err := w.ask(llm.Messages, `{"model":"up/m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"a"}]}`); err != nil || len(w.Seen) != 2 {
		t.Fatalf("%v, sent %v", err, w.bodies())
	}
	if got := w.call.Trace.Dropped; len(got) > 0 {
		t.Errorf("dropped %v", got)
	}
}

// A conversation with thoughts that another provider signed, outside of the gateway, is
// sent once more without them.
func TestRefusedSignatureIsSentWithoutThoughts(t *testing.T) {
	const thought = `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"EqRkForeign"},{"type":"text","text":"b"}]},{"role":"user","content":"c"}`
	tests := []struct {
		name    string
		client  llm.Dialect
		body    string
		mark    string // of what is refused
		refusal string
		answer  string
		dropped string
	}{
		{
			"Anthropic", llm.Messages, `{"model":"cl/claude-opus-5-5","max_tokens":9,"messages":[{"role":"user","content":"a"},` + thought + `]}`,
			"EqRkForeign", "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.1.content.0: Invalid `signature` in `thinking` block\"}}",
			messageAnswer, "messages.thinking",
		},
		{
			"a compatible server", llm.Messages, `{"model":"an/m","max_tokens":9,"messages":[{"role":"user","content":"a"},` + thought + `]}`,
			"EqRkForeign", `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0.thinking.signature: Field required"}}`,
			messageAnswer, "messages.thinking",
		},
		{
			"OpenAI", llm.Responses, `{"model":"oa/gpt-5","store":false,"input":[{"type":"reasoning","summary":[],"encrypted_content":"gAAAForeign"},{"role":"user","content":"a"}]}`,
			"gAAAForeign", `{"error":{"message":"The encrypted content gAAA...eign could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`,
			`{"id":"resp_1","object":"response","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1}}`, "input.reasoning",
		},
		{
			"Gemini", llm.Chat, `{"model":"ge/gemini-3-pro","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2lnbmVk"}}}]},{"role":"tool","tool_call_id":"c1","content":"x"}]}`,
			"c2lnbmVk", `{"error":{"code":400,"message":"Corrupted thought signature.","status":"INVALID_ARGUMENT"}}`,
			plainAnswer, "tool_calls.extra_content",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, usual...)
			w.Answer = func(s *fake.Seen) fake.Answer {
				if strings.Contains(w.Seen[len(w.Seen)-1].Body, tt.mark) {
					return jsonOf(400, tt.refusal)
				}
				return jsonOf(200, tt.answer)
			}
			if _, err := w.ask(tt.client, tt.body); err != nil {
				t.Fatal(err)
			}
			if len(w.Seen) != 2 || !slices.Contains(w.call.Trace.Dropped, tt.dropped) {
				t.Errorf("sent %v, dropped %v", w.bodies(), w.call.Trace.Dropped)
			}
			w.Seen = nil
			if _, err := w.ask(tt.client, tt.body); err != nil || len(w.Seen) != 2 {
				t.Errorf("it holds for this conversation only: %d calls, %v", len(w.Seen), err)
			}
			// Refused without thoughts too: the error is the client's.
			w.Answer, w.Seen = func(*fake.Seen) fake.Answer { return jsonOf(400, tt.refusal) }, nil
			if _, err := w.ask(tt.client, tt.body); status(err) != 400 || len(w.Seen) != 2 {
				t.Errorf("%v after %d calls", err, len(w.Seen))
			}
		})
	}
	w := newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(400, tests[0].refusal) }
	if _, err := w.ask(llm.Messages, `{"model":"an/m","max_tokens":9,"messages":[{"role":"user","content":"a"}]}`); status(err) != 400 || len(w.Seen) != 1 {
		t.Errorf("without thoughts: %v after %d calls", err, len(w.Seen))
	}
}

// A stream whose first event refuses a signature is asked for again as well.
func TestRefusedSignatureInStream(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer {
		if strings.Contains(w.Seen[len(w.Seen)-1].Body, "gAAAForeign") {
			return events("event: error\ndata: {\"type\":\"error\",\"code\":\"invalid_encrypted_content\",\"message\":\"The encrypted content could not be verified.\"}\n\n")
		}
		return events("data: {\"type\":\"response.created\",\"response\":{}}\n\n")
	}
	_, err := w.ask(llm.Responses, `{"model":"oa/gpt-5","stream":true,"store":false,"input":[{"type":"reasoning","summary":[],"encrypted_content":"gAAAForeign"},{"role":"user","content":"a"}]}`)
	if err != nil || len(w.Seen) != 2 {
		t.Errorf("%v after %d calls", err, len(w.Seen))
	}
}

// A refused beta feature takes its fields with it, which spares the call that would
// have been refused for them.
func TestRefusedBetaTakesItsFields(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = strict(w, []string{"context-management-2025-06-27"}, "context_management")
	betas := httpmsg.Field{Name: "anthropic-beta", Value: "context-management-2025-06-27,x-1"}
	if _, err := w.ask(llm.Messages, codeRequest, betas); err != nil {
		t.Fatal(err)
	}
	last := w.Seen[len(w.Seen)-1]
	if len(w.Seen) != 2 || gjson.Get(last.Body, "context_management").Exists() || last.Header.Get("anthropic-beta") != "x-1" {
		t.Errorf("%d calls, sent %s, beta %q", len(w.Seen), last.Body, last.Header.Get("anthropic-beta"))
	}
	if got := w.call.Trace.Dropped; !slices.Equal(got, []string{"context_management", "context-management-2025-06-27"}) {
		t.Errorf("dropped %v", got)
	}
}
