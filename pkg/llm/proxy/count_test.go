package proxy

import (
	"context"
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

func (w *world) count(body string) (Tokens, error) { return w.countOf(llm.Messages, body) }

func (w *world) countOf(d llm.Dialect, body string) (Tokens, error) {
	w.call = &auth.Call{
		Request: &httpmsg.Request{ID: "req_1", Method: "POST", Start: w.Now(), Route: "/v1/messages/count_tokens"},
		Machine: w.machine, MachineID: mid, MaxBody: 32 << 20,
	}
	return w.dialog.Count(context.Background(), w.call, d, []byte(body))
}

const counted = `"max_tokens":9,"system":"Be brief.","messages":[{"role":"user","content":"What is 6×7?"}]}`

func TestCount(t *testing.T) {
	tests := []struct {
		name, body string
		answer     fake.Answer
		url, sent  string // "" for no call
		exact      bool
		want       int64 // -1: an estimate of a few tokens
		status     int   // of a failure
	}{
		{"anthropic", `{"model":"cl/m",` + counted, jsonOf(200, `{"input_tokens":14}`),
			"https://api.anthropic.com/v1/messages/count_tokens", `{"model":"m","system":"Be brief.","messages":[{"role":"user","content":"What is 6×7?"}]}`, true, 14, 0},
		{"fields_of_features", `{"model":"cl/m","stream":true,"temperature":1,"metadata":{"user_id":"u"},"context_management":{"edits":[]},"output_config":{"effort":"low"},"x_new":[1, 2],` + counted, jsonOf(200, `{"input_tokens":14}`),
			"https://api.anthropic.com/v1/messages/count_tokens", `{"model":"m","context_management":{"edits":[]},"output_config":{"effort":"low"},"x_new":[1, 2],"system":"Be brief.","messages":[{"role":"user","content":"What is 6×7?"}]}`, true, 14, 0},
		{"compatible", `{"model":"an/m",` + counted, jsonOf(200, `{"input_tokens":14}`), "https://an.example/v1/messages/count_tokens", "", true, 14, 0},
		{"openai_counts_in_its_responses_dialect", `{"model":"oa/m",` + counted, jsonOf(200, `{"object":"response.input_tokens","input_tokens":15}`),
			"https://api.openai.com/v1/responses/input_tokens", `{"model":"m","instructions":"Be brief.","input":[{"role":"user","content":"What is 6×7?"}]}`, true, 15, 0},
		{"gemini", `{"model":"ge/m",` + counted, jsonOf(200, `{"totalTokens":16}`), "https://generativelanguage.googleapis.com/v1beta/models/m:countTokens",
			`{"generateContentRequest":{"model":"models/m","systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"What is 6×7?"}]}],"generationConfig":{"maxOutputTokens":9}}}`, true, 16, 0},
		{"moonshot", `{"model":"mo/m",` + counted, jsonOf(200, `{"code":0,"data":{"total_tokens":17},"status":true}`),
			"https://api.moonshot.ai/v1/tokenizers/estimate-token-count", `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is 6×7?"}]}`, true, 17, 0},
		{"moonshot_counts_no_tools", `{"model":"mo/m","tools":[{"name":"a","input_schema":{"type":"object"}}],` + counted, fake.Answer{}, "", "", false, -1, 0},
		{"no_counter", `{"model":"up/m",` + counted, fake.Answer{}, "", "", false, -1, 0},
		{"no_counter_at_bedrock", `{"model":"br/m",` + counted, fake.Answer{}, "", "", false, -1, 0},
		{"server_without_counter", `{"model":"an/m",` + counted, jsonOf(404, `{}`), "https://an.example/v1/messages/count_tokens", "", false, -1, 0},
		{"a_limited_account", `{"model":"cl/m",` + counted, jsonOf(429, `{}`), "https://api.anthropic.com/v1/messages/count_tokens", "", false, -1, 0},
		{"a_failing_counter", `{"model":"cl/m",` + counted, fake.Answer{Err: upstream.ErrTimeout}, "https://api.anthropic.com/v1/messages/count_tokens", "", false, -1, 0},
		{"counter_without_count", `{"model":"cl/m",` + counted, jsonOf(200, `{"input_tokens":"many"}`), "https://api.anthropic.com/v1/messages/count_tokens", "", false, -1, 0},
		{"html", `{"model":"cl/m",` + counted, jsonOf(200, `<html>`), "https://api.anthropic.com/v1/messages/count_tokens", "", false, -1, 0},
		{"no_credentials", `{"model":"azure/gpt",` + counted, fake.Answer{}, "", "", false, -1, 0},
		{"fields_that_the_vendor_refuses", `{"model":"cl/m",` + counted, jsonOf(400, `{"error":{"message":"bad"}}`), "https://api.anthropic.com/v1/messages/count_tokens", "", false, 0, 400},
		{"empty", `{}`, fake.Answer{}, "", "", false, 0, 0},
		{"empty_messages", `{"model":"cl/m","messages":[]}`, fake.Answer{}, "", "", false, 0, 0},
		{"no_model", `{` + counted, fake.Answer{}, "", "", false, -1, 0},
		{"unknown_model", `{"model":"no/such",` + counted, fake.Answer{}, "", "", false, 0, 404},
		{"no_json", `{"model":`, fake.Answer{}, "", "", false, 0, 400},
		{"messages_of_another_type", `{"messages":1}`, fake.Answer{}, "", "", false, 0, 400},
		{"model_of_another_type", `{"model":1}`, fake.Answer{}, "", "", false, 0, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, usual...)
			w.Answer = func(*fake.Seen) fake.Answer { return tt.answer }
			got, err := w.count(tt.body)
			if status(err) != tt.status || (err == nil) != (tt.status == 0) {
				t.Fatalf("got %v, want status %d", err, tt.status)
			}
			if tt.want >= 0 && got.Input != tt.want || tt.want < 0 && (got.Input < 8 || got.Input > 400) || got.Exact != tt.exact {
				t.Errorf("got %+v, want %d, exact %v", got, tt.want, tt.exact)
			}
			if tt.url == "" {
				if len(w.Seen) != 0 {
					t.Errorf("%s was called", w.Seen[0].URL)
				}
				return
			}
			if len(w.Seen) != 1 || w.Seen[0].URL != tt.url {
				t.Fatalf("called %+v, want %s", w.Seen, tt.url)
			}
			if tt.sent != "" && w.Seen[0].Body != tt.sent {
				t.Errorf("sent\n%s, want\n%s", w.Seen[0].Body, tt.sent)
			}
			for _, r := range w.rows() {
				if r.InputTokens+r.OutputTokens+r.Unpriced != 0 || r.CostUSD != 0 {
					t.Errorf("counting uses no tokens: %+v", r)
				}
			}
		})
	}
}

