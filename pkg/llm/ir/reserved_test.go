package ir

import (
	"fmt"
	"testing"

	"weir/pkg/wire/apierr"
)

// Claude Code lowers max_tokens on one text and compacts the conversation on others.
func TestClaudeIsToldToReserveLess(t *testing.T) {
	const less = "input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again"
	for _, tt := range []struct{ message, want string }{
		{"This model's maximum context length is 32768 tokens. However, you requested 40000 tokens (8000 in the messages, 32000 in the completion). Please reduce the length of the messages or completion.", fmt.Sprintf(less, 8000, 32000, 32768)},
		{"This endpoint's maximum context length is 131072 tokens. However, you requested about 138956 tokens (7884 of text input, 131072 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.", fmt.Sprintf(less, 7884, 131072, 131072)},
		{"This model's maximum context length is 2048 tokens. However, your request has 8 input tokens plus 2045 'max_tokens'. Please reduce one or the other. (parameter=input_tokens, max_tokens, value=(8, 2045))", fmt.Sprintf(less, 8, 2045, 2048)},
		{"'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 8000 input tokens (32000 > 32768 - 8000).", fmt.Sprintf(less, 8000, 32000, 32768)},
		{"This model's maximum context length is 131072 tokens. However, you requested 611051 tokens (603051 in the messages, 8000 in the completion).", ""},
		{"This model's maximum context length is 16385 tokens. However, your messages resulted in 29429 tokens (28993 in the messages, 436 in the functions).", ""},
		{"This endpoint's maximum context length is 16384 tokens. However, you requested about 94307 tokens (94307 of text input).", ""},
		{"maximum context length is 99999999999999999999 tokens (1 in the messages, 2 in the completion)", ""},
		{"maximum context length is 9 tokens (1 in the messages, 2 in the completion)", ""},
		{"maximum context length is tokens ( in the messages,  in the completion)", ""},
	} {
		want := tt.want
		if want == "" {
			want = "prompt is too long: " + tt.message
		}
		got := MessagesText(&apierr.Error{Status: 400, Code: CodeContextLength, Message: tt.message})
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.message, got, want)
		}
		if !ClaudeCompacts(got) {
			t.Errorf("Claude Code does not recognize %q", got)
		}
	}
}

func FuzzReservedOutput(f *testing.F) {
	f.Add("maximum context length is 32768 tokens. However, you requested 40000 tokens (8000 in the messages, 32000 in the completion)")
	f.Add("'max_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 8000 input tokens")
	f.Fuzz(func(t *testing.T, message string) {
		input, output, limit, ok := reservedOutput(message)
		if ok && (input < 0 || input >= limit || input+output <= limit) {
			t.Errorf("%q: %d + %d > %d", message, input, output, limit)
		}
	})
}
