package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
)

// Usage that is empty, zero beside a text, no number or absurd counts as not stated: it is
// estimated, or the attempt unpriced, but never free, and adds no absurd number to a total or
// a budget. The log names counts that cannot be true once.
func TestInvalidUsageIsNeitherFreeNorAbsurd(t *testing.T) {
	// Of %s the first is the field of the input, the second that of the output.
	stated := []string{
		`{}`, `null`, `"x"`, `[]`, `{"%s":0,"%s":0}`, `{"%s":"100","%s":"50"}`, `{"%s":null,"%s":null}`, `{"%s":{},"%s":[]}`, `{"%s":-5,"%s":-5}`,
		`{"%s":1e18,"%s":1e18}`, `{"%s":1e308,"%s":1e308}`, // from here on absurd
	}
	const absurd = 9
	text := strings.Repeat("word ", 200)
	ask := func(model, more string) string { return `{"model":"` + model + `",` + more + `}` }
	for _, tt := range []struct {
		name, path, body, answer string // USAGE is replaced
		in, out                  string
		unpriced                 bool
		quiet                    bool // absurd counts are no counts
	}{
		{"chat", "/v1/chat/completions", ask("openai/gpt-5.5", `"messages":[{"role":"user","content":"a"}]`),
			`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"stop"}],"usage":USAGE}`,
			"prompt_tokens", "completion_tokens", false, false},
		{"chat of an own server", "/v1/chat/completions", ask("up/m", `"messages":[{"role":"user","content":"a"}]`),
			`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"stop"}],"usage":USAGE}`,
			"prompt_tokens", "completion_tokens", false, false},
		{"a stream", "/v1/chat/completions", ask("openai/gpt-5.5", `"stream":true,"messages":[{"role":"user","content":"a"}]`),
			`data: {"id":"c","choices":[{"index":0,"delta":{"content":"` + text + `"}}]}` + "\n\n" +
				`data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" + `data: {"id":"c","choices":[],"usage":USAGE}` + "\n\ndata: [DONE]\n\n",
			"prompt_tokens", "completion_tokens", false, false},
		{"Responses", "/v1/responses", ask("openai/gpt-5.5", `"input":"a"`),
			`{"id":"r","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + text + `"}]}],"usage":USAGE}`,
			"input_tokens", "output_tokens", false, false},
		{"Messages", "/v1/messages", ask("anthropic/claude-opus-4-8", `"max_tokens":5000,"messages":[{"role":"user","content":"a"}]`),
			`{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"` + text + `"}],"stop_reason":"end_turn","usage":USAGE}`,
			"input_tokens", "output_tokens", false, false},
		{"Gemini", "/v1beta/models/gemini/gemini-3.8-flash:generateContent", `{"contents":[{"role":"user","parts":[{"text":"a"}]}]}`,
			`{"candidates":[{"content":{"role":"model","parts":[{"text":"` + text + `"}]},"finishReason":"STOP"}],"usageMetadata":USAGE}`,
			"promptTokenCount", "candidatesTokenCount", false, false},
		{"embeddings", "/v1/embeddings", ask("openai/text-embedding-3-small", `"input":"a b c"`),
			`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":USAGE}`, "prompt_tokens", "total_tokens", false, true},
		{"rerank by tokens", "/v1/rerank", ask("voyage/rerank-2.5", `"query":"a","documents":["b"]`),
			`{"object":"list","data":[{"index":0,"relevance_score":0.5}],"usage":USAGE}`, "total_tokens", "x", false, false},
		{"rerank by searches", "/v1/rerank", ask("cohere/rerank-v3.5", `"query":"a","documents":["b"]`),
			`{"id":"x","results":[{"index":0,"relevance_score":0.5}],"meta":{"billed_units":USAGE}}`, "search_units", "x", false, true},
		{"images", "/v1/images/generations", ask("openai/gpt-image-2", `"prompt":"a"`),
			`{"created":1,"data":[{"b64_json":"aGVsbG8="}],"usage":USAGE}`, "input_tokens", "output_tokens", true, false},
	} {
		for i, usage := range stated {
			if strings.Contains(usage, "%s") {
				usage = fmt.Sprintf(usage, tt.in, tt.out)
			}
			what := tt.name + ", usage " + usage
			w := newWorld(t)
			machine, key := w.priced()
			api := func(method, path, body string) gjson.Result {
				return gjson.Parse(w.do(method, "/"+machine+"/api"+path, adminToken, body).body)
			}
			for _, p := range []string{"cohere", "voyage"} {
				api("POST", "/providers", `{"provider":"`+p+`","name":"a","apiKey":"upstream-key"}`)
			}
			api("POST", "/providers", `{"provider":"openai-compatible-0123abcd","name":"a","apiKey":"k","providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`)
			api("PATCH", "/settings", `{"allowUnknown":true,"modelPrices":{"openai/gpt-5.5":"1/10","up/m":"1/10"}}`)
			api("POST", "/budgets", `{"name":"usd","unit":"usd","limit":1000,"window":"day"}`)
			api("POST", "/budgets", `{"name":"tokens","unit":"tokens","limit":1000000000000,"window":"day"}`)
			answer := strings.Replace(tt.answer, "USAGE", usage, 1)
			w.Answer = func(*fake.Seen) fake.Answer {
				if strings.HasPrefix(answer, "data: ") {
					return fake.OK("text/event-stream", answer)
				}
				return fake.JSON(answer)
			}
			for range 2 {
				if got := w.do("POST", tt.path, key, tt.body); got.status != 200 {
					t.Fatalf("%s: %d %s", what, got.status, got.body)
				}
			}
			w.Clock.Add(2 * time.Second)
			w.do("GET", "/v1/models", key, "")
			row, total := api("GET", "/requests", "").Get("data.0"), api("GET", "/usage", "").Get("total")
			tokens, cost := row.Get("inputTokens").Int()+row.Get("outputTokens").Int(), row.Get("costUsd").Num
			if row.Get("priced").Bool() == tt.unpriced || !tt.unpriced && (!row.Get("estimated").Bool() || cost == 0 || tokens == 0) || tokens > 2000 || cost > 0.01 {
				t.Errorf("%s: the request is %s", what, row.Raw)
			}
			if got := total.Get("inputTokens").Int() + total.Get("outputTokens").Int(); got != 2*tokens || total.Get("costUsd").Num != 2*cost || total.Get("unpricedAttempts").Exists() != tt.unpriced {
				t.Errorf("%s: usage is %s, a request %s", what, total.Raw, row.Raw)
			}
			budgets := api("GET", "/budgets", "").Get("data")
			if usd, n := budgets.Get("0.spent").Num, budgets.Get("1.spent").Int(); !tt.unpriced && (usd != 2*cost || n != 2*tokens) || n > 4000 {
				t.Errorf("%s: the budgets have $%v and %d tokens, a request %s", what, usd, n, row.Raw)
			}
			named := 0
			for _, line := range w.Log {
				if strings.Contains(line, "cannot be true") {
					named++
				}
			}
			if want := i >= absurd && !tt.quiet; named != 1 && want || named != 0 && !want {
				t.Errorf("%s: named %d times: %q", what, named, w.Log)
			}
		}
	}
}
