package messages

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// DropThoughts removes all thinking from a conversation.
func DropThoughts(p *ir.Patch) {
	p.Each("messages", func(m gjson.Result) (string, bool) {
		content := m.Get("content")
		if !content.IsArray() || !strings.Contains(content.Raw, "thinking") {
			return m.Raw, true
		}
		had := false
		d := ir.Writer{Buf: make([]byte, 0, len(content.Raw))}
		d.Open("", '[')
		ir.Each(content, func(_, b gjson.Result) bool {
			switch ir.Str(b.Get("type")) {
			case "thinking", "redacted_thinking":
				had = true
				p.Note("messages.thinking")
			default:
				d.Raw("", b.Raw)
			}
			return true
		})
		d.Close(']')
		if !had {
			return m.Raw, true
		}
		if len(d.Buf) == len("[]") {
			return "", false
		}
		return ir.SetMember(m, "content", string(d.Buf)), true
	})
	budgetThinking(p)
}
