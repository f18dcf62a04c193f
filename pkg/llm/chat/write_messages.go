package chat

import (
	"hash/fnv"

	"weir/pkg/llm/ir"
)

func writeMessages(q *ir.Request, d *ir.Writer, opt *ir.Options, v *ir.Deviations) {
	d.Open("messages", '[')
	for _, m := range q.WriteSystem(d) {
		q.DropCaches(m.Blocks)
		switch m.Role {
		case ir.RoleAssistant:
			writeAssistant(q, d, m.Blocks, opt, v)
		case ir.RoleSystem:
			d.Open("", '{')
			d.Str("role", "system")
			d.Str("content", ir.JoinTexts(m.Blocks, "\n\n"))
			d.Close('}')
		default:
			writeUser(q, d, m.Blocks, v)
		}
	}
	d.Close(']')
}

// writeUser writes tool results as separate messages, and the other blocks as a
// user message. Images in results move to it, because a tool message has text
// only.
func writeUser(q *ir.Request, d *ir.Writer, blocks []ir.Block, v *ir.Deviations) {
	rest := q.NonResults(blocks)
	for i := range blocks {
		b := &blocks[i]
		if b.Kind != ir.ToolResultBlock {
			continue
		}
		d.Open("", '{')
		d.Str("role", "tool")
		d.Str("tool_call_id", toolID(v, ir.ShortCallID(b.ID, maxID)))
		d.Str("content", ir.ResultText(b))
		d.Close('}')
	}
	if len(rest) == 0 && len(blocks) > 0 {
		return
	}
	d.Open("", '{')
	d.Str("role", "user")
	ir.WriteChatParts(q, d, rest)
	d.Close('}')
}

func writeAssistant(q *ir.Request, d *ir.Writer, blocks []ir.Block, opt *ir.Options, v *ir.Deviations) {
	d.Open("", '{')
	d.Str("role", "assistant")
	calls, refused := 0, ir.Joiner{}
	thoughts := ir.Filter(blocks, func(b *ir.Block) bool { return b.Kind == ir.ThinkingBlock })
	for i := range blocks {
		switch b := &blocks[i]; b.Kind {
		case ir.ToolCallBlock:
			calls++
		case ir.RefusalBlock:
			refused.Add("", b.Text)
		}
	}
	text := ir.JoinTexts(blocks, "")
	if text == "" && (calls > 0 || refused.First != "") {
		d.Null("content")
	} else {
		d.Str("content", text)
	}
	d.OptStr("refusal", refused.Text())
	writeThoughts(q, d, thoughts, opt, v)
	if calls > 0 {
		d.Open("tool_calls", '[')
		for i := range blocks {
			b := &blocks[i]
			if b.Kind != ir.ToolCallBlock {
				continue
			}
			ir.WriteChatCall(d, b, toolID(v, ir.ShortCallID(b.ID, maxID)),
				v.Extra && (b.Issuer == opt.IssuerOr(ir.IssuerChat) || b.Issuer == ir.IssuerGemini))
		}
		d.Close(']')
	}
	d.Close('}')
}

// maxID is OpenAI's limit for the id of a call, in bytes.
const maxID = 40

// toolID returns an id of the length that the upstream requires. It is the same
// for the same id, so that a call matches its result.
func toolID(v *ir.Deviations, id string) string {
	if v.ToolID == 0 {
		return id
	}
	fits := len(id) == v.ToolID
	for i := 0; fits && i < len(id); i++ {
		fits = ir.IsLetter(id[i]) || id[i] >= '0' && id[i] <= '9'
	}
	if fits {
		return id
	}
	const set = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	sum := fnv.New64a()
	sum.Write([]byte(id))
	h := sum.Sum64()
	b := make([]byte, v.ToolID)
	for i := range b {
		b[i] = set[h%62]
		h /= 62
	}
	return string(b)
}
