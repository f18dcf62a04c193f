package llm

import (
	"strings"
)

// writeChatRequest writes a chat completions request for an upstream that may
// deviate from OpenAI.
func writeChatRequest(q *request, d *doc, opt *Options) error {
	v := opt.deviations()
	if opt.Refuses != 0 {
		v = opt.Refuses.over(v)
	}
	openai := v.openAIModel(opt.Model)
	reasons := opt.Reasoning || openai && openaiReasons(opt.Model)
	d.open("", '{')
	d.str("model", opt.Model)
	writeChatMessages(q, d, opt, v)
	// set writes a field that the upstream may refuse.
	set := func(name, client, raw string) {
		if raw == "" {
			return
		}
		if v.drops(name, reasons) {
			q.drop(client)
			return
		}
		d.raw(name, raw)
	}
	if q.maxTokens > 0 {
		name := v.MaxTokens
		if name == "" || openai && reasons && opt.Refuses&RefusesMaxCompletionTokens == 0 {
			name = "max_completion_tokens"
		}
		d.int(name, q.maxTokens)
	}
	// OpenAI's reasoning models refuse everything that shapes the sampling.
	sampling := !(reasons && openai)
	if sampling {
		if v.ZeroSample && isZero(q.temperature) {
			d.bool("do_sample", false)
		} else {
			set("temperature", "temperature", q.temperature)
		}
		set("top_p", "top_p", q.topP)
		if len(q.stop) > 4 {
			q.dropField(fieldStop)
			q.stop = q.stop[:4]
		}
		if len(q.stop) > 0 {
			set("stop", q.fieldName(fieldStop), quoteList(q.stop))
		}
	} else {
		q.dropSet("temperature", q.temperature)
		q.dropSet("top_p", q.topP)
		if len(q.stop) > 0 {
			q.dropField(fieldStop)
		}
	}
	q.dropSet("top_k", q.topK)
	if q.logprobs {
		set("logprobs", q.fieldName(fieldLogprobs), "true")
		set("top_logprobs", "top_logprobs", q.topLogprobs)
	}
	writeChatTools(q, d, v, set)
	writeChatFormat(q, d)
	writeChatEffort(q, d, opt.Model, v, reasons)
	if q.verbosity != "" {
		set("verbosity", "text.verbosity", quoted(q.verbosity))
	}
	if q.user != "" {
		name := "user"
		if v.openAI() {
			name = "safety_identifier"
		}
		set(name, q.fieldName(fieldUser), quoted(q.user))
	}
	if q.endUser != "" && v.openAI() {
		set("user", "user", quoted(q.endUser))
	} else {
		q.dropSet("user", q.endUser)
	}
	set("metadata", "metadata", q.metadata)
	set("store", "store", storeOf(q))
	if q.tier != "" {
		if v.openAI() {
			set("service_tier", "service_tier", quoted(q.tier))
		} else {
			q.drop("service_tier")
		}
	}
	if q.cacheKey != "" {
		set("prompt_cache_key", "prompt_cache_key", quoted(q.cacheKey))
	}
	if q.search {
		// Only models made for it search in a chat; the others refuse the field.
		if v.openAI() && strings.Contains(opt.Model, "search") {
			d.open("web_search_options", '{')
			d.optRaw("search_context_size", q.web.size)
			if q.web.place != "" {
				d.raw("user_location", nested(q.web.place))
			}
			d.close('}')
			q.dropWeb(false, false, true, true, true)
		} else {
			q.dropField(fieldSearch)
		}
	}
	for _, f := range v.Set {
		d.raw(f[0], f[1])
	}
	if q.stream {
		d.bool("stream", true)
		if !v.NoStreamOptions {
			d.raw("stream_options", `{"include_usage":true}`)
		}
	}
	d.close('}')
	return nil
}

// storeOf passes an explicit wish to store only between OpenAI's dialects.
func storeOf(q *request) string {
	if q.store == "true" {
		return q.store
	}
	return ""
}

func isZero(number string) bool {
	return number != "" && strings.Trim(number, "0.-") == ""
}

func quoted(s string) string {
	d := doc{}
	d.str("", s)
	return string(d.b)
}

func quoteList(list []string) string {
	d := doc{}
	d.open("", '[')
	for _, s := range list {
		d.str("", s)
	}
	d.close(']')
	return string(d.b)
}

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

// dropCaches notes marks of cached prefixes, which the target makes itself.
func (q *request) dropCaches(blocks []block) {
	for i := range blocks {
		if blocks[i].cache != "" {
			q.dropField(fieldCache)
		}
	}
}

