package telemetry

import (
	"fmt"
	"strings"
	"testing"

	"weir/pkg/store"
	"weir/pkg/wire/capture"
	"weir/pkg/wire/otlp"
)

// told returns the attributes of an event that have messages, on one line each.
func told(l otlp.Log) string {
	var b strings.Builder
	var value func(a otlp.Attr) string
	value = func(a otlp.Attr) string {
		if a.Kind != otlp.Objects {
			return a.Str
		}
		var each []string
		for _, members := range a.Each {
			var texts []string
			for _, m := range members {
				texts = append(texts, m.Key+"="+value(m))
			}
			each = append(each, strings.Join(texts, " "))
		}
		return "[" + strings.Join(each, "; ") + "]"
	}
	for _, a := range l.Attrs {
		if a.Kind == otlp.Objects || a.Key == "weir.bodies.cut" {
			fmt.Fprintf(&b, "%s=%s\n", a.Key, value(a))
		}
	}
	return b.String()
}

func details(endpoint, request, answer string, room int) otlp.Log {
	r := store.Request{ID: id, At: 1_800_000_000_000, Endpoint: endpoint, Status: 200, Attempts: 1, Provider: "openai", Model: "openai/m"}
	doc := capture.Document{Request: capture.Part{Text: request}, Answer: capture.Part{Text: answer}}
	return fold(100).Details(&r, &doc, room)
}

const (
	wantAnswer = "gen_ai.output.messages=[role=assistant parts=[type=text content=It rains.] finish_reason=stop]\n"
	wantAsked  = `gen_ai.system_instructions=[type=text content=Be brief.]
gen_ai.input.messages=[role=user parts=[type=text content=Weather?]; role=assistant parts=[type=tool_call arguments={"city":"Paris"} id=c1 name=weather]; role=tool parts=[type=tool_call_response response=rainy id=c1]]
`
)

// The messages of an event are the same for each dialect, in a stream or not.
func TestMessagesAreThoseOfTheConventions(t *testing.T) {
	for name, tt := range map[string]struct{ endpoint, request, answer, stream string }{
		"chat": {"/v1/chat/completions",
			`{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Weather?"},
				{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}]},
				{"role":"tool","tool_call_id":"c1","content":"rainy"}]}`,
			`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"It rains."},"finish_reason":"stop"}]}`,
			`data: {"choices":[{"index":0,"delta":{"content":"It "}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"content":"rains."},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"},
		"messages": {"/v1/messages",
			`{"model":"m","max_tokens":9,"system":"Be brief.","messages":[{"role":"user","content":"Weather?"},
				{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"weather","input":{"city":"Paris"}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"rainy"}]}]}`,
			`{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"It rains."}],"stop_reason":"end_turn"}`,
			`data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":5,"output_tokens":1}}}` + "\n\n" +
				`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
				`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"It rains."}}` + "\n\n" +
				`data: {"type":"content_block_stop","index":0}` + "\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}` + "\n\n" +
				`data: {"type":"message_stop"}` + "\n\n"},
		"responses": {"/v1/responses",
			`{"model":"m","instructions":"Be brief.","input":[{"role":"user","content":"Weather?"},
				{"type":"function_call","call_id":"c1","name":"weather","arguments":"{\"city\":\"Paris\"}"},{"type":"function_call_output","call_id":"c1","output":"rainy"}]}`,
			`{"id":"r","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It rains."}]}]}`, ""},
		"gemini": {"/v1beta/models/{model...}",
			`{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"Weather?"}]},
				{"role":"model","parts":[{"functionCall":{"id":"c1","name":"weather","args":{"city":"Paris"}}}]},
				{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"weather","response":{"output":"rainy"}}}]}]}`,
			`{"candidates":[{"content":{"parts":[{"text":"It rains."}]},"finishReason":"STOP"}]}`,
			`data: {"candidates":[{"content":{"parts":[{"text":"It rains."}]},"finishReason":"STOP"}]}` + "\n\n"},
	} {
		for _, answer := range []string{tt.answer, tt.stream} {
			if got := told(details(tt.endpoint, tt.request, answer, 1<<20)); answer != "" && got != wantAnswer+wantAsked {
				t.Errorf("%s: got\n%s", name, got)
			}
		}
	}
}

