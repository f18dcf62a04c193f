package proxy

import (
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"weir/internal/golden"
	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/wire/eventstream"
	"weir/pkg/wire/sse"
)

var clients = [...]llm.Dialect{llm.Chat, llm.Responses, llm.Messages, llm.Gemini}

// requests are one question with a tool, in each dialect.
var requests = [...]string{
	llm.Chat: `{"model":"MODEL","max_tokens":300,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is 6×7?"}],
		"tools":[{"type":"function","function":{"name":"multiply","parameters":{"type":"object","properties":{"a":{"type":"number"}}}}}],"seed":9007199254740993STREAM}`,
	llm.Responses: `{"model":"MODEL","max_output_tokens":300,"instructions":"Be brief.","input":"What is 6×7?",
		"tools":[{"type":"function","name":"multiply","parameters":{"type":"object","properties":{"a":{"type":"number"}}},"strict":false}],"store":falseSTREAM}`,
	llm.Messages: `{"model":"MODEL","max_tokens":300,"system":"Be brief.","messages":[{"role":"user","content":"What is 6×7?"}],
		"tools":[{"name":"multiply","input_schema":{"type":"object","properties":{"a":{"type":"number"}}}}],"top_k":5STREAM}`,
	llm.Gemini: `{"contents":[{"role":"user","parts":[{"text":"What is 6×7?"}]}],"systemInstruction":{"parts":[{"text":"Be brief."}]},"generationConfig":{"maxOutputTokens":300},
		"tools":[{"functionDeclarations":[{"name":"multiply","parameters":{"type":"OBJECT","properties":{"a":{"type":"NUMBER"}}}}]}]}`,
}

// request returns a client's request. One of Gemini's dialect comes after the model and
// the method of its URL.
func request(d llm.Dialect, model string, stream bool) string {
	more, url := "", ""
	if d == llm.Gemini {
		url = model + ":generateContent "
		if stream {
			url = model + ":streamGenerateContent?alt=sse "
		}
	}
	if stream {
		more = `,"stream":true`
		if d == llm.Chat {
			more += `,"stream_options":{"include_usage":true}`
		}
	}
	return url + strings.NewReplacer("MODEL", model, "STREAM", more, "\n\t\t", "").Replace(requests[d])
}

// recorded returns an upstream's answer from the recordings of pkg/llm.
func recorded(t testing.TB, d llm.Dialect, stream bool) fake.Answer {
	t.Helper()
	if d == llm.Converse {
		if !stream {
			return jsonOf(200, `{"output":{"message":{"role":"assistant","content":[{"text":"42"}]}},"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":2,"totalTokens":7}}`)
		}
		b := eventstream.Event(nil, "messageStart", []byte(`{"role":"assistant"}`))
		b = eventstream.Event(b, "contentBlockDelta", []byte(`{"contentBlockIndex":0,"delta":{"text":"42"}}`))
		b = eventstream.Event(b, "contentBlockStop", []byte(`{"contentBlockIndex":0}`))
		b = eventstream.Event(b, "messageStop", []byte(`{"stopReason":"end_turn"}`))
		b = eventstream.Event(b, "metadata", []byte(`{"usage":{"inputTokens":5,"outputTokens":2,"totalTokens":7}}`))
		a := events(string(b))
		a.Header[0].Value = "application/vnd.amazon.eventstream"
		return a
	}
	if stream {
		raw, err := os.ReadFile("../testdata/streams/" + d.String() + "/text.sse")
		if err != nil {
			t.Fatal(err)
		}
		return events(string(raw))
	}
	raw, err := os.ReadFile("../testdata/answers/" + d.String() + "/text.json")
	if err != nil {
		t.Fatal(err)
	}
	return jsonOf(200, string(raw))
}

// upstreamDialect returns the dialect of a URL.
func upstreamDialect(t testing.TB, r *fake.Seen) llm.Dialect {
	for _, p := range []struct {
		part string
		d    llm.Dialect
	}{
		{"/chat/completions", llm.Chat}, {"/responses", llm.Responses}, {"/messages", llm.Messages},
		{"enerateContent", llm.Gemini}, {"/v2/chat", llm.Cohere}, {"/converse", llm.Converse},
	} {
		if strings.Contains(r.URL, p.part) {
			return p.d
		}
	}
	t.Fatalf("what speaks %s?", r.URL)
	return 0
}

