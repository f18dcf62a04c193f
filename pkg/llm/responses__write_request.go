package llm

import (
	"strings"

	"weir/pkg/wire/apierr"
)

// writeResponsesRequest writes a Responses request that leaves no state at the
// provider: store is false, and reasoning comes back encrypted.
func writeResponsesRequest(q *request, d *doc, opt *Options) error {
	reasons := opt.Reasoning || openaiReasons(opt.Model)
	d.open("", '{')
	d.str("model", opt.Model)
	lead := q.lead()
	d.opt("instructions", q.systemText(lead))
	for i := range q.messages[:lead] {
		q.dropCaches(q.messages[i].blocks)
	}
	d.open("input", '[')
	for i := range q.messages[lead:] {
		m := &q.messages[lead+i]
		q.dropCaches(m.blocks)
		var err error
		if m.role == assistant {
			writeResponsesAssistant(q, d, m.blocks, opt)
		} else {
			err = writeResponsesUser(d, m)
		}
		if err != nil {
			return err
		}
	}
	d.close(']')
	if n := q.maxTokens; n > 0 {
		d.int("max_output_tokens", max(n, 16)) // the least that is taken
	}
	if reasons {
		q.dropSet("temperature", q.temperature)
		q.dropSet("top_p", q.topP)
	} else {
		d.optRaw("temperature", q.temperature)
		d.optRaw("top_p", q.topP)
	}
	q.dropSet("top_k", q.topK)
	if len(q.stop) > 0 {
		q.dropField(fieldStop)
	}
	q.dropSet("seed", q.seed)
	q.dropSet("logit_bias", q.logitBias)
	q.dropSet("presence_penalty", q.presence)
	q.dropSet("frequency_penalty", q.frequency)
	include := ""
	if reasons {
		include = `"reasoning.encrypted_content"`
	}
	if q.logprobs {
		if include != "" {
			include += ","
		}
		include += `"message.output_text.logprobs"`
		d.optRaw("top_logprobs", q.topLogprobs)
	}
	if include != "" {
		d.raw("include", "["+include+"]")
	}
	writeResponsesTools(q, d)
	writeResponsesText(q, d)
	if name := q.effortName(); name != "" || q.think != thinkUnset {
		if !reasons {
			if name != "none" {
				q.dropField(fieldEffort)
			}
		} else {
			d.open("reasoning", '{')
			d.opt("effort", q.openaiEffort(opt.Model, name))
			if name != "none" {
				// Clients of other dialects expect to see the thinking.
				d.str("summary", "auto")
			}
			d.close('}')
		}
	}
	d.optRaw("metadata", q.metadata)
	d.opt("safety_identifier", q.user)
	d.opt("user", q.endUser)
	d.opt("service_tier", q.tier)
	d.opt("prompt_cache_key", q.cacheKey)
	if q.store == "true" {
		d.bool("store", true)
	} else {
		d.bool("store", false)
	}
	if q.stream {
		d.bool("stream", true)
	}
	d.close('}')
	return nil
}

func writeResponsesUser(d *doc, m *message) error {
	rest := withoutResults(m.blocks)
	for i := range m.blocks {
		b := &m.blocks[i]
		if b.kind != toolResultBlock {
			continue
		}
		d.open("", '{')
		kind := "function_call_output"
		if b.custom {
			kind = "custom_tool_call_output"
		}
		d.str("type", kind)
		d.str("call_id", b.id)
		plain := true
		for _, p := range b.parts {
			plain = plain && p.kind == textBlock
		}
		if plain {
			d.str("output", resultText(b))
		} else {
			d.open("output", '[')
			if b.failed {
				responsesText(d, "Error:")
			}
			if err := writeResponsesParts(d, b.parts); err != nil {
				return err
			}
			d.close(']')
		}
		d.close('}')
	}
	if len(rest) == 0 && len(m.blocks) > 0 {
		return nil
	}
	d.open("", '{')
	if m.role == system {
		d.str("role", "developer")
	} else {
		d.str("role", "user")
	}
	if len(rest) == 0 || len(rest) == 1 && rest[0].kind == textBlock {
		d.str("content", joinTexts(rest, ""))
		d.close('}')
		return nil
	}
	d.open("content", '[')
	if err := writeResponsesParts(d, rest); err != nil {
		return err
	}
	d.close(']')
	d.close('}')
	return nil
}

func responsesText(d *doc, text string) {
	d.open("", '{')
	d.str("type", "input_text")
	d.str("text", text)
	d.close('}')
}

