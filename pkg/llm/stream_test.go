package llm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"weir/pkg/llm"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/sse"
	"weir/pkg/wire/stream"
)

const begun = `data: {"id":"1","model":"up","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}` + "\n\n"

func TestFailedStreamEndsWithError(t *testing.T) {
	causes := []struct {
		cause  error
		status int
	}{
		{nil, 502}, {stream.ErrReset, 502}, {stream.ErrIdle, 504}, {stream.ErrTimeout, 504}, {stream.ErrTooLarge, 502},
	}
	for _, c := range causes {
		for _, to := range clients {
			for _, input := range []string{begun, "", begun + `data: {"choi`} {
				s := llm.Stream(llm.Chat, to, options())
				out := s.Push([]byte(input), nil)
				out = s.End(c.cause, out)
				grammar(t, to, out, false)
				if s.Complete() || s.Failure() == nil || s.Failure().Status != c.status {
					t.Errorf("%v to %v: %+v", c.cause, to, s.Failure())
				}
				if again := s.End(nil, nil); len(again) != 0 {
					t.Errorf("a second end wrote %s", again)
				}
			}
		}
	}
}

// The bytes of a chunk are overwritten after it: what a translator stores of one
// chunk and writes or reports later is a copy.
func TestTranslationIsIndependentOfChunks(t *testing.T) {
	for _, from := range upstreams {
		for name, body := range cases(t, "streams/"+from.String(), ".sse") {
			for _, to := range clients {
				want, whole := run(from, to, body)
				for _, size := range []int{1, 17, 150} {
					var pieces [][]byte
					for rest := body; len(rest) > 0; {
						n := min(size, len(rest))
						pieces = append(pieces, rest[:n])
						rest = rest[n:]
					}
					got, s := run(from, to, pieces...)
					got = bytes.ReplaceAll(got, []byte(": keep-alive\n\n"), nil)
					if !bytes.Equal(got, bytes.ReplaceAll(want, []byte(": keep-alive\n\n"), nil)) {
						t.Errorf("%v %s to %v in pieces of %d:\n%s\nwant\n%s", from, name, to, size, got, want)
					}
					if fmt.Sprint(s.Failure()) != fmt.Sprint(whole.Failure()) {
						t.Errorf("%v %s to %v in pieces of %d: %v, want %v", from, name, to, size, s.Failure(), whole.Failure())
					}
				}
			}
		}
	}
}

func TestClosedClientGetsNoError(t *testing.T) {
	s := llm.Stream(llm.Chat, llm.Messages, options())
	s.Push([]byte(begun), nil)
	if out := s.End(stream.ErrClient, nil); len(out) != 0 || s.Complete() {
		t.Errorf("got %s, complete %v", out, s.Complete())
	}
}

func TestStreamOverLimitEndsWithError(t *testing.T) {
	line := append([]byte("data: "), bytes.Repeat([]byte{'a'}, sse.MaxLine+1)...)
	for _, to := range clients {
		out, s := run(llm.Chat, to, []byte(begun), line, []byte("\n\n"), []byte("data: [DONE]\n\n"))
		grammar(t, to, out, false)
		if s.Failure() == nil || s.Failure().Code != "bad_upstream_stream" {
			t.Errorf("%v: %+v", to, s.Failure())
		}
	}
}

func TestLongLineIsTranslated(t *testing.T) {
	for _, n := range []int{64<<10 + 1, 1<<20 + 1} {
		text := strings.Repeat("é", n/2)
		chunk := fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":%q},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", text)
		for _, to := range clients {
			out, s := run(llm.Chat, to, []byte(chunk)[:n/3], []byte(chunk)[n/3:])
			if !s.Complete() || !bytes.Contains(out, []byte(text)) {
				t.Errorf("%v: %d bytes, %+v", to, len(out), s.Failure())
			}
		}
	}
}

