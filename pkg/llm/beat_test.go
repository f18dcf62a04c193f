package llm_test

import (
	"strings"
	"testing"

	"weir/pkg/llm"
	"weir/pkg/wire/stream"
)

// A stream that passes byte for byte gets heartbeats between its events only.
func TestObserverBeatsBetweenEvents(t *testing.T) {
	const chunk = `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}`
	const comment, ping = ": keep-alive\n\n", "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	const empty = `data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"index":0}]}` + "\n\n"
	tests := []struct {
		name    string
		dialect llm.Dialect
		stream  string
		want    string
	}{
		{"nothing yet", llm.Chat, "", comment},
		{"after an event", llm.Chat, chunk + "\n\n", comment},
		{"after usual ones", llm.Chat, strings.Repeat(chunk+"\n\n", 5), comment},
		{"CRLF", llm.Chat, chunk + "\r\n\r\n", comment},
		{"CR", llm.Chat, chunk + "\r\r", comment},
		{"within a line", llm.Chat, chunk + "\n\n" + chunk[:20], ""},
		{"within a long line", llm.Chat, chunk[:40] + strings.Repeat("x", 200<<10), ""},
		{"before the blank line", llm.Chat, chunk + "\n", ""},
		{"after a comment's line", llm.Chat, ": ping\n", ""},
		{"after a comment", llm.Chat, ": ping\n\n", comment},
		{"after the terminator", llm.Chat, chunk + "\n\ndata: [DONE]\n\n", ""},
		{"after a failure", llm.Chat, "data: {\"error\":{\"message\":\"x\"}}\n\n", ""},
		{"Messages", llm.Messages, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n", ping},
		{"Messages, after the name", llm.Messages, "event: message_start\n", ""},
		{"Messages, over", llm.Messages, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", ""},
		{"Gemini", llm.Gemini, "data: {\"candidates\":[{\"index\":0}]}\r\n\r\n", empty},
		{"Gemini, after the finish reason", llm.Gemini, "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n", ""},
		{"Responses", llm.Responses, "event: response.created\ndata: {\"type\":\"response.created\"}\n\n", comment},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 7, len(tt.stream) + 1} {
			o := llm.Observe(tt.dialect)
			for rest := tt.stream; rest != ""; {
				n := min(size, len(rest))
				o.Sample([]byte(rest[:n]))
				rest = rest[n:]
			}
			if got := string(o.Beat(nil)); got != tt.want {
				t.Errorf("%s, in pieces of %d: %q, want %q", tt.name, size, got, tt.want)
			}
		}
	}
}

// A translated stream gets heartbeats of the client's dialect until it is over.
func TestTranslatorBeats(t *testing.T) {
	for d, want := range map[llm.Dialect]string{llm.Chat: ": keep-alive\n\n", llm.Responses: ": keep-alive\n\n", llm.Messages: "event: ping\ndata: {\"type\":\"ping\"}\n\n", llm.Gemini: `data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"index":0}]}` + "\n\n"} {
		s := llm.Stream(llm.Chat, d, options())
		s.Push([]byte(chatHead+chatPiece(0, "c1", "p", `{"in`)), nil)
		if got := string(s.Beat([]byte("x"))); got != "x"+want {
			t.Errorf("%v: %q", d, got)
		}
		s.End(stream.ErrReset, nil)
		if got := s.Beat(nil); len(got) > 0 {
			t.Errorf("%v, over: %q", d, got)
		}
	}
}
