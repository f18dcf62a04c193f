package llm

import (
	"strings"

	"github.com/tidwall/gjson"
)

// readMessagesAnswer reads a Message (docs/reference/api-shapes.md, 8.2).
func readMessagesAnswer(root gjson.Result, a *answer, opt *Options) bool {
	content := root.Get("content")
	if !content.IsArray() {
		return false
	}
	a.id, a.model = str(root.Get("id")), str(root.Get("model"))
	forEach(content, func(_, p gjson.Result) bool {
		switch str(p.Get("type")) {
		case "text":
			b := block{text: str(p.Get("text"))}
			forEach(p.Get("citations"), func(_, c gjson.Result) bool {
				if c, ok := messagesCite(c); ok {
					b.cites = append(b.cites, c)
				}
				return true
			})
			b.citeWhole()
			a.blocks = append(a.blocks, b)
		case "thinking":
			a.blocks = append(a.blocks, block{kind: thinkingBlock, text: str(p.Get("thinking")), sig: str(p.Get("signature")), issuer: opt.issuer(issuerAnthropic)})
		case "redacted_thinking":
			a.blocks = append(a.blocks, block{kind: thinkingBlock, redacted: true, sig: str(p.Get("data")), issuer: opt.issuer(issuerAnthropic)})
		case "tool_use":
			if madeByCode(p) {
				return true
			}
			args := rawOf(p.Get("input"))
			if str(p.Get("name")) == formatTool {
				a.blocks = append(a.blocks, block{text: args})
				a.finish = finishStop
				return true
			}
			a.blocks = append(a.blocks, block{kind: toolUseBlock, id: str(p.Get("id")), name: str(p.Get("name")), args: args})
		}
		return true
	})
	asFormat := a.finish == finishStop
	a.finish = messagesFinish(str(root.Get("stop_reason")))
	if asFormat && a.finish == finishTools {
		a.finish = finishStop
	}
	a.stopSeq = str(root.Get("stop_sequence"))
	a.explain = str(root.Get("stop_details.explanation"))
	a.usage = messagesUsage(root.Get("usage"))
	a.tier = messagesTier(str(root.Get("usage.service_tier")))
	return true
}

// madeByCode reports whether a call was made by code that Claude runs, and not by
// Claude itself. Its result goes to that code, which no other dialect can express.
func madeByCode(call gjson.Result) bool {
	kind := str(call.Get("caller.type"))
	return kind != "" && kind != "direct"
}

// messagesTier returns OpenAI's name of a service tier, "" for none.
func messagesTier(s string) string {
	switch s {
	case "standard":
		return "default"
	case "priority":
		return s
	}
	return ""
}

func messagesFinish(s string) finish {
	switch s {
	case "":
		return finishUnset
	case "max_tokens":
		return finishLength
	case "stop_sequence":
		return finishSequence
	case "tool_use":
		return finishTools
	case "refusal":
		return finishFilter
	case "pause_turn":
		return finishPause
	case "model_context_window_exceeded":
		return finishWindow
	}
	return finishStop
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

func messagesUsage(v gjson.Result) (u Usage) {
	if !v.IsObject() {
		return u
	}
	u.Known = true
	forEach(v, func(k, n gjson.Result) bool {
		switch k.Str {
		case "input_tokens":
			u.Input += count(n)
		case "cache_creation_input_tokens":
			u.CacheWrite = count(n)
			u.Input += u.CacheWrite
		case "cache_read_input_tokens":
			u.CacheRead = count(n)
			u.Input += u.CacheRead
		case "output_tokens":
			u.Output = count(n)
		case "output_tokens_details":
			u.Reasoning = count(n.Get("thinking_tokens"))
		}
		return true
	})
	return u
}

// lastUsage is messagesUsage for the end of a stream. Its output is the final
// figure, which may be lower than the first one (0 for a refused answer).
func lastUsage(v gjson.Result) Usage {
	u := messagesUsage(v)
	u.last = v.Get("output_tokens").Type == gjson.Number
	return u
}

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

// issuerOr names the issuer, chat for thoughts that nobody signed.
func (b *block) issuerOr() string {
	if b.issuer == "" {
		return issuerChat
	}
	return b.issuer
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
	d.int("input_tokens", maxInt(0, u.Input-u.CacheRead-u.CacheWrite))
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

// messagesAnswerUsage reads the token counts of a JSON answer.
func messagesAnswerUsage(root gjson.Result) Usage { return messagesUsage(root.Get("usage")) }
