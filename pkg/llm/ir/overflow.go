package ir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/vendortext"
)

// CodeContextLength is the code of a request that is too long for the model.
const CodeContextLength = "context_length_exceeded"

// MarkOverflow sets the code of a failure within a stream that means, by the
// published table, that the request is too long for the model.
func MarkOverflow(e *apierr.Error) {
	if e != nil && vendortext.Find(e.Status, e.Code, e.Message) == vendortext.ContextLength {
		e.Code, e.VendorCode = CodeContextLength, ""
	}
}

// claudeOverflows are the texts on which Claude Code compacts a conversation, and
// the one on which it lowers max_tokens (docs/reference/clients.md, 12).
var claudeOverflows = [...]string{"prompt is too long", "input is too long for requested model", "exceed context limit",
	"capability_rejected: prompt_too_long"}

// MessagesText returns the message of a failure for a client of the Messages
// dialect, which recognizes a context overflow by its text alone. If the conversation
// would fit with a smaller max_tokens, the message says so, because Claude Code would
// compact the conversation without end.
func MessagesText(e *apierr.Error) string {
	if e.Code != CodeContextLength || ClaudeCompacts(e.Message) {
		return e.Message
	}
	if input, output, limit, ok := reservedOutput(e.Message); ok {
		return fmt.Sprintf("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again", input, output, limit)
	}
	return "prompt is too long: " + e.Message
}

// ClaudeCompacts reports whether Claude Code recognizes a message as a context
// overflow.
func ClaudeCompacts(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc(claudeOverflows[:], func(text string) bool { return strings.Contains(message, text) })
}

// OpenAIText returns the message of a failure for a client of OpenAI's dialects.
// Most recognize a context overflow by its code; the others by these texts
// (docs/reference/clients.md, 12).
func OpenAIText(e *apierr.Error) string {
	if e.Code != CodeContextLength || strings.Contains(e.Message, "maximum context length is") {
		return e.Message
	}
	return "This model's maximum context length is exceeded, the prompt is too long: " + e.Message
}

// GeminiText returns the message of a failure for a client of the Gemini dialect,
// in the form of Google's own.
func GeminiText(e *apierr.Error) string {
	if e.Code != CodeContextLength || strings.HasPrefix(e.Message, "The input token count") {
		return e.Message
	}
	return "The input token count exceeds the maximum number of tokens allowed: " + e.Message
}

// OpenAICompacts reports whether an error of OpenAI's own has the code of a context overflow.
func OpenAICompacts(body []byte) bool {
	return gjson.GetBytes(body, "error.code").Str == CodeContextLength
}