// TestEveryPair records what each upstream is sent and what the client gets.
func TestEveryPair(t *testing.T) {
	targets := []struct {
		name, model string
		native      []llm.Dialect // clients whose bytes pass
	}{
		{"openai", "oa/gpt-4.1", []llm.Dialect{llm.Chat, llm.Responses}},
		{"compatible", "up/some-model", []llm.Dialect{llm.Chat, llm.Responses}},
		{"anthropic", "cl/claude-sonnet-4-5", []llm.Dialect{llm.Messages}},
		{"gemini", "ge/gemini-2.5-flash", []llm.Dialect{llm.Chat, llm.Gemini}},
		{"cohere", "co/command-a-03-2025", []llm.Dialect{llm.Chat}},
		{"bedrock", "br/amazon.nova-lite-v1:0", nil},
		{"moonshot", "mo/kimi-k2", []llm.Dialect{llm.Chat, llm.Messages}},
	}
	for _, tt := range targets {
		for _, d := range clients {
			for _, streams := range []bool{false, true} {
				name := fmt.Sprintf("%s_from_%s", tt.name, d)
				if streams {
					name += "_stream"
				}
				t.Run(name, func(t *testing.T) {
					w := newWorld(t, usual...)
					var sent string
					w.Answer = func(r *fake.Seen) fake.Answer {
						a := recorded(t, upstreamDialect(t, r), streams)
						sent = strings.Join(a.Pieces, "")
						return a
					}
					reply, err := w.ask(d, request(d, tt.model, streams))
					if err != nil {
						t.Fatal(err)
					}
					got := w.text(reply)
					native := false
					for _, n := range tt.native {
						native = native || n == d
					}
					if same := got == sent; same != native {
						t.Errorf("the upstream's bytes pass: %v, want %v", same, native)
					}
					if len(w.rows()) != 1 || w.rows()[0].InputTokens == 0 || w.rows()[0].OutputTokens == 0 || w.rows()[0].Errors != 0 || w.rows()[0].Endpoint == "" || w.rows()[0].Model == "" {
						t.Errorf("usage %+v", w.rows())
					}
					if w.Open != 0 {
						t.Errorf("%d bodies left open", w.Open)
					}
					golden.Bytes(t, "pairs/"+name+".txt", []byte(show(w, reply, got, native)))
				})
			}
		}
	}
}

// TestRequestsToHostedClaude records what Vertex AI and Bedrock are sent for
// Claude: the version in the body, the model in the URL, and at Bedrock streams
// as binary frames.
func TestRequestsToHostedClaude(t *testing.T) {
	for _, model := range []string{"ve/claude-sonnet-4-5", "br/anthropic.claude-sonnet-4-5-v1:0"} {
		for _, d := range []llm.Dialect{llm.Messages, llm.Chat, llm.Gemini} {
			for _, streams := range []bool{false, true} {
				name := fmt.Sprintf("%s_claude_from_%s", model[:2], d)
				if streams {
					name += "_stream"
				}
				t.Run(name, func(t *testing.T) {
					w := newWorld(t, append(usual, provided{prefix: "ve", provider: "vertex", vars: map[string]string{"project": "p-1", "location": "us-east5"}})...)
					var sent string
					w.Answer = func(r *fake.Seen) fake.Answer {
						if strings.Contains(r.URL, "/converse") {
							return recorded(t, llm.Converse, streams)
						}
						a := recorded(t, llm.Messages, streams)
						sent = a.Pieces[0]
						if strings.Contains(r.URL, "bedrock") && streams {
							a.Pieces = frames(sent)
						}
						return a
					}
					reply, err := w.ask(d, request(d, model, streams))
					if err != nil {
						t.Fatal(err)
					}
					got := w.text(reply)
					if !streams && (d == llm.Messages) != (got == sent) {
						t.Errorf("the bytes pass: %v", got == sent)
					}
					if streams && d == llm.Messages && model[:2] == "br" && got != sent {
						t.Errorf("got\n%s\nwant\n%s", got, sent)
					}
					if streams {
						if outcome := ends(t, d, got); outcome != "well" {
							t.Errorf("ended %s", outcome)
						}
					}
					golden.Bytes(t, "pairs/"+name+".txt", []byte(show(w, reply, got, false)))
				})
			}
		}
	}
}

