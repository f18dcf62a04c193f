package api

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
)

// connect opens a WebSocket of a route and serves its client to the end.
func (w *world) connect(path, key string, c *fake.Socket) *httpmsg.Response {
	w.t.Helper()
	r := &httpmsg.Request{
		Method: "GET", Path: path, Origin: "http://gateway.example", Start: w.Now(),
		Header: httpmsg.Header{{Name: "upgrade", Value: "websocket"}, {Name: "authorization", Value: "Bearer " + key}},
	}
	resp := w.App.Serve(context.Background(), r)
	if resp.Upgrade != nil {
		resp.Upgrade.Serve(context.Background(), c)
	}
	for _, after := range resp.After {
		after(context.Background())
	}
	return resp
}

// families are the upstream families, each with the part of a URL by which it is known,
// its recorded stream, and what a continued conversation has of that.
var families = []struct{ provider, connection, model, part, stream, answer string }{
	{"openai", `{"provider":"openai","apiKey":"k-0123456789abcdef"}`, "openai/gpt-4.1", "/responses", "responses", `"msg_1"`},
	{"compatible", `{"provider":"openai-compatible-0123abcd","apiKey":"k-0123456789abcdef","providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`, "up/m", "/chat/completions", "chat", "Hi "},
	{"anthropic", `{"provider":"anthropic","apiKey":"k-0123456789abcdef"}`, "anthropic/claude-sonnet-4-5", "/messages", "messages", "Hi "},
	{"gemini", `{"provider":"gemini","apiKey":"k-0123456789abcdef"}`, "gemini/gemini-2.5-flash", "enerateContent", "gemini", "Hi "},
	{"cohere", `{"provider":"cohere","apiKey":"k-0123456789abcdef"}`, "cohere/command-a-03-2025", "/v2/chat", "cohere", "Hi "},
}

// A conversation over WebSocket reaches an upstream of each family whole, although
// the client sends only what is new.
func TestResponsesOverWebSocketReachEveryFamily(t *testing.T) {
	for _, f := range families {
		t.Run(f.provider, func(t *testing.T) {
			raw, err := os.ReadFile("../../pkg/llm/testdata/streams/" + f.stream + "/text.sse")
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			machine, key := w.tenant(0)
			w.get(201, w.do("POST", "/"+machine+"/api/providers", adminToken, f.connection), nil)
			var sent []string
			w.Answer = func(s *fake.Seen) fake.Answer {
				if !strings.Contains(s.URL, f.part) {
					return fake.Reply(404, `{"error":{"message":"not found"}}`)
				}
				sent = append(sent, s.Body)
				a := fake.OK("text/event-stream", "")
				a.Pieces = strings.SplitAfter(string(raw), "a")
				return a
			}
			c := &fake.Socket{Messages: []string{
				`{"type":"response.create","model":"` + f.model + `","input":"first question","store":false,"include":["reasoning.encrypted_content"]}`, "",
				`{"type":"response.processed"}`,
			}}
			answer := ""
			c.Before = func(i int) {
				switch i {
				case 1:
					last := gjson.Parse(c.Received[len(c.Received)-1])
					if last.Get("type").Str != "response.completed" || last.Get("response.usage.total_tokens").Int() == 0 {
						t.Fatalf("got %s", last.Raw)
					}
					for _, m := range c.Received {
						if gjson.Get(m, "type").Str == "response.output_text.delta" {
							answer += gjson.Get(m, "delta").Str
						}
					}
					c.Messages[1] = `{"type":"response.create","model":"` + f.model + `","input":[{"role":"user","content":"second question"}],"store":false,"previous_response_id":"` + last.Get("response.id").Str + `"}`
				case 2:
					if w.Open != 0 {
						t.Errorf("%d bodies are open", w.Open)
					}
				}
			}
			if resp := w.connect("/v1/responses", key, c); resp.Status != 101 {
				t.Fatalf("status %d", resp.Status)
			}
			if len(sent) != 2 || answer == "" {
				t.Fatalf("%d requests, answer %q, got %q", len(sent), answer, c.Received)
			}
			at := -1
			for _, part := range []string{"first question", f.answer, "second question"} {
				next := strings.Index(sent[1], part)
				if next <= at {
					t.Errorf("%q is not in its place in %s", part, sent[1])
				}
				at = next
			}
			var list struct {
				Data []struct {
					Endpoint     string
					Status       int
					OutputTokens int
				}
			}
			w.get(200, w.do("GET", "/"+machine+"/api/requests", adminToken, ""), &list)
			if len(list.Data) != 2 || list.Data[0].Endpoint != "/v1/responses" || list.Data[0].Status != 200 || list.Data[0].OutputTokens == 0 {
				t.Errorf("recorded %+v", list.Data)
			}
		})
	}
}

