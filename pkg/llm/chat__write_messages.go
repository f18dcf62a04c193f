package llm

func writeChatMessages(q *request, d *doc, opt *Options, v *Deviations) {
	d.open("messages", '[')
	lead := q.lead()
	if text := q.systemText(lead); text != "" {
		d.open("", '{')
		d.str("role", "system")
		d.str("content", text)
		d.close('}')
	}
	for i := range q.messages[:lead] {
		q.dropCaches(q.messages[i].blocks)
	}
	for _, m := range q.messages[lead:] {
		q.dropCaches(m.blocks)
		switch m.role {
		case assistant:
			writeChatAssistant(q, d, m.blocks, opt, v)
		case system:
			d.open("", '{')
			d.str("role", "system")
			d.str("content", joinTexts(m.blocks, "\n\n"))
			d.close('}')
		default:
			writeChatUser(q, d, m.blocks, v)
		}
	}
	d.close(']')
}

// writeChatUser writes the results of tools as messages of their own, and the
// rest as a user message. Pictures in results move to it: a tool message has
// text only.
func writeChatUser(q *request, d *doc, blocks []block, v *Deviations) {
	rest := q.others(blocks)
	for i := range blocks {
		b := &blocks[i]
		if b.kind != toolResultBlock {
			continue
		}
		d.open("", '{')
		d.str("role", "tool")
		d.str("tool_call_id", toolID(v, b.id))
		d.str("content", resultText(b))
		d.close('}')
	}
	if len(rest) == 0 && len(blocks) > 0 {
		return
	}
	d.open("", '{')
	d.str("role", "user")
	writeChatParts(q, d, rest)
	d.close('}')
}

func writeChatAssistant(q *request, d *doc, blocks []block, opt *Options, v *Deviations) {
	d.open("", '{')
	d.str("role", "assistant")
	calls, refused := 0, joined{}
	thoughts := pick(blocks, func(b *block) bool { return b.kind == thinkingBlock })
	for i := range blocks {
		switch b := &blocks[i]; b.kind {
		case toolUseBlock:
			calls++
		case refusalBlock:
			refused.add("", b.text)
		}
	}
	text := joinTexts(blocks, "")
	if text == "" && (calls > 0 || refused.one != "") {
		d.null("content")
	} else {
		d.str("content", text)
	}
	d.opt("refusal", refused.text())
	writeChatThoughts(q, d, thoughts, opt, v)
	if calls > 0 {
		d.open("tool_calls", '[')
		for i := range blocks {
			b := &blocks[i]
			if b.kind != toolUseBlock {
				continue
			}
			writeChatCall(d, b, toolID(v, b.id), v.Extra && (b.issuer == opt.issuer(issuerChat) || b.issuer == issuerGemini))
		}
		d.close(']')
	}
	d.close('}')
}

// toolID makes an id of the length that the upstream wants: the same for the
// same id, so that a call and its result stay together.
func toolID(v *Deviations, id string) string {
	if v.ToolID == 0 {
		return id
	}
	fits := len(id) == v.ToolID
	for i := 0; fits && i < len(id); i++ {
		fits = letter(id[i]) || id[i] >= '0' && id[i] <= '9'
	}
	if fits {
		return id
	}
	const set = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	h := uint64(14695981039346656037) // FNV-1a
	for i := 0; i < len(id); i++ {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	b := make([]byte, v.ToolID)
	for i := range b {
		b[i] = set[h%62]
		h /= 62
	}
	return string(b)
}