func TestFailedFrames(t *testing.T) {
	limited := string(eventstream.Exception(nil, "throttlingException", []byte(`{"message":"slow"}`)))
	for _, d := range clients {
		for _, begun := range []bool{false, true} {
			w := newWorld(t, usual...)
			w.Answer = func(r *fake.Seen) fake.Answer {
				a := recorded(t, upstreamDialectOfFrames(r), true)
				if strings.Contains(r.URL, "/invoke") {
					a.Pieces = frames(a.Pieces[0])
				}
				if begun {
					a.Pieces = []string{a.Pieces[0][:220], limited}
					if strings.Contains(r.URL, "/invoke") {
						a.Pieces = append(frames(recorded(t, llm.Messages, true).Pieces[0])[:3:3], limited)
					}
				} else {
					a.Pieces = []string{limited}
				}
				return a
			}
			reply, err := w.ask(d, request(d, "br/anthropic.claude-sonnet-4-5-v1:0", true))
			if !begun {
				if status(err) != 429 {
					t.Errorf("%s: %v", d, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := ends(t, d, w.text(reply)); got != "with an error" {
				t.Errorf("%s ended %s", d, got)
			}
		}
	}
}

func upstreamDialectOfFrames(r *fake.Seen) llm.Dialect {
	if strings.Contains(r.URL, "/invoke") {
		return llm.Messages
	}
	return llm.Converse
}

// frames are the events of a stream as Bedrock's InvokeModelWithResponseStream
// sends them.
func frames(text string) []string {
	var out []string
	for _, p := range pieces(text) {
		_, data, ok := strings.Cut(p, "data: ")
		if ok {
			chunk := `{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(data))) + `"}`
			out = append(out, string(eventstream.Event(nil, "chunk", []byte(chunk))))
		}
	}
	return out
}

// show prints a call.
func show(w *world, reply *Result, got string, native bool) string {
	var b strings.Builder
	r := w.Seen[0]
	fmt.Fprintf(&b, "%s %s\n", r.Method, r.URL)
	for _, f := range r.Header {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	fmt.Fprintf(&b, "(head %v, in all %v, in memory %d)\n\n%s\n\n", r.Request.HeaderTimeout, r.Timeout, r.MaxBody, w.Seen[0].Body)
	fmt.Fprintf(&b, "%d\n", reply.Status)
	for _, f := range reply.Header {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	if len(w.call.Trace.Dropped) > 0 {
		fmt.Fprintf(&b, "(dropped %s)\n", strings.Join(w.call.Trace.Dropped, ","))
	}
	// A call counts as failed where it is recorded, not here.
	used := regexp.MustCompile(` (Failed|Left)Calls:0| NoAccount:0| Refused[A-Za-z]+:0| (Latency|FirstToken|Causes):\[[0 ]+\]| FirstTokenMs:0| Sizes:\[[0-9 ]+\]`).ReplaceAllString(fmt.Sprintf("%+v", w.rows()[0]), "")
	fmt.Fprintf(&b, "(used %s)\n\n", used)
	if native {
		got = "(the upstream's bytes)\n"
	}
	b.WriteString(got)
	return b.String()
}

// ends returns how a client's stream ended: with its terminator, with an error,
// or otherwise.
func ends(t testing.TB, d llm.Dialect, text string) string {
	t.Helper()
	var r sse.Reader
	var ev sse.Event
	r.Push([]byte(text))
	good, bad, done := 0, 0, 0
	if d == llm.Gemini && failureIn([]byte(text)) != nil {
		bad++
	}
	for r.Next(&ev) {
		name, data := string(ev.Name), string(ev.Data)
		switch d {
		case llm.Chat:
			switch {
			case data == "[DONE]":
				done++
			case strings.HasPrefix(data, `{"error"`):
				bad++
			}
		case llm.Gemini:
			if strings.Contains(data, `"finishReason"`) && bad == 0 {
				good++
			}
			if strings.HasPrefix(data, `{"error"`) {
				bad = 1 // as the upstream sent it, or beside the bare object
			}
		case llm.Messages:
			if name == "message_stop" {
				good++
			}
			if name == "error" {
				bad++
			}
		case llm.Responses:
			if name == "response.completed" || name == "response.incomplete" {
				good++
			}
			if name == "error" || name == "response.failed" {
				bad = 1 // the two go together
			}
		}
	}
	if r.Finish(&ev) {
		return "in the middle of an event"
	}
	if d == llm.Chat {
		if done != 1 {
			return fmt.Sprintf("%d times [DONE]", done)
		}
		if bad == 0 {
			good = 1
		}
	}
	switch {
	case good == 1 && bad == 0:
		return "well"
	case good == 0 && bad == 1:
		return "with an error"
	}
	return fmt.Sprintf("%d ends and %d errors", good, bad)
}