func TestWaitingBlocksAreBounded(t *testing.T) {
	piece := strings.Repeat("a", 1<<20)
	start := `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"f","arguments":"{\"a\":\""}}]}}]}` + "\n\n"
	more := `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"%s"}}]}}]}` + "\n\n"
	pieces := [][]byte{[]byte(fmt.Sprintf(start, 0, 0)), []byte(fmt.Sprintf(start, 1, 1))}
	for range 10 {
		pieces = append(pieces, []byte(fmt.Sprintf(more, piece)))
	}
	for _, to := range []llm.Dialect{llm.Messages, llm.Responses} {
		out, s := run(llm.Chat, to, pieces...)
		grammar(t, to, out, false)
		if s.Failure() == nil || s.Failure().Code != "upstream_too_large" {
			t.Errorf("%v: %+v", to, s.Failure())
		}
	}
}

func TestKeepAlivesPass(t *testing.T) {
	for _, tt := range []struct {
		from llm.Dialect
		in   string
		want string
	}{
		{llm.Chat, ": OPENROUTER PROCESSING\n\n", ": keep-alive\n\n"},
		{llm.Messages, "event: ping\ndata: {\"type\":\"ping\"}\n\n", ": keep-alive\n\n"},
		{llm.Chat, "data: {\"choi", ""},
	} {
		s := llm.Stream(tt.from, llm.Chat, options())
		if got := s.Push([]byte(tt.in), nil); string(got) != tt.want {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestChatStreamOmitsUsageUnlessRequested(t *testing.T) {
	opt := options()
	opt.StreamUsage = false
	s := llm.Stream(llm.Messages, llm.Chat, opt)
	out := s.Push(cases(t, "streams/messages", ".sse")["text"], nil)
	if bytes.Contains(out, []byte(`"usage"`)) || !s.Usage().Known || s.Usage().Input != 20 {
		t.Errorf("usage %+v in\n%s", s.Usage(), out)
	}
}

// @google/generative-ai, which LangChain uses, reads nothing behind a comment.
func TestGeminiStreamsHaveNoComments(t *testing.T) {
	for _, from := range upstreams {
		for name, body := range cases(t, "streams/"+from.String(), ".sse") {
			pieces := bytes.SplitAfter(append([]byte(": a comment\n\n"), body...), []byte("\n\n"))
			out, _ := run(from, llm.Gemini, pieces...)
			for _, p := range bytes.SplitAfter(out, []byte("\n\n")) {
				if len(p) > 0 && !bytes.HasPrefix(p, []byte("data: {")) && bareError(out) == nil {
					t.Errorf("%v/%s: %q", from, name, p)
				}
			}
		}
	}
}

// The first event of most streams is not parsed for a failure.
func TestUsualFirstEventDoesNotAllocate(t *testing.T) {
	for _, d := range clients {
		list := in(d)
		var in sse.Reader
		var ev sse.Event
		for in.Push(list[0]); !in.Next(&ev); in.Push(list[0]) {
			list = list[1:] // a comment
		}
		if n := testing.AllocsPerRun(100, func() {
			if e := llm.FirstFailure(d, ev.Name, ev.Data); e != nil {
				t.Error(e)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations for %s", d, n, ev.Data)
		}
	}
}

func TestFirstFailure(t *testing.T) {
	tests := []struct {
		from       llm.Dialect
		name, data string
		status     int
	}{
		{llm.Chat, "", `{"error":{"message":"x","type":"rate_limit_error"}}`, 429},
		{llm.Chat, "", `{"error":{"message":"x","code":529}}`, 529},
		{llm.Chat, "", `{"error":"busy"}`, 500},
		{llm.Chat, "", `{"choices":[]}`, 0},
		{llm.Chat, "", `{"choi`, 502},
		{llm.Chat, "", `[DONE]`, 502},
		{llm.Messages, "error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, 529},
		{llm.Messages, "message_start", `{"type":"message_start","message":{}}`, 0},
		{llm.Responses, "error", `{"type":"error","code":"rate_limit_exceeded","message":"x"}`, 429},
		{llm.Responses, "error", `{"type":"error","error":{"type":"invalid_request_error","message":"x"}}`, 400},
		{llm.Responses, "response.failed", `{"type":"response.failed","response":{"error":{"code":"server_error","message":"x"}}}`, 500},
		{llm.Responses, "response.created", `{"type":"response.created","response":{"error":null}}`, 0},
		{llm.Gemini, "", `[{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}]`, 429},
		{llm.Cohere, "", `{"message":"invalid request"}`, 500},
	}
	for _, tt := range tests {
		e := llm.FirstFailure(tt.from, []byte(tt.name), []byte(tt.data))
		if got := statusOf(e); got != tt.status {
			t.Errorf("%v %s: got %d, want %d", tt.from, tt.data, got, tt.status)
		}
	}
}

func statusOf(e *apierr.Error) int {
	if e == nil {
		return 0
	}
	return e.Status
}

// observe reads a stream in parts and returns the client's stream.
func observe(d llm.Dialect, body []byte, size int, cause error) ([]byte, *llm.Observer) {
	o := llm.Observe(d)
	for rest := body; len(rest) > 0; {
		n := min(size, len(rest))
		lent := bytes.Clone(rest[:n])
		o.Sample(lent)
		for i := range lent {
			lent[i] = '!'
		}
		rest = rest[n:]
	}
	return append(bytes.Clone(body), o.End(cause)...), o
}

func TestObserverAgreesWithTranslator(t *testing.T) {
	for _, d := range clients {
		for name, body := range cases(t, "streams/"+d.String(), ".sse") {
			if name == "bad_json" {
				continue // passes unchanged; the client notices
			}
			_, s := run(d, llm.Chat, body)
			for _, size := range []int{1, 7, 64, len(body)} {
				for _, crlf := range []bool{false, true} {
					b := body
					if crlf {
						b = bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n"))
					}
					seen, o := observe(d, b, size, nil)
					if o.Complete() != s.Complete() || o.Usage() != s.Usage() || statusOf(o.Failure()) != statusOf(s.Failure()) {
						t.Errorf("%v/%s in %d: complete %v, usage %+v, failure %v; want %v, %+v, %v",
							d, name, size, o.Complete(), o.Usage(), o.Failure(), s.Complete(), s.Usage(), s.Failure())
					}
					if d == llm.Chat && !bytes.HasSuffix(bytes.TrimRight(seen, "\r\n"), []byte("data: [DONE]")) && name != "more_after_done" {
						t.Errorf("%v/%s: the client's stream ends with %q", d, name, seen[max(0, len(seen)-80):])
					}
				}
			}
		}
	}
}

func TestErrorOfCutStreamBeginsOnNewLine(t *testing.T) {
	for _, d := range clients {
		body := cases(t, "streams/"+d.String(), ".sse")["text"]
		for cut := range len(body) - 30 {
			seen, o := observe(d, body[:cut], 64, stream.ErrReset)
			if o.Complete() || o.Failure() == nil {
				t.Fatalf("%v cut at %d: complete", d, cut)
			}
			var r sse.Reader
			var ev sse.Event
			found := d == llm.Gemini && bytes.Contains(bareError(seen), []byte("was lost"))
			r.Push(seen)
			for r.Next(&ev) {
				found = found || bytes.Contains(ev.Data, []byte("was lost"))
			}
			if !found {
				t.Fatalf("%v cut at %d: no error event in the end of %q", d, cut, seen[max(0, len(seen)-200):])
			}
		}
	}
}

// A stream cut within its last event was taken for complete: the client got
// neither the whole event nor an error.
func TestCutStreamHasOneEnd(t *testing.T) {
	for _, d := range clients {
		for name, body := range cases(t, "streams/"+d.String(), ".sse") {
			if name != "text" && name != "tools" {
				continue
			}
			for _, ends := range []string{"\n", "\r\n", "\r"} {
				body := bytes.ReplaceAll(body, []byte("\n"), []byte(ends))
				for cut := max(0, len(body)-1500); cut <= len(body); cut++ {
					for _, cause := range []error{nil, stream.ErrReset} {
						seen, o := observe(d, body[:cut], 50, cause)
						good, bad := endsOf(d, seen)
						if good+bad != 1 || o.Complete() != (good == 1) {
							t.Fatalf("%v %s cut at %d of %d (%q, %v): %d good ends, %d bad, complete %v: %q",
								d, name, cut, len(body), ends, cause, good, bad, o.Complete(), seen[max(0, len(seen)-200):])
						}
					}
				}
			}
		}
	}
}

// bareError returns the object that ends a failed stream of the Gemini dialect, a
// line of its own after a blank one.
func bareError(seen []byte) []byte {
	last := seen[bytes.LastIndexAny(bytes.TrimRight(seen, "\n"), "\r\n")+1:]
	if before := seen[:len(seen)-len(last)]; !json.Valid(last) || len(before) > 0 && !bytes.HasSuffix(before, []byte("\n\n")) && !bytes.HasSuffix(before, []byte("\r\n\r\n")) && !bytes.HasSuffix(before, []byte("\r")) {
		return nil
	}
	return last
}

// endsOf counts the terminators that a strict client sees: events that a blank
// line completes.
func endsOf(d llm.Dialect, seen []byte) (good, bad int) {
	var r sse.Reader
	var ev sse.Event
	r.Push(seen)
	for r.Next(&ev) {
		if string(ev.Data) == "[DONE]" {
			if d == llm.Chat {
				good++
			}
			continue
		}
		if !json.Valid(ev.Data) {
			continue
		}
		var e struct {
			Type  string
			Error any
		}
		json.Unmarshal(ev.Data, &e)
		switch {
		case d == llm.Gemini && bytes.Contains(ev.Data, []byte(`"finishReason"`)):
			good++
		case d == llm.Chat && e.Error != nil:
			bad, good = bad+1, good-1 // [DONE] follows
		case e.Type == "message_stop", e.Type == "response.completed":
			good++
		case e.Type == "error":
			bad++
		}
	}
	if d == llm.Gemini && bareError(seen) != nil {
		bad++
	}
	return good, bad
}

func TestResetAfterTerminatorIsNotAFailure(t *testing.T) {
	for _, d := range clients {
		body := cases(t, "streams/"+d.String(), ".sse")["text"]
		if seen, o := observe(d, body, 50, stream.ErrReset); !o.Complete() || !bytes.Equal(seen, body) {
			t.Errorf("%v: complete %v, %v", d, o.Complete(), o.Failure())
		}
	}
}

func TestUsageOfLongLineIsRead(t *testing.T) {
	usage := `"usage":{"input_tokens":20,"input_tokens_details":{"cached_tokens":5},"output_tokens":10,"output_tokens_details":{"reasoning_tokens":4}}`
	want := llm.Usage{Input: 20, Output: 10, CacheRead: 5, Reasoning: 4, Known: true}
	for _, pad := range []int{1 << 10, 64 << 10, 64<<10 + 7, 200_000, 3 << 20} {
		text := strings.Repeat("x", pad)
		for _, line := range []string{
			`{"type":"response.completed","response":{"output":["` + text + `"],` + usage + `,"metadata":{}}}`,
			`{"type":"response.completed","response":{` + usage + `,"output":["` + text + `"]}}`,
			`{"type":"response.completed","response":{"tools":[{"usage":{"type":"x"}}],` + usage + `,"instructions":"` + text + `"}}`,
		} {
			if !json.Valid([]byte(line)) {
				t.Fatal(line[:100])
			}
			_, o := observe(llm.Responses, []byte("event: response.completed\ndata: "+line+"\n\n"), 40_000, nil)
			if o.Usage() != want || !o.Complete() {
				t.Errorf("%d bytes: %+v, complete %v", pad, o.Usage(), o.Complete())
			}
		}
	}
}

func TestObserverMemoryIsBounded(t *testing.T) {
	o := llm.Observe(llm.Chat)
	piece := bytes.Repeat([]byte("a"), 64<<10)
	o.Sample(piece)
	o.Sample(piece)
	if n := testing.AllocsPerRun(200, func() { o.Sample(piece) }); n != 0 {
		t.Errorf("%v allocations per piece of an endless line", n)
	}
}

func TestTerminatorMayBeSurroundedBySpaces(t *testing.T) {
	stop := `data: {"id":"1","model":"up","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	for _, end := range []string{"data:  [DONE]\n\n", "data:[DONE] \n\n", "data:  [DONE]"} {
		for _, to := range clients {
			s := llm.Stream(llm.Chat, to, options())
			out := s.Push([]byte(begun+stop+end), nil)
			grammar(t, to, s.End(nil, out), true)
			if !s.Complete() || s.Failure() != nil {
				t.Errorf("%q to %v: %+v", end, to, s.Failure())
			}
		}
	}
}