// A body that cannot be read is one text, as it is.
func TestOtherBodiesAreOneText(t *testing.T) {
	for name, tt := range map[string]struct{ endpoint, request, answer string }{
		"another endpoint": {"/v1/embeddings", `{"input":"a"}`, `{"data":[]}`},
		"beginnings":       {"/v1/chat/completions", `{"messages":[{"role":"user","content":"We`, `{"choices":[{"mes`},
		"an error":         {"/v1/messages", `{}`, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`},
		"no JSON":          {"/v1/responses", "\x00[", "<html>"},
		"no stream":        {"/v1beta/models/{model...}", `{"contents":3}`, "data: {}\n\n"},
		"many parts":       {"/v1/chat/completions", `{"messages":[` + strings.Repeat(`{},`, 30_000) + `{}]}`, `{"choices":[` + strings.Repeat(`{},`, 30_000) + `{}]}`},
		"an array":         {"/v1beta/models/{model...}", `[]`, `[{"candidates":[]}]`},
	} {
		want := "gen_ai.output.messages=[role=assistant parts=[type=text content=" + tt.answer + "] finish_reason=]\ngen_ai.input.messages=[role=user parts=[type=text content=" + tt.request + "]]\n"
		if got := told(details(tt.endpoint, tt.request, tt.answer, 1<<20)); got != want {
			t.Errorf("%s: got %.300q, want %.300q", name, got, want)
		}
	}
}

func TestPartsOfMessages(t *testing.T) {
	got := told(details("/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"Look"},
		{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},{"type":"image","source":{"type":"url","url":"https://a.example/b.png"}},
		{"type":"document","source":{"type":"text","media_type":"text/plain","data":"A document."}}]}]}`,
		`{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"redacted_thinking","data":"c2VjcmV0"},
		{"type":"tool_use","id":"c1","name":"weather","input":{}}],"stop_reason":"tool_use"}`, 1<<20))
	const want = `gen_ai.output.messages=[role=assistant parts=[type=reasoning content=Hm.; type=tool_call arguments={} id=c1 name=weather] finish_reason=tool_calls]
gen_ai.input.messages=[role=user parts=[type=text content=Look; type=blob mime_type=image/png modality=image; type=uri uri=https://a.example/b.png modality=image; type=text content=A document.]]
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

// A stream that broke off has no reason of its own: what came ended by an error.
func TestAnswerThatBrokeOffEndsByAnError(t *testing.T) {
	const stream = `data: {"choices":[{"index":0,"delta":{"content":"It "}}]}` + "\n\n"
	for _, r := range []store.Request{{Status: 200, Error: "upstream_cut"}, {Status: 499}} {
		r.ID, r.Endpoint = id, "/v1/chat/completions"
		doc := capture.Document{Request: capture.Part{Text: `{"messages":[{"role":"user","content":"a"}]}`}, Answer: capture.Part{Text: stream}}
		if got := told(fold(100).Details(&r, &doc, 1<<20)); !strings.HasPrefix(got, "gen_ai.output.messages=[role=assistant parts=[type=text content=It ] finish_reason=error]\n") {
			t.Errorf("%d: got %s", r.Status, got)
		}
	}
}

// Texts have the room that is given, whatever they are, and the event says that they are cut.
func TestTextsAreCutToTheirRoom(t *testing.T) {
	message := func(n int) string {
		return `{"messages":[` + strings.Repeat(`{"role":"user","content":"`+strings.Repeat("x", 100)+`"},{"role":"assistant","content":"é"},`, n) + `{"role":"user","content":"end"}]}`
	}
	for _, room := range []int{0, 1, 500, 5000, 50_000} {
		for _, n := range []int{0, 1, 40, 400} {
			l := details("/v1/chat/completions", message(n), "data: {}\n\n", room)
			body, _ := otlp.Body(nil, otlp.Protobuf, nil, []otlp.Log{l}, 0)
			got := told(l)
			cut := strings.Contains(got, "weir.bodies.cut")
			if whole := strings.Contains(got, "content=end"); whole == cut && room > 0 || len(body) > 2*room+2000 {
				t.Errorf("%d messages, room %d: %d bytes, whole %v, cut %v", n, room, len(body), whole, cut)
			}
		}
	}
}
