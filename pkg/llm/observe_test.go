package llm_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
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

// A chat stream whose upstream reports no usage is estimated by the length of its
// text, which does not depend on how the bytes are cut.
func TestTextIsCountedHoweverCut(t *testing.T) {
	const stream = `data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\r\n\r\n" +
		`data: {"id":"1","choices":[{"index":0,"delta":{"content":"four"},"finish_reason":null}]}` + "\n\n: comment\n\n" +
		`data: {"id":"1","choices":[{"index":0,"delta":{"content":"fives"},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"1","choices":[{"index":0,"delta":{"content":"a \"b\" \\"},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"1","choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"1","x":1,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]},"finish_reason":null}]}` + "\n\n" +
		`data: {"choices":[],"usage":{}}` + "\n\ndata: [DONE]\n\n"
	const want = len(`four`) + len(`fives`) + len(`a \"b\" \\`) + len(`hm`) + len(`{\"a\":1}`)
	for i := range len(stream) {
		for _, size := range []int{1, 7, len(stream)} {
			o := llm.Observe(llm.Chat)
			o.Sample([]byte(stream[:i]))
			for rest := stream[i:]; rest != ""; {
				n := min(size, len(rest))
				o.Sample([]byte(rest[:n]))
				rest = rest[n:]
			}
			if o.Text() != want {
				t.Fatalf("cut at %d, then each %d bytes: got %d, want %d", i, size, o.Text(), want)
			}
		}
	}
}

// seen is what an observer knows at the end of a stream.
type seen struct {
	complete bool
	usage    llm.Usage
	text     int
	failure  string
	tail     string
}

func whatIsSeen(d llm.Dialect, body []byte, size int, cause error) seen {
	out, o := observe(d, body, size, cause)
	s := seen{complete: o.Complete(), usage: o.Usage(), text: o.Text(), tail: string(out[len(body):])}
	if e := o.Failure(); e != nil {
		s.failure = e.Error()
	}
	return s
}

// usualStreams have chunks of one pattern between others, which an observer may
// not take for them.
func usualStreams() map[string]string {
	const (
		head  = `data: {"id":"1","choices":[{"index":0,"delta":{"content":"`
		going = `"},"finish_reason":null}]}` + "\n\n"
		stop  = `"},"finish_reason":"stop"}]}` + "\n\n"
		text  = head + "word" + going
	)
	return map[string]string{
		"a reason":                  text + text + head + "last" + stop + "data: [DONE]\n\n",
		"text after the reason":     text + head + "last" + stop + text,
		"a reason in the text":      text + head + `\"finish_reason\":\"stop` + going + text,
		"an error":                  text + text + `data: {"error":{"message":"no","code":429}}` + "\n\n",
		"usage in a chunk":          text + head + `a"},"finish_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":4}}` + "\n\n" + text,
		"usage in the text":         text + head + `\"usage\":{\"prompt_tokens\":3}` + going,
		"a comment and CRLF":        text + ": c\n\n" + strings.ReplaceAll(text, "\n", "\r\n") + text,
		"another line of the event": text + strings.TrimSuffix(text, "\n") + "data: [DONE]\n\n",
		"without a blank line":      text + strings.TrimSuffix(text, "\n"),
		"cut in a chunk":            text + text[:len(text)-20],
		"control characters":        text + head + "a\rb" + going + head + "a\tb" + going,
		"other escapes":             text + head + `\u00e9\b` + going + text,
		"not UTF-8":                 text + head + "\xff\xfe" + going + text,
		"padding":                   strings.Repeat(head+`a"},"finish_reason":null}],"obfuscation":"xyz"}`+"\n\n"+head+`ab"},"finish_reason":null}],"obfuscation":"v"}`+"\n\n", 2) + "data: [DONE]\n\n",
	}
}

// Chunks that are skipped by their pattern count like chunks that are read: fed
// byte by byte, an observer reads them all.
func TestSkippedChunksCountLikeReadOnes(t *testing.T) {
	check := func(d llm.Dialect, name string, body []byte) {
		for _, cause := range []error{nil, stream.ErrReset, stream.ErrClient} {
			want := whatIsSeen(d, body, 1, cause)
			for cut := 2; cut <= len(body); cut++ {
				if cut > 64 && len(body) > 2000 && cut%97 != 0 {
					continue
				}
				if got := whatIsSeen(d, body, cut, cause); got != want {
					t.Fatalf("%s %s in pieces of %d, %v: got %+v, want %+v", d, name, cut, cause, got, want)
				}
			}
		}
	}
	for _, d := range clients {
		for name, body := range cases(t, "streams/"+d.String(), ".sse") {
			check(d, name, body)
		}
	}
	for name, body := range usualStreams() {
		check(llm.Chat, name, []byte(body))
	}
}

// The finish reason of a stream is known at its end, whether it passes or is translated.
func TestFinishReasonIsKnown(t *testing.T) {
	for d, tt := range map[llm.Dialect][3]string{
		llm.Chat: {`data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\ndata: [DONE]\n\n", "length", "length"},
		llm.Messages: {"event: message_start\n" + `data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":5,"output_tokens":1}}}` + "\n\nevent: message_delta\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":2}}` + "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", "max_tokens", "length"},
		llm.Gemini: {`data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"MAX_TOKENS"}]}` + "\n\n", "MAX_TOKENS", "length"},
		llm.Responses: {`data: {"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}` + "\n\n",
			"max_output_tokens", "length"},
	} {
		for _, size := range []int{1, 1 << 20} {
			if _, o := observe(d, []byte(tt[0]), size, nil); o.Finish() != tt[1] {
				t.Errorf("%s: got %q, want %q", d, o.Finish(), tt[1])
			}
		}
		to := llm.Stream(d, llm.Chat, ir.Options{})
		if d == llm.Chat {
			to = llm.Stream(d, llm.Messages, ir.Options{})
		}
		to.End(nil, to.Push([]byte(tt[0]), nil))
		if to.Finish() != tt[2] {
			t.Errorf("%s translated: got %q, want %q", d, to.Finish(), tt[2])
		}
	}
}

// The reason of a response is why it is incomplete, or that it is completed.
func TestFinishReasonOfResponses(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for response, want := range map[string]string{
		`{"status":"completed","incomplete_details":null,"output":[{"type":"message","status":"in_progress"}]}`: "completed",
		`{"status":"completed","output":[{"type":"message","text":"` + long + `"}]}`:                            "completed",
		`{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`:                  "content_filter",
		`{"status":"queued","output":[]}`:      "",
		`{"status":"in_progress","output":[]}`: "",
		`{"output":[]}`:                        "",
	} {
		if got := llm.FinishOf(llm.Responses, []byte(response)); got != want {
			t.Errorf("%.80s: got %q, want %q", response, got, want)
		}
		kind := gjson.Get(response, "status").Str
		_, o := observe(llm.Responses, []byte(`data: {"type":"response.`+kind+`","response":`+response+"}\n\n"), 1000, nil)
		if o.Finish() != want {
			t.Errorf("stream, %.80s: got %q, want %q", response, o.Finish(), want)
		}
	}
}

// An observer allocates nothing for an event.
func TestObservedEventsDoNotAllocate(t *testing.T) {
	for _, d := range clients {
		body := cases(t, "streams/"+d.String(), ".sse")["text"]
		events := bytes.SplitAfter(body, []byte("\n\n"))
		event := events[len(events)/2]
		o := llm.Observe(d)
		for range 3 {
			o.Sample(event)
		}
		if n := testing.AllocsPerRun(100, func() { o.Sample(event) }); n != 0 {
			t.Errorf("%s: %v allocations for %s", d, n, event)
		}
	}
}
