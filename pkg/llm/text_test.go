package llm_test

import (
	"strings"
	"testing"

	"weir/pkg/llm"
	"weir/pkg/wire/stream"
)

// The text of a stream is counted with thoughts and calls, whichever its form and the pieces
// that it comes in, whether it passes or is translated.
func TestTextOfAStream(t *testing.T) {
	chat := func(delta string) string {
		return `data: {"id":"c","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n"
	}
	block := func(kind, delta string) string {
		return "event: " + kind + "\n" + `data: {"type":"` + kind + `","index":0,` + delta + "}\n\n"
	}
	responses := func(kind, delta string) string {
		return "event: " + kind + "\n" + `data: {"type":"` + kind + `","sequence_number":7,"output_index":0,"item_id":"i","delta":"` + delta + `"}` + "\n\n"
	}
	long := strings.Repeat("0123456789", 10_000)
	for _, tt := range []struct {
		name       string
		d          llm.Dialect
		body       string
		want       int
		translated int // 0 is want, -1 is not tried
	}{
		{"text", llm.Chat, strings.Repeat(chat(`{"content":"four"}`), 9), 36, 0},
		{"escapes", llm.Chat, strings.Repeat(chat(`{"content":"a\"\n"}`), 2), 10, 0},
		{"thoughts", llm.Chat, strings.Repeat(chat(`{"reasoning_content":"four"}`), 3), 12, 0},
		{"thoughts twice", llm.Chat, chat(`{"role":"assistant","content":"","reasoning":"four","reasoning_details":[{"type":"reasoning.text","text":"four"}]}`), 4, 0},
		{"a list", llm.Chat, chat(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"four"}]},{"type":"text","text":"ab"}]}`), 6, 0},
		{"a refusal", llm.Chat, chat(`{"content":null,"refusal":"four"}`), 4, 0},
		{"a call", llm.Chat, chat(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"name","arguments":""}}]}`) +
			strings.Repeat(chat(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}`), 3), 4 + 3*6, 0},
		{"calls at once", llm.Chat, chat(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"name","arguments":"{}"}},{"index":1,"id":"c2","function":{"name":"name","arguments":"{}"}}]}`), 12, 0},
		{"spaces", llm.Chat, `data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "four"}}]}` + "\n\n", 4, 0},
		{"a long chunk", llm.Chat, chat(`{"content":"` + long + `"}`), len(long), 0},
		{"blocks", llm.Messages, block("content_block_start", `"content_block":{"type":"text","text":""}`) +
			strings.Repeat(block("content_block_delta", `"delta":{"type":"text_delta","text":"four"}`), 5), 20, 0},
		{"thinking", llm.Messages, block("content_block_start", `"content_block":{"type":"thinking","thinking":""}`) +
			strings.Repeat(block("content_block_delta", `"delta":{"type":"thinking_delta","thinking":"four"}`), 5), 20, 0},
		{"a call", llm.Messages, block("content_block_start", `"content_block":{"type":"tool_use","id":"t","name":"name","input":{}}`) +
			strings.Repeat(block("content_block_delta", `"delta":{"type":"input_json_delta","partial_json":"four"}`), 5), 24, 0},
		{"deltas", llm.Responses, responses("response.output_text.delta", "four") + responses("response.reasoning_summary_text.delta", "four") +
			responses("response.function_call_arguments.delta", "four"), 12, 0},
		{"sound", llm.Responses, responses("response.output_audio.delta", "AAAA") + responses("response.output_audio_transcript.delta", "four"), 4, -1},
		{"parts", llm.Gemini, `data: {"candidates": [{"content": {"parts": [{"text": "four","thought": true},{"text": "a \"text\":\"b\""},{"functionCall": {"name": "name","args": {"a":1}}}]}}]}` + "\n\n", 4 + 16 + 4 + 7, 4 + 16 + 4 + 9},
	} {
		for _, size := range []int{1, 50, 1 << 20} {
			_, o := observe(tt.d, []byte(tt.body), size, stream.ErrClient)
			// A long line has its end, too.
			if got := o.Text(); got < tt.want || got > tt.want+len(`"},"finish_reason":null}]}`) || len(tt.body) < 1<<16 && got != tt.want {
				t.Errorf("%v, %s, in pieces of %d: %d bytes of text, want %d", tt.d, tt.name, size, got, tt.want)
			}
		}
		want := tt.translated
		switch {
		case want < 0:
			continue
		case want == 0:
			want = tt.want
		}
		tr := llm.Stream(tt.d, llm.Completions, llm.Options{})
		tr.Push([]byte(tt.body), nil)
		if got := tr.Text(); got != want {
			t.Errorf("%v, %s, translated: %d bytes of text, want %d", tt.d, tt.name, got, want)
		}
	}
}

func TestRoughEstimateIsNearTheExactOne(t *testing.T) {
	text := strings.Repeat("A question of ten words is asked of this model. ", 1000)
	image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("iVBORw0KGgo", 50_000) + `"}}`
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"` + text + `"}]}`,
		`{"model":"m","messages":[{"role":"user","content":[` + image + `,{"type":"text","text":"` + text + `"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(`func main() { fmt.Println(\"hello, world\") }\n`, 500) + `"}]}`,
	} {
		exact, got := llm.Estimate([]byte(body)), llm.RoughEstimate([]byte(body))
		if got < exact*6/10 || got > exact*16/10 {
			t.Errorf("%.80s: %d tokens, by the exact estimate %d", body, got, exact)
		}
	}
	for _, body := range []string{``, `"`, `"\`, `"\"`, `"a\\"`, `{"a":"b`} {
		if got := llm.RoughEstimate([]byte(body)); got != 0 {
			t.Errorf("%q: %d", body, got)
		}
	}
}
