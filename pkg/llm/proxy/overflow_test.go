package proxy

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
)

// overflowing are vendors' answers to a request that is too long, by the prefix of
// their connection.
var overflowing = []struct {
	model  string
	status int
	body   string
}{
	{"oa/gpt-5", 400, `{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`},
	{"cl/claude-sonnet-4-5", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`},
	{"ge/gemini-2.5-pro", 400, `{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}`},
	{"co/command-a", 400, `{"message":"too many tokens: total number of tokens cannot exceed 128000 - received 130000."}`},
	{"br/anthropic.claude-sonnet-4-5", 400, `{"message":"Input is too long for requested model."}`},
	{"up/llama", 400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}`},
	{"up/vllm", 422, `{"detail":[{"msg":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."}]}`},
	{"an/MiniMax-M2", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"invalid params, context window exceeds limit (2013)"}}`},
}

// Whatever the upstream says of a request that is too long, each tool reads what
// it compacts on.
func TestContextOverflowIsToldInTheClientsForm(t *testing.T) {
	requests := []struct {
		d    llm.Dialect
		body string
	}{
		{llm.Chat, `{"model":"M","messages":[{"role":"user","content":"x"}]}`},
		{llm.Messages, `{"model":"M","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`},
		{llm.Responses, `{"model":"M","input":"x"}`},
		{llm.Completions, `{"model":"M","prompt":"x"}`},
		{llm.Gemini, `M:generateContent {"contents":[{"role":"user","parts":[{"text":"x"}]}]}`},
	}
	for _, o := range overflowing {
		for _, q := range requests {
			for _, streams := range []bool{false, true} {
				name := o.model + " to " + q.d.String()
				body := strings.Replace(q.body, "M", o.model, 1)
				if streams {
					name = name + ", stream"
					if body = strings.Replace(body, ":generate", ":streamGenerate", 1); q.d != llm.Gemini {
						body = strings.TrimSuffix(body, "}") + `,"stream":true}`
					}
				}
				t.Run(name, func(t *testing.T) {
					w := newWorld(t, usual...)
					w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(o.status, o.body) }
					res, err := w.ask(q.d, body)
					if streams && q.d == llm.Responses {
						if err != nil {
							t.Fatal(err)
						}
						checkFailedStream(t, res)
						return
					}
					var e *apierr.Error
					if !errors.As(err, &e) {
						t.Fatalf("got %v", err)
					}
					if e.Status != 400 {
						t.Errorf("status %d", e.Status)
					}
					message, code := e.Message, e.Code
					if len(e.Body) > 0 {
						message, code = gjson.GetBytes(e.Body, "error.message").Str, gjson.GetBytes(e.Body, "error.code").Str
					}
					low := strings.ToLower(message)
					switch {
					case q.d == llm.Gemini:
						if !strings.HasPrefix(message, "The input token count") || !strings.Contains(message, "exceeds the maximum") {
							t.Errorf("got %q", message)
						}
					case q.d == llm.Messages:
						if !strings.Contains(low, "prompt is too long") && !strings.Contains(low, "input is too long for requested model") {
							t.Errorf("Claude Code does not compact on %q", message)
						}
					case code != "context_length_exceeded":
						t.Errorf("code %q, message %q", code, message)
					}
				})
			}
		}
	}
}

// checkFailedStream checks the stream on which Codex compacts.
func checkFailedStream(t *testing.T, res *Result) {
	t.Helper()
	raw, err := stream.ReadAll(res.Body, 1<<20)
	if err != nil || res.Status != 200 || !strings.HasPrefix(res.Header.Get("content-type"), "text/event-stream") {
		t.Fatalf("%v, status %d, %s", err, res.Status, res.Header.Get("content-type"))
	}
	var last gjson.Result
	for line := range strings.SplitSeq(string(raw), "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			last = gjson.Parse(data)
		}
	}
	if last.Get("type").Str != "response.failed" || last.Get("response.error.code").Str != "context_length_exceeded" || last.Get("response.id").Str == "" {
		t.Errorf("the stream ends with %s", last.Raw)
	}
}

// A body that already says what the client's tools read passes byte for byte.
func TestVendorsOwnContextOverflowPasses(t *testing.T) {
	for _, tt := range []struct {
		d     llm.Dialect
		model string
		ask   string
		at    int
	}{
		{llm.Chat, "oa/gpt-5", `"messages":[{"role":"user","content":"x"}]`, 0},
		{llm.Chat, "oa/gpt-5", `"stream":true,"messages":[{"role":"user","content":"x"}]`, 0},
		{llm.Messages, "cl/claude-sonnet-4-5", `"max_tokens":9,"messages":[{"role":"user","content":"x"}]`, 1},
	} {
		w := newWorld(t, usual...)
		w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(400, overflowing[tt.at].body) }
		_, err := w.ask(tt.d, `{"model":"`+tt.model+`",`+tt.ask+`}`)
		var e *apierr.Error
		if !errors.As(err, &e) || string(e.Body) != overflowing[tt.at].body {
			t.Errorf("%s: got %v", tt.model, err)
		}
	}
}

// Codex shows a 413 without compacting, so its streams are told of an overflow.
func TestTooLargeRequestsLetCodexCompact(t *testing.T) {
	big := `{"model":"M","stream":true,"input":[` + strings.Repeat(`{"role":"user","content":"x"},`, 24_100) + `{"role":"user","content":"x"}]}`
	for _, tt := range []struct{ name, body string }{
		{"too many items to translate", strings.Replace(big, "M", "cl/claude-sonnet-4-5", 1)},
		{"refused by the upstream", `{"model":"oa/gpt-5","stream":true,"input":"x"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, usual...)
			w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(413, `{"error":{"message":"Request Entity Too Large"}}`) }
			res, err := w.ask(llm.Responses, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			checkFailedStream(t, res)
		})
	}
	w := newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer {
		return jsonOf(413, `{"error":{"message":"Request too large for model on tokens per minute","code":"rate_limit_exceeded"}}`)
	}
	var e *apierr.Error
	if _, err := w.ask(llm.Responses, `{"model":"oa/gpt-5","stream":true,"input":"x"}`); !errors.As(err, &e) || e.Status != 413 {
		t.Errorf("a limit on tokens per minute: got %v", err)
	}
}

// A stream that fails with an overflow after it began names it in the client's
// dialect.
func TestContextOverflowWithinStream(t *testing.T) {
	const begun = "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hi\"}}]}\n\n" +
		"data: {\"error\":{\"message\":\"This model's maximum context length is 4096 tokens.\",\"code\":400}}\n\n"
	for _, tt := range []struct {
		d          llm.Dialect
		body, want string
	}{
		{llm.Messages, `{"model":"up/m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, `"message":"prompt is too long: This model's`},
		{llm.Responses, `{"model":"up/m","stream":true,"input":"x","store":false}`, `"code":"context_length_exceeded"`},
	} {
		w := newWorld(t, usual...)
		w.Answer = func(*fake.Seen) fake.Answer { return events(begun) }
		w.dialog.ChatOnly.add(connectionKey{mid, "c-up"}) // it has no Responses endpoint
		res, err := w.ask(tt.d, tt.body)
		if err != nil {
			t.Fatal(err)
		}
		if raw := w.text(res); !strings.Contains(raw, tt.want) {
			t.Errorf("%s: got %s", tt.d, raw)
		}
	}
}
