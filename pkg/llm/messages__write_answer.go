package llm

import "strings"

// writeMessagesAnswer writes a Message.
func writeMessagesAnswer(a *answer, d *doc, opt *Options) {
	d.open("", '{')
	d.str("id", opt.made("msg_", strings.TrimPrefix(a.id, "msg_")))
	d.str("type", "message")
	d.str("role", "assistant")
	d.str("model", opt.shown(a.model))
	d.open("content", '[')
	for i := range a.blocks {
		switch b := &a.blocks[i]; b.kind {
		case textBlock, refusalBlock:
			if b.text == "" {
				continue
			}
			d.open("", '{')
			d.str("type", "text")
			d.str("text", b.text)
			if len(b.cites) > 0 {
				d.open("citations", '[')
				for _, c := range b.cites {
					writeMessagesCite(d, c)
				}
				d.close(']')
			}
			d.close('}')
		case thinkingBlock:
			d.open("", '{')
			if b.redacted {
				d.str("type", "redacted_thinking")
				d.str("data", wrapMessages(b.issuerOr(), b.sig))
			} else {
				d.str("type", "thinking")
				d.str("thinking", b.text)
				d.str("signature", wrapMessages(b.issuerOr(), b.sig))
			}
			d.close('}')
		case imageBlock:
			if opt.Lost != nil {
				opt.Lost("content.image")
			}
		case toolUseBlock:
			if b.sig != "" {
				// The block has no place for a signature: a thought before it has.
				d.open("", '{')
				d.str("type", "thinking")
				d.str("thinking", "")
				d.str("signature", wrapMessages(b.issuer, b.sig))
				d.close('}')
			}
			args, ok := object(b.args)
			if !ok {
				args = `{"_raw":` + quoted(b.args) + `}`
			}
			d.open("", '{')
			d.str("type", "tool_use")
			d.str("id", messagesID(b.id))
			d.str("name", b.name)
			d.raw("input", args)
			d.close('}')
		}
	}
	d.close(']')
	f := a.reason()
	d.str("stop_reason", stopReason(f))
	if f == finishSequence && a.stopSeq != "" {
		d.str("stop_sequence", a.stopSeq)
	} else {
		d.null("stop_sequence")
	}
	writeStopDetails(d, f, a.explain)
	d.key("usage")
	writeMessagesUsage(d, &a.usage)
	d.close('}')
}

func stopReason(f finish) string {
	switch f {
	case finishLength:
		return "max_tokens"
	case finishSequence:
		return "stop_sequence"
	case finishTools:
		return "tool_use"
	case finishFilter:
		return "refusal"
	case finishPause:
		return "pause_turn"
	case finishWindow:
		return "model_context_window_exceeded"
	}
	return "end_turn"
}

// wrapMessages is wrap for a field of the Messages dialect, where a bare
// signature is Anthropic's own.
func wrapMessages(issuer, sig string) string {
	if issuer == issuerAnthropic {
		return sig
	}
	return wrap(issuer, sig)
}

func writeStopDetails(d *doc, f finish, explain string) {
	if f == finishFilter && explain != "" {
		d.open("stop_details", '{')
		d.str("type", "refusal")
		d.null("category")
		d.str("explanation", explain)
		d.close('}')
		return
	}
	d.null("stop_details")
}

func writeMessagesCite(d *doc, c citation) {
	d.open("", '{')
	d.str("type", "web_search_result_location")
	d.str("url", c.url)
	d.str("title", c.title)
	// The vendor's clients require both fields. The mark removes the citation on
	// its way to Claude, which accepts only citations of its own.
	d.str("cited_text", c.quote)
	d.str("encrypted_index", wrap(issuerChat, ""))
	d.close('}')
}

func writeMessagesUsage(d *doc, u *Usage) {
	d.b = append(d.b, '{')
	d.int("input_tokens", max(0, u.Input-u.CacheRead-u.CacheWrite))
	d.int("cache_creation_input_tokens", u.CacheWrite)
	d.int("cache_read_input_tokens", u.CacheRead)
	d.int("output_tokens", u.Output)
	if u.Reasoning > 0 {
		d.open("output_tokens_details", '{')
		d.int("thinking_tokens", u.Reasoning)
		d.close('}')
	}
	d.close('}')
}
