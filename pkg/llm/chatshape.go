package llm

import (
	"weir/pkg/llm/chat"
	"weir/pkg/llm/ir"
)

// FlatTools reports whether the raw tools of a chat request are in the form of
// another dialect.
func FlatTools(tools []byte) bool { return chat.FlatTools(tools) }

// ToChat turns a request that came to the chat endpoint in the form of another
// dialect into one of chat: a Responses request if it has no messages, else a
// Messages request, or one whose tools alone are flat. dropped names what chat does
// not have.
func ToChat(body []byte, messages bool, model string) (out []byte, dropped []string, err error) {
	if messages && !chat.HasBlocks(body) {
		out, err = chat.NestTools(body)
		return out, nil, err
	}
	from := Responses
	if messages {
		from = Messages
	}
	return Request(from, Chat, body, ir.Options{Model: model})
}