func writeResponsesParts(d *doc, blocks []block) error {
	for i := range blocks {
		b := &blocks[i]
		switch b.kind {
		case textBlock:
			responsesText(d, b.text)
		case imageBlock:
			d.open("", '{')
			d.str("type", "input_image")
			if b.file != "" {
				d.str("file_id", b.file)
			} else {
				d.str("image_url", b.uri())
			}
			if b.detail != "" {
				d.str("detail", b.detail)
			} else {
				d.str("detail", "auto")
			}
			d.close('}')
		case documentBlock:
			if b.text != "" {
				responsesText(d, b.text)
				break
			}
			d.open("", '{')
			d.str("type", "input_file")
			switch {
			case b.file != "":
				d.str("file_id", b.file)
			case b.url != "":
				d.str("file_url", b.url)
			default:
				title := b.title
				if title == "" {
					title = "document.pdf"
				}
				d.str("filename", title)
				d.str("file_data", b.uri())
			}
			d.close('}')
		case audioBlock:
			return apierr.Invalid("messages", "This model does not take audio.")
		}
	}
	return nil
}

func writeResponsesAssistant(q *request, d *doc, blocks []block, opt *Options) {
	for i := range blocks {
		b := &blocks[i]
		switch b.kind {
		case textBlock:
			if b.text != "" {
				d.open("", '{')
				d.str("role", "assistant")
				d.str("content", b.text)
				d.close('}')
			}
		case refusalBlock:
			d.open("", '{')
			d.str("type", "message")
			d.str("role", "assistant")
			d.open("content", '[')
			d.open("", '{')
			d.str("type", "refusal")
			d.str("refusal", b.text)
			d.close('}')
			d.close(']')
			d.close('}')
		case thinkingBlock:
			id, sig, ok := strings.Cut(b.sig, ":")
			if b.issuer != opt.issuer(issuerOpenAI) || !ok || sig == "" {
				q.dropField(fieldThinking)
				continue
			}
			d.open("", '{')
			d.str("type", "reasoning")
			d.str("id", id)
			d.open("summary", '[')
			if b.text != "" {
				d.open("", '{')
				d.str("type", "summary_text")
				d.str("text", b.text)
				d.close('}')
			}
			d.close(']')
			d.str("encrypted_content", sig)
			d.close('}')
		case toolUseBlock:
			d.open("", '{')
			if b.custom {
				d.str("type", "custom_tool_call")
				d.str("call_id", b.id)
				d.str("name", b.name)
				d.str("input", b.args)
			} else {
				args := b.args
				if args == "" {
					args = "{}"
				}
				d.str("type", "function_call")
				d.str("call_id", b.id)
				d.str("name", b.name)
				d.str("arguments", args)
			}
			d.close('}')
		}
	}
}

func writeResponsesTools(q *request, d *doc) {
	if len(q.tools) == 0 && !q.search {
		return
	}
	d.open("tools", '[')
	for i := range q.tools {
		t := &q.tools[i]
		if t.cache != "" {
			q.dropField(fieldCache)
		}
		if t.custom != "" {
			d.raw("", t.custom)
			continue
		}
		d.open("", '{')
		d.str("type", "function")
		d.str("name", t.name)
		d.opt("description", t.description)
		d.raw("parameters", t.schemaOr())
		// Left out it would mean true here, and false in the other dialects.
		d.bool("strict", t.strict == "true")
		d.close('}')
	}
	if q.search {
		d.open("", '{')
		d.str("type", "web_search")
		d.optRaw("search_context_size", q.web.size)
		d.optRaw("user_location", q.web.place)
		if q.web.allowed != "" {
			d.raw("filters", `{"allowed_domains":`+q.web.allowed+`}`)
		}
		d.close('}')
		q.dropWeb(false, false, false, true, true)
	}
	d.close(']')
	switch c := &q.choice; {
	case len(c.allowed) > 0:
		d.open("tool_choice", '{')
		d.str("type", "allowed_tools")
		mode := "auto"
		if c.mode == choiceAny {
			mode = "required"
		}
		d.str("mode", mode)
		d.open("tools", '[')
		custom := q.customNames()
		for _, n := range c.allowed {
			kind := "function"
			if custom[n] {
				kind = "custom"
			}
			d.open("", '{')
			d.str("type", kind)
			d.str("name", n)
			d.close('}')
		}
		d.close(']')
		d.close('}')
	case c.mode == choiceTool:
		kind := "function"
		if c.custom {
			kind = "custom"
		}
		d.open("tool_choice", '{')
		d.str("type", kind)
		d.str("name", c.name)
		d.close('}')
	case c.mode != choiceUnset:
		d.str("tool_choice", [...]string{choiceAuto: "auto", choiceAny: "required", choiceNone: "none", choiceTool: ""}[c.mode])
	}
	d.optRaw("parallel_tool_calls", q.parallel)
}

func writeResponsesText(q *request, d *doc) {
	f := &q.format
	if f.kind == formatUnset && q.verbosity == "" {
		return
	}
	d.open("text", '{')
	if f.kind != formatUnset {
		d.open("format", '{')
		switch f.kind {
		case formatText:
			d.str("type", "text")
		case formatObject:
			d.str("type", "json_object")
		case formatSchema:
			d.str("type", "json_schema")
			d.str("name", f.nameOr("output"))
			d.opt("description", f.description)
			d.raw("schema", f.schema)
			d.bool("strict", f.strict == "true")
		}
		d.close('}')
	}
	d.opt("verbosity", q.verbosity)
	d.close('}')
}