func TestImagesAreNotCountedAsText(t *testing.T) {
	w := newWorld(t, usual...)
	got, err := w.count(`{"model":"up/m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("iVBORw0KGgo", 20000) + `"}}]}]}`)
	if err != nil || got.Input < 200 || got.Input > 4000 {
		t.Errorf("%+v %v", got, err)
	}
}

// A Responses request is counted as a Messages request is: in the body that would
// be sent, by the vendor's counter.
func TestCountOfResponses(t *testing.T) {
	for _, tt := range []struct{ name, model, answer, url, sent string }{
		{"openai", "oa/m", `{"object":"response.input_tokens","input_tokens":15}`, "https://api.openai.com/v1/responses/input_tokens", `{"model":"m","instructions":"Be brief.","input":"What is 6×7?"}`},
		{"anthropic", "cl/m", `{"input_tokens":15}`, "https://api.anthropic.com/v1/messages/count_tokens", `{"model":"m","system":"Be brief.","messages":[{"role":"user","content":[{"type":"text","text":"What is 6×7?"}]}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, usual...)
			w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(200, tt.answer) }
			n, err := w.countOf(llm.Responses, `{"model":"`+tt.model+`","instructions":"Be brief.","input":"What is 6×7?"}`)
			if err != nil || n != (Tokens{Input: 15, Exact: true}) {
				t.Fatalf("%+v, %v", n, err)
			}
			if s := w.Seen[0]; s.URL != tt.url || s.Body != tt.sent {
				t.Errorf("sent %s to %s", s.Body, s.URL)
			}
		})
	}
	w := newWorld(t, usual...)
	if n, err := w.countOf(llm.Responses, `{"model":"mi/m","input":"What is 6×7?"}`); err != nil || n.Exact || n.Input < 3 || n.Input > 30 || len(w.Seen) != 0 {
		t.Errorf("an estimate: %+v, %v, %d calls", n, err, len(w.Seen))
	}
}

// A Gemini upstream counts the client's own bytes, and its answer passes.
func TestCountOfGemini(t *testing.T) {
	const turn = `"contents":[ {"role":"user","parts":[{"text":"What is 6×7?"}]} ]`
	for _, tt := range []struct{ name, model, body, answer, url, sent, want string }{
		{"gemini", "ge/m", `{ ` + turn + `, "later":1.0 }`, `{ "totalTokens":15, "promptTokensDetails":[] }`,
			"https://generativelanguage.googleapis.com/v1beta/models/m:countTokens", `{ ` + turn + `, "later":1.0 }`, `{ "totalTokens":15, "promptTokensDetails":[] }`},
		{"gemini_whole", "ge/m", `{ "generateContentRequest" : {"model":"models/x", ` + turn + `,"system_instruction":{"parts":[{"text":"Be brief."}]}} }`, `{"totalTokens":15}`,
			"https://generativelanguage.googleapis.com/v1beta/models/m:countTokens", `{ "generateContentRequest" : {"model":"models/m", ` + turn + `,"system_instruction":{"parts":[{"text":"Be brief."}]}} }`, `{"totalTokens":15}`},
		{"anthropic", "cl/m", `{"generateContentRequest":{"model":"models/x",` + turn + `,"systemInstruction":{"parts":[{"text":"Be brief."}]}}}`, `{"input_tokens":15}`,
			"https://api.anthropic.com/v1/messages/count_tokens", `{"model":"m","system":"Be brief.","messages":[{"role":"user","content":[{"type":"text","text":"What is 6×7?"}]}]}`, ""},
		{"openai", "oa/m", `{` + turn + `}`, `{"object":"response.input_tokens","input_tokens":15}`, "https://api.openai.com/v1/responses/input_tokens", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, usual...)
			w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(200, tt.answer) }
			n, err := w.countGemini(tt.model, tt.body)
			if err != nil || n != (Tokens{Input: 15, Exact: true, Answer: tt.want}) {
				t.Fatalf("%+v, %v", n, err)
			}
			if s := w.Seen[0]; s.URL != tt.url || tt.sent != "" && s.Body != tt.sent {
				t.Errorf("sent %s to %s, want %s", s.Body, s.URL, tt.sent)
			}
		})
	}
	for _, tt := range []struct {
		model, body string
		status      int // 0 is an estimate
		empty       bool
	}{
		{"up/m", `{` + turn + `}`, 0, false},
		{"mi/m", `{"generate_content_request":{` + turn + `}}`, 0, false},
		{"up/m", `{}`, 0, true},
		{"up/m", `{"contents":[]}`, 0, true},
		{"no/such", `{` + turn + `}`, 404, false},
		{"up/m", `{`, 400, false},
		{"up/m", `[]`, 400, false},
		{"up/m", `{"generateContentRequest":1}`, 400, false},
		{"up/m", `{` + turn + `,"generateContentRequest":{` + turn + `}}`, 400, false},
		{"up/m", `{"generate_content_request":{` + turn + `},"generateContentRequest":{` + turn + `}}`, 400, false},
	} {
		w := newWorld(t, usual...)
		n, err := w.countGemini(tt.model, tt.body)
		if status(err) != tt.status || n.Exact || len(w.Seen) > 0 || err == nil && (n.Input == 0) != tt.empty {
			t.Errorf("%s %s: %+v, %v, %d calls", tt.model, tt.body, n, err, len(w.Seen))
		}
	}
}

func (w *world) countGemini(model, body string) (Tokens, error) {
	w.call = &auth.Call{
		Request: &httpmsg.Request{ID: "req_1", Method: "POST", Start: w.Now(), Route: "/v1beta/models/{model}:countTokens"},
		Machine: w.machine, MachineID: mid, MaxBody: 32 << 20,
	}
	return w.dialog.CountGemini(context.Background(), w.call, model, []byte(body))
}
