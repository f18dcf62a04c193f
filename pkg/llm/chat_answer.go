package llm

import (
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// nestCustom turns the flat form of a custom tool into chat's.
func nestCustom(flat string) string {
	v := gjson.Parse(flat)
	d := doc{}
	d.open("", '{')
	d.str("name", str(v.Get("name")))
	d.opt("description", str(v.Get("description")))
	if t := str(v.Get("format.type")); t == "grammar" {
		d.open("format", '{')
		d.str("type", t)
		d.open("grammar", '{')
		d.opt("syntax", str(v.Get("format.syntax")))
		d.opt("definition", str(v.Get("format.definition")))
		d.close('}')
		d.close('}')
	} else if t != "" {
		d.open("format", '{')
		d.str("type", t)
		d.close('}')
	}
	d.close('}')
	return string(d.b)
}

// readChatAnswer reads a chat completion (docs/reference/api-shapes.md, 3.2).
func readChatAnswer(root gjson.Result, a *answer, opt *Options) bool {
	choice := root.Get("choices.0")
	m := choice.Get("message")
	if !m.IsObject() {
		return false
	}
	a.id, a.model = str(root.Get("id")), str(root.Get("model"))
	a.tier = str(root.Get("service_tier"))
	a.usage = chatUsage(root)
	a.blocks = append(a.blocks, chatThinking(nil, recordOf(m), opt.issuer(issuerChat))...)
	text := block{}
	var run joined
	switch c := m.Get("content"); {
	case c.Type == gjson.String:
		run.one = c.Str
	case c.IsArray(): // Mistral's reasoning models
		forEach(c, func(_, p gjson.Result) bool {
			switch str(p.Get("type")) {
			case "text":
				run.add("", str(p.Get("text")))
			case "thinking":
				a.blocks = append(a.blocks, block{kind: thinkingBlock, text: textsOf(p.Get("thinking"), "")})
			}
			return true
		})
	}
	notes := m.Get("annotations")
	forEach(notes, func(_, v gjson.Result) bool {
		if u := v.Get("url_citation"); u.IsObject() {
			text.cites = append(room(text.cites, notes), chatCite(u))
		}
		return true
	})
	if len(text.cites) == 0 { // Perplexity
		forEach(root.Get("search_results"), func(_, v gjson.Result) bool {
			text.cites = append(text.cites, citation{url: str(v.Get("url")), title: str(v.Get("title")), quote: str(v.Get("snippet"))})
			return true
		})
	}
	if text.text = run.text(); text.text != "" {
		a.blocks = append(a.blocks, text)
	}
	if s := str(m.Get("refusal")); s != "" {
		a.blocks = append(a.blocks, block{kind: refusalBlock, text: s})
	}
	forEach(m.Get("tool_calls"), func(_, c gjson.Result) bool {
		b := chatCall(c)
		if b.id == "" {
			b.id = opt.callID(len(a.blocks))
		}
		a.blocks = append(a.blocks, b)
		return true
	})
	if f := m.Get("function_call"); f.IsObject() {
		name := str(f.Get("name"))
		a.blocks = append(a.blocks, block{kind: toolUseBlock, old: true, id: "call_" + name, name: name, args: str(f.Get("arguments"))})
	}
	if l := choice.Get("logprobs"); l.IsObject() {
		a.logprobs = l.Raw
	}
	a.finish, a.failure = chatFinish(str(choice.Get("finish_reason")))
	return true
}

// chatFinish reads a finish_reason; some upstreams report a failure by it.
func chatFinish(s string) (finish, *apierr.Error) {
	switch s {
	case "":
		return finishUnset, nil
	case "length", "max_tokens", "model_length":
		return finishLength, nil
	case "tool_calls", "function_call":
		return finishTools, nil
	case "content_filter", "sensitive":
		return finishFilter, nil
	case "error", "network_error":
		return finishUnset, ofStatus(502)
	case "insufficient_system_resource":
		return finishUnset, ofStatus(503)
	}
	return finishStop, nil
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

// chatUsage reads the usage of a chunk or an answer, wherever the vendor has it.
func chatUsage(root gjson.Result) (u Usage) {
	v := root.Get("usage")
	if !v.IsObject() {
		if v = root.Get("x_groq.usage"); !v.IsObject() {
			if v = root.Get("choices.0.usage"); !v.IsObject() {
				return u
			}
		}
	}
	u.Known = true
	forEach(v, func(k, n gjson.Result) bool {
		switch k.Str {
		case "prompt_tokens":
			u.Input = count(n)
		case "completion_tokens":
			u.Output = count(n)
		case "prompt_tokens_details":
			u.CacheRead = maxInt(u.CacheRead, count(n.Get("cached_tokens")))
			u.CacheWrite = count(n.Get("cache_write_tokens"))
		case "completion_tokens_details":
			u.Reasoning = count(n.Get("reasoning_tokens"))
		case "cached_tokens", "prompt_cache_hit_tokens": // Moonshot; DeepSeek
			u.CacheRead = maxInt(u.CacheRead, count(n))
		}
		return true
	})
	return u
}

// callID makes an id for a tool call that came without.
func (o *Options) callID(n int) string {
	d := doc{b: []byte("call_" + o.ID + "_")}
	for i := range d.b {
		if c := d.b[i]; !letter(c) && (c < '0' || c > '9') && c != '_' && c != '-' {
			d.b[i] = '_'
		}
	}
	d.b = append(d.b, byte('0'+n/10%10), byte('0'+n%10))
	return string(d.b)
}

// made gives the id that an answer carries: prefix and the request's id, or
// what the upstream called it.
func (o *Options) made(prefix, upstream string) string {
	if o.ID != "" {
		return prefix + o.ID
	}
	return prefix + upstream
}

// shown gives the model that an answer carries.
func (o *Options) shown(upstream string) string {
	if upstream == "" {
		return o.Model
	}
	return upstream
}

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

// writeReasoningDetails keeps signatures for the round trip, in the field that
// OpenRouter made common.
func writeReasoningDetails(blocks []block, d *doc) {
	n := 0
	for i := range blocks {
		b := &blocks[i]
		if b.kind != thinkingBlock || b.sig == "" {
			continue
		}
		if n == 0 {
			d.open("reasoning_details", '[')
		}
		writeReasoningDetail(d, b.redacted, escape(b.text), b.sig, b.issuer, n)
		n++
	}
	if n > 0 {
		d.close(']')
	}
}

// writeReasoningDetail writes one signed thought; text is escaped. The index
// distinguishes the thoughts of a turn for clients that join pieces.
func writeReasoningDetail(d *doc, redacted bool, text, sig, issuer string, index int) {
	d.open("", '{')
	if redacted {
		d.str("type", "reasoning.encrypted")
		d.str("data", sig)
	} else {
		d.str("type", "reasoning.text")
		d.esc("text", text)
		d.str("signature", sig)
	}
	d.str("format", formatOf(issuer))
	d.int("index", int64(index))
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
