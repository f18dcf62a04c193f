package llm_test

import (
	"strings"
	"testing"

	"weir/pkg/llm"
	"weir/pkg/wire/stream"
)

// A stream with its finish or stop reason that ends without an error is
// complete: its terminator is added. Without the reason, or after a reset, it
// ends with an error.
func TestMissingTerminatorIsAdded(t *testing.T) {
	const (
		text   = `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}` + "\n\n"
		spaced = `data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}` + "\n\n"
		stop   = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}` + "\n\n"
		usage  = `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}` + "\n\n"
		after  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":{"prompt_tokens":3}}` + "\n\n"
		none   = `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}` + "\n\n"
		second = `data: {"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":null}]}` + "\n\n"
		start  = `event: message_start` + "\n" + `data: {"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}` + "\n\n"
		delta  = `event: message_delta` + "\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}` + "\n\n"
		done   = "data: [DONE]\n\n"
		last   = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	)
	tests := []struct {
		name  string
		d     llm.Dialect
		body  string
		cause error
		added string // "" is an error event
	}{
		{"chat", llm.Chat, text + stop, nil, done},
		{"with blanks", llm.Chat, text + spaced, nil, done},
		{"usage after the reason", llm.Chat, text + stop + usage, nil, done},
		{"usage with an empty choice", llm.Chat, text + stop + after, nil, done},
		{"the event's end is missing", llm.Chat, text + strings.TrimSuffix(stop, "\n\n"), nil, "\n\n" + done},
		{"the terminator is cut", llm.Chat, text + stop + "data: [DO", nil, "NE]\n\n"},
		{"no reason", llm.Chat, text, nil, ""},
		{"an empty reason", llm.Chat, none, nil, ""},
		{"the second choice goes on", llm.Chat, text + stop + second, nil, ""},
		{"a cut event after the reason", llm.Chat, text + stop + `data: {"choices":[],"usa`, nil, ""},
		{"a reset", llm.Chat, text + stop, stream.ErrReset, ""},
		{"silence", llm.Chat, text + stop, stream.ErrIdle, ""},
		{"messages", llm.Messages, start + delta, nil, last},
		{"messages without a reason", llm.Messages, start, nil, ""},
		{"messages, reset", llm.Messages, start + delta, stream.ErrReset, ""},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 9, 1 << 20} {
			seen, o := observe(tt.d, []byte(tt.body), size, tt.cause)
			added := string(seen[len(tt.body):])
			if tt.added != "" && (added != tt.added || !o.Complete() || o.Failure() != nil) {
				t.Errorf("%s in pieces of %d: added %q, complete %v, %v", tt.name, size, added, o.Complete(), o.Failure())
			}
			if tt.added == "" && (o.Complete() || o.Failure() == nil || !strings.Contains(added, "error")) {
				t.Errorf("%s in pieces of %d: added %q, complete %v", tt.name, size, added, o.Complete())
			}
			// A translated stream ends alike.
			for _, to := range clients {
				_, s := run(tt.d, to, []byte(tt.body))
				if tt.cause == nil && !strings.Contains(tt.name, "choice goes on") && s.Complete() != (tt.added != "") {
					t.Errorf("%s to %v: complete %v, %v", tt.name, to, s.Complete(), s.Failure())
				}
			}
		}
	}
}

// The usage of a refused answer is that of the stream's end, not the greater
// one of its beginning.
func TestRefusedStreamReportsFinalUsage(t *testing.T) {
	const body = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\"},\"usage\":{\"output_tokens\":0}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	_, o := observe(llm.Messages, []byte(body), 64, nil)
	_, s := run(llm.Messages, llm.Chat, []byte(body))
	for _, u := range []llm.Usage{o.Usage(), s.Usage()} {
		if u.Input != 5 || u.Output != 0 || !u.Known {
			t.Errorf("usage %+v", u)
		}
	}
}
