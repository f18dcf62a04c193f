package proxy

import (
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
)

// A withheld answer is an answer, except where the combo tries its next member after
// it.
func TestFilteredAnswers(t *testing.T) {
	const (
		gemini   = `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":9}}`
		finished = `{"candidates":[{"finishReason":"SAFETY","index":0}],"usageMetadata":{"promptTokenCount":9}}`
		spoken   = `{"candidates":[{"content":{"role":"model","parts":[{"text":"Well"}]},"finishReason":"SAFETY"}]}`
		chat     = `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"content_filter"}],"usage":{"prompt_tokens":9,"completion_tokens":0}}`
		claude   = `{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":"refusal","usage":{"input_tokens":9,"output_tokens":0}}`
	)
	next := map[string]string{"content_filter": "next"}
	for _, tt := range []struct {
		name, model, answer string
		stream              bool
		on                  map[string]string
		want                bool // the next member is asked
	}{
		{"Gemini blocks the prompt", "ge/gemini-2.5-flash", gemini, false, next, true},
		{"in a stream", "ge/gemini-2.5-flash", "data: " + gemini + "\n\n", true, next, true},
		{"Gemini blocks the answer", "ge/gemini-2.5-flash", finished, false, next, true},
		{"any_4xx holds for it", "ge/gemini-2.5-flash", finished, false, map[string]string{"any_4xx": "next"}, true},
		{"a part of the answer", "ge/gemini-2.5-flash", spoken, false, next, false},
		{"by default", "ge/gemini-2.5-flash", gemini, false, nil, false},
		{"by default, in a stream", "ge/gemini-2.5-flash", "data: " + gemini + "\n\n", true, nil, false},
		{"chat", "up/m", chat, false, next, true},
		{"chat by default", "up/m", chat, false, nil, false},
		{"Claude", "cl/claude-sonnet-4-5", claude, false, next, true},
	} {
		w := newWorld(t, usual...)
		w.combo([]string{tt.model, "up/last"}, tt.on, nil)
		w.Answer = func(s *fake.Seen) fake.Answer {
			if strings.Contains(s.Body, `"last"`) {
				return fake.Reply(200, `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`) // also for a stream
			}
			if tt.stream {
				return events(tt.answer)
			}
			return fake.Reply(200, tt.answer)
		}
		body := `{"model":"mix","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`
		if tt.stream {
			body = `{"model":"mix","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"x"}]}`
		}
		res, err := w.ask(llm.Messages, body)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		w.text(res)
		if asked := len(w.Seen) == 2; asked != tt.want {
			t.Errorf("%s: %d calls, %+v", tt.name, len(w.Seen), w.call.Trace.Failed())
		}
		if failed := w.call.Trace.Failed(); tt.want && (len(failed) != 1 || failed[0].Code != "content_filter") {
			t.Errorf("%s: failed %+v", tt.name, failed)
		}
		if rows := w.rows(); tt.want && (len(rows) != 2 || rows[0].Errors != 1) {
			t.Errorf("%s: usage %+v", tt.name, rows)
		}
	}
}