// A response over WebSocket has the rules of POST: the key is checked each
// time, and errors have their status.
func TestResponsesOverWebSocketCheckTheKey(t *testing.T) {
	w := newWorld(t)
	machine, key := w.tenant(1)
	create := `{"type":"response.create","model":"up/m","input":"x"}`
	wrong := key[:len(key)-1] + "0"
	if wrong == key {
		wrong = key[:len(key)-1] + "1"
	}
	if resp := w.connect("/v1/responses", wrong, &fake.Socket{}); resp.Status != 401 {
		t.Errorf("status %d with a wrong key", resp.Status)
	}
	for path, want := range map[string]int{"/v1/responses/resp_1": 426, "/v1/chat/completions": 426, "/v1/nothing": 426, "/" + machine + "/v1/responses": 101} {
		if resp := w.connect(path, key, &fake.Socket{}); resp.Status != want {
			t.Errorf("%s: status %d, want %d", path, resp.Status, want)
		}
	}
	c := &fake.Socket{Messages: []string{`{"type":"response.create","model":"none/m","input":"x"}`, create}}
	c.Before = func(i int) {
		if i == 1 {
			w.get(204, w.do("DELETE", "/api/machines/"+machine, adminToken, ""), nil)
		}
	}
	w.connect("/v1/responses", key, c)
	if got := gjson.Get(c.Received[0], "status").Int(); got != 404 && got != 400 {
		t.Errorf("got %s", c.Received[0])
	}
	if got := gjson.Get(c.Received[1], "status").Int(); got != 401 {
		t.Errorf("got %s after the key was deleted", c.Received[1])
	}
}

func TestResponsesOverWebSocketMayBeTurnedOff(t *testing.T) {
	w := newWorld(t)
	machine, key := w.tenant(1)
	for _, tt := range []struct {
		value string
		want  int
	}{{`"off"`, 426}, {`null`, 101}, {`"on"`, 101}} {
		w.get(200, w.do("PATCH", "/"+machine+"/api/settings", adminToken, `{"responsesWebSocket":`+tt.value+`}`), nil)
		w.Restart()
		if resp := w.connect("/v1/responses", key, &fake.Socket{}); resp.Status != tt.want {
			t.Errorf("%s: status %d, want %d", tt.value, resp.Status, tt.want)
		}
	}
	w.get(400, w.do("PATCH", "/"+machine+"/api/settings", adminToken, `{"responsesWebSocket":"maybe"}`), nil)
}

// Codex compacts a conversation after response.failed, and only then.
func TestContextOverflowOverWebSocket(t *testing.T) {
	w := newWorld(t)
	_, key := w.tenant(1)
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.Reply(400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`)
	}
	c := &fake.Socket{Messages: []string{`{"type":"response.create","model":"up/m","input":"x","store":false}`}}
	w.connect("/v1/responses", key, c)
	last := gjson.Parse(c.Received[len(c.Received)-1])
	if last.Get("type").Str != "response.failed" || last.Get("response.error.code").Str != "context_length_exceeded" {
		t.Errorf("got %q", c.Received)
	}
	for _, m := range c.Received {
		if gjson.Get(m, "status").Exists() {
			t.Errorf("%s is read as an answer with a status", m)
		}
	}
}

// A response over WebSocket whose client leaves in the middle has the figure of a stream that
// is stopped: the input and the output that passed, in requests, usage and budgets.
func TestResponseThatASocketLeavesIsEstimated(t *testing.T) {
	for _, model := range []string{"openai/gpt-5.5", "anthropic/claude-opus-4-8", "gemini/gemini-3.8-flash", "xai/grok-4.3"} {
		w := newWorld(t)
		machine, key := w.priced()
		api := func(method, path, body string) gjson.Result {
			return gjson.Parse(w.do(method, "/"+machine+"/api"+path, adminToken, body).body)
		}
		api("POST", "/budgets", `{"name":"b","unit":"usd","limit":1000,"window":"total"}`)
		begun := int64(0)
		w.Answer = func(s *fake.Seen) fake.Answer {
			a := fake.OK("text/event-stream", "")
			var sent string
			sent, begun = answerOf(s, strings.Fields(strings.Repeat("text ", 40)), 3000, 5000)
			a.Pieces = strings.SplitAfter(sent, "\n\n")
			return a
		}
		c := &fake.Socket{Messages: []string{`{"type":"response.create","model":"` + model + `","input":"` + strings.Repeat("a question ", 100) + `"}`}, Leaves: 12}
		w.connect("/v1/responses", key, c)
		w.Clock.Add(2 * time.Second)
		w.do("GET", "/v1/models", key, "")
		length := int64(0)
		for _, m := range c.Received {
			if gjson.Get(m, "type").Str == "response.output_text.delta" {
				length += int64(len(gjson.Get(m, "delta").Str))
			}
		}
		row, total := api("GET", "/requests", "").Get("data.0"), api("GET", "/usage", "").Get("total")
		in, out, cost := row.Get("inputTokens").Int(), row.Get("outputTokens").Int(), row.Get("costUsd").Num
		if !row.Get("estimated").Bool() || !row.Get("priced").Bool() || in < 150 || begun > 0 && in != begun || out < length/4 || out > length/4+2 || length == 0 {
			t.Errorf("%s: %d bytes have passed, the request is %s", model, length, row.Raw)
		}
		budget := api("GET", "/budgets", "").Get("data.0.spent").Num
		if total.Get("costUsd").Num != cost || budget != cost || total.Get("outputTokens").Int() != out || w.Open != 0 {
			t.Errorf("%s: the request costs %v, usage %v, the budget %v, %d bodies are open", model, cost, total.Get("costUsd").Num, budget, w.Open)
		}
	}
}
