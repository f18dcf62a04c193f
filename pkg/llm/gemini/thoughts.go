package gemini

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// DropThoughts removes the thoughts of a conversation and its signatures. The first
// call of each turn of the model gets the value that stands for a missing one.
func DropThoughts(p *ir.Patch) {
	p.Each("contents", func(turn gjson.Result) (string, bool) {
		parts := turn.Get("parts")
		if ir.Str(turn.Get("role")) != "model" || !parts.IsArray() {
			return turn.Raw, true
		}
		d := ir.Writer{Buf: make([]byte, 0, len(parts.Raw)+64)}
		calls := 0
		d.Open("", '[')
		ir.Each(parts, func(_, part gjson.Result) bool {
			if part.Get("thought").Type == gjson.True {
				p.Note("contents.parts.thought")
				return true
			}
			raw := ir.MapMembers(part, func(name string, x gjson.Result) (string, bool) {
				if name == "thoughtSignature" || name == "thought_signature" {
					p.Note("contents.parts.thoughtSignature")
					return "", false
				}
				return x.Raw, true
			})
			if part.Get("functionCall").Exists() || part.Get("function_call").Exists() {
				if calls++; calls == 1 {
					raw = raw[:len(raw)-1] + `,"thoughtSignature":"` + unsignedCall + `"}`
				}
			}
			d.Raw("", raw)
			return true
		})
		d.Close(']')
		if len(d.Buf) == len("[]") {
			return "", false
		}
		return ir.SetMember(turn, "parts", string(d.Buf)), true
	})
}
