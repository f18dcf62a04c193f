package chat

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// unsigned is extra_content of a tool call without a signature of its own. Source:
// ai.google.dev, "Thought signatures".
const unsigned = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`

// DropThoughts removes signed thoughts from the messages of the assistant, and the
// signatures of its tool calls.
func DropThoughts(p *ir.Patch) {
	p.Each("messages", func(m gjson.Result) (string, bool) {
		if !m.IsObject() || m.Get("role").Str != "assistant" {
			return m.Raw, true
		}
		return ir.MapMembers(m, func(name string, x gjson.Result) (string, bool) {
			switch {
			case name == "reasoning_details":
				p.Note(name)
				return "", false
			case name == "tool_calls" && x.IsArray():
				return unsignedCalls(p, x), true
			}
			return x.Raw, true
		}), true
	})
}

func unsignedCalls(p *ir.Patch, list gjson.Result) string {
	d := ir.Writer{}
	d.Open("", '[')
	ir.Each(list, func(_, c gjson.Result) bool {
		raw := c.Raw
		if c.Get("extra_content.google.thought_signature").Exists() {
			p.Note("tool_calls.extra_content")
			raw = ir.SetMember(c, "extra_content", unsigned)
		}
		d.Raw("", raw)
		return true
	})
	d.Close(']')
	return string(d.Buf)
}