func joinTexts(blocks []block, sep string) string {
	var j joined
	for i := range blocks {
		if b := &blocks[i]; b.kind == textBlock {
			j.add(sep, b.text)
		}
	}
	return j.text()
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

// others returns the blocks of a user message besides tool results: first the
// non-text parts of the results, then the other blocks.
func (q *request) others(blocks []block) []block {
	rest := withoutResults(blocks)
	var found []block
	for i := range blocks {
		if b := &blocks[i]; b.kind == toolResultBlock {
			for j := range b.parts {
				if b.parts[j].kind != textBlock {
					found = append(grow(found, q.pieces), b.parts[j])
				}
			}
		}
	}
	if len(found) == 0 {
		return rest
	}
	return append(found, rest...)
}

// resultText flattens a tool's result.
func resultText(b *block) string {
	text := joinTexts(b.parts, "\n")
	if text == "" {
		for _, p := range b.parts {
			if p.kind != textBlock {
				text = "(see the attached content)"
			}
		}
	}
	if b.failed {
		return "Error: " + text
	}
	return text
}

func writeChatParts(q *request, d *doc, blocks []block) {
	if len(blocks) == 0 || len(blocks) == 1 && blocks[0].kind == textBlock {
		d.str("content", joinTexts(blocks, ""))
		return
	}
	d.open("content", '[')
	for i := range blocks {
		b := &blocks[i]
		switch b.kind {
		case textBlock:
			chatTextPart(d, b.text)
		case imageBlock:
			d.open("", '{')
			d.str("type", "image_url")
			d.open("image_url", '{')
			d.str("url", b.uri())
			d.opt("detail", b.detail)
			d.close('}')
			d.close('}')
		case documentBlock:
			if b.text != "" {
				chatTextPart(d, b.text)
				break
			}
			d.open("", '{')
			d.str("type", "file")
			d.open("file", '{')
			if b.file != "" {
				d.str("file_id", b.file)
			} else {
				title := b.title
				if title == "" {
					title = "document.pdf"
				}
				d.str("filename", title)
				d.str("file_data", b.uri())
			}
			d.close('}')
			d.close('}')
		case audioBlock:
			d.open("", '{')
			d.str("type", "input_audio")
			d.open("input_audio", '{')
			d.str("data", b.data)
			d.str("format", strings.Replace(strings.TrimPrefix(b.mime, "audio/"), "mpeg", "mp3", 1))
			d.close('}')
			d.close('}')
		}
	}
	d.close(']')
}

func chatTextPart(d *doc, text string) {
	d.open("", '{')
	d.str("type", "text")
	d.str("text", text)
	d.close('}')
}

// uri gives the address of a picture or document, a data: URI for bytes.
func (b *block) uri() string {
	if b.url != "" {
		return b.url
	}
	return "data:" + b.mime + ";base64," + b.data
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

// writeChatCall writes an entry of tool_calls.
func writeChatCall(d *doc, b *block, id string, signed bool) {
	d.open("", '{')
	d.str("id", id)
	if b.custom {
		d.str("type", "custom")
		d.open("custom", '{')
		d.str("name", b.name)
		d.str("input", b.args)
	} else {
		d.str("type", "function")
		d.open("function", '{')
		d.str("name", b.name)
		d.str("arguments", b.arguments())
	}
	d.close('}')
	if signed && b.sig != "" {
		d.open("extra_content", '{')
		d.open("google", '{')
		d.str("thought_signature", b.sig)
		d.close('}')
		d.close('}')
	}
	d.close('}')
}

// arguments returns those of a function call, {} for none.
func (b *block) arguments() string {
	if b.args == "" {
		return "{}"
	}
	return b.args
}

// writeChatThoughts gives reasoning back to the upstreams that want it.
func writeChatThoughts(q *request, d *doc, thoughts []block, opt *Options, v *Deviations) {
	if len(thoughts) == 0 {
		return
	}
	if v.Details {
		own := opt.issuer(issuerChat)
		open := false
		for i := range thoughts {
			b := &thoughts[i]
			format, sig, ok := strings.Cut(b.sig, ":")
			if b.issuer != own || !ok {
				continue
			}
			if !open {
				d.open("reasoning_details", '[')
				open = true
			}
			d.open("", '{')
			if b.redacted {
				d.str("type", "reasoning.encrypted")
				d.str("data", sig)
			} else {
				d.str("type", "reasoning.text")
				d.str("text", b.text)
				d.str("signature", sig)
			}
			d.str("format", format)
			d.close('}')
		}
		if open {
			d.close(']')
			if !v.Passes {
				return
			}
		}
	}
	var run joined
	for i := range thoughts {
		run.add("", thoughts[i].text)
	}
	text := run.text()
	// OpenAI's models refuse the field, wherever they run.
	if v.Reasoning == "" || text == "" || v.Passes && v.openAIModel(opt.Model) {
		q.dropField(fieldThinking)
		return
	}
	d.str(v.Reasoning, text)
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
