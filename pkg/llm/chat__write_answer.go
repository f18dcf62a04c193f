package llm

import "unicode/utf8"

// writeChatAnswer writes a chat completion.
func writeChatAnswer(a *answer, d *doc, opt *Options) {
	d.open("", '{')
	d.str("id", opt.made("chatcmpl-", a.id))
	d.str("object", "chat.completion")
	d.int("created", opt.Now)
	d.str("model", opt.shown(a.model))
	d.open("choices", '[')
	d.open("", '{')
	d.int("index", 0)
	d.open("message", '{')
	d.str("role", "assistant")
	var texts, thoughts joined
	refusals, calls := joined{one: a.explain}, false
	var old *block // the one call for a client that supports only function_call
	cited := false
	for i := range a.blocks {
		switch b := &a.blocks[i]; b.kind {
		case textBlock:
			texts.add("", b.text)
			cited = cited || len(b.cites) > 0
		case thinkingBlock:
			thoughts.add("", b.text)
		case refusalBlock:
			refusals.add("", b.text)
		case toolUseBlock:
			if calls = true; b.old && old == nil {
				old = b
			}
		}
	}
	text, thought, refused := texts.text(), thoughts.text(), refusals.text()
	if text == "" && (calls || refused != "" || a.finish == finishFilter) {
		d.null("content")
	} else {
		d.str("content", text)
	}
	if refused != "" {
		d.str("refusal", refused)
	} else {
		d.null("refusal")
	}
	d.opt("reasoning_content", thought)
	writeReasoningDetails(a.blocks, d)
	if old != nil {
		d.open("function_call", '{')
		d.str("name", old.name)
		d.str("arguments", old.arguments())
		d.close('}')
	} else if calls {
		d.open("tool_calls", '[')
		for i := range a.blocks {
			if b := &a.blocks[i]; b.kind == toolUseBlock {
				writeChatCall(d, b, b.id, true)
			}
		}
		d.close(']')
	}
	writeChatImages(d, a.blocks)
	if cited {
		writeChatCites(a.blocks, d)
	}
	d.close('}')
	d.str("finish_reason", finishName(a.reason(), old != nil))
	if a.logprobs != "" {
		d.raw("logprobs", a.logprobs)
	} else {
		d.null("logprobs")
	}
	d.close('}')
	d.close(']')
	if a.usage.Known {
		d.key("usage")
		writeChatUsage(d, &a.usage)
	}
	d.opt("service_tier", a.tier)
	d.close('}')
}

func finishName(f finish, old bool) string {
	switch f {
	case finishLength, finishWindow:
		return "length"
	case finishTools:
		if old {
			return "function_call"
		}
		return "tool_calls"
	case finishFilter:
		return "content_filter"
	}
	return "stop"
}

// writeChatImages writes the pictures of an answer, in the field that
// OpenRouter made common. Messages has no place for them.
func writeChatImages(d *doc, blocks []block) {
	open := false
	for i := range blocks {
		b := &blocks[i]
		if b.kind != imageBlock {
			continue
		}
		if !open {
			d.open("images", '[')
			open = true
		}
		writeChatImage(d, b.uri())
	}
	if open {
		d.close(']')
	}
}

func writeChatImage(d *doc, uri string) {
	d.open("", '{')
	d.str("type", "image_url")
	d.open("image_url", '{')
	d.str("url", uri)
	d.close('}')
	d.close('}')
}

// writeChatCites writes the citations of all text blocks, which become one text.
func writeChatCites(blocks []block, d *doc) {
	d.open("annotations", '[')
	before := 0 // code points of the preceding texts
	for i := range blocks {
		b := &blocks[i]
		if b.kind != textBlock {
			continue
		}
		for _, c := range b.cites {
			writeChatCite(d, c.moved(before))
		}
		before += utf8.RuneCountInString(b.text)
	}
	d.close(']')
}

func writeChatCite(d *doc, c citation) {
	d.open("", '{')
	d.str("type", "url_citation")
	d.open("url_citation", '{')
	d.str("url", c.url)
	d.str("title", c.title)
	d.int("start_index", int64(c.start))
	d.int("end_index", int64(c.end))
	d.close('}')
	d.close('}')
}

func writeChatUsage(d *doc, u *Usage) {
	d.b = append(d.b, '{')
	d.int("prompt_tokens", u.Input)
	d.int("completion_tokens", u.Output)
	d.int("total_tokens", u.Input+u.Output)
	d.open("prompt_tokens_details", '{')
	d.int("cached_tokens", u.CacheRead)
	if u.CacheWrite > 0 {
		d.int("cache_write_tokens", u.CacheWrite)
	}
	d.close('}')
	d.open("completion_tokens_details", '{')
	d.int("reasoning_tokens", u.Reasoning)
	d.close('}')
	d.close('}')
}
