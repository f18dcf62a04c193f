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

// messagesAnswerUsage reads the token counts of a JSON answer.
func messagesAnswerUsage(root gjson.Result) Usage { return messagesUsage(root.Get("usage")) }

// lastUsage is messagesUsage for the end of a stream. Its output is the final
// figure, which may be lower than the first one (0 for a refused answer).
func lastUsage(v gjson.Result) Usage {
	u := messagesUsage(v)
	u.last = v.Get("output_tokens").Type == gjson.Number
	return u
}

// messagesCite reads a citation of Claude. It has no offsets: it applies to the
// whole block.
func messagesCite(v gjson.Result) (c citation, ok bool) {
	c = citation{url: str(v.Get("url")), title: str(v.Get("title")), quote: str(v.Get("cited_text"))}
	if s := str(v.Get("source")); c.url == "" && strings.Contains(s, "://") {
		c.url = s // a search result of the client's
	}
	return c, c.url != ""
}
