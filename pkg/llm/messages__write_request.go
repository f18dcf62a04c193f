package llm

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// writeMessagesRequest writes a Messages request, for the generation of model
// that the id tells.
func writeMessagesRequest(q *request, d *doc, opt *Options) error {
	gen := claudeOf(opt.Model)
	v := opt.deviations()
	d.open("", '{')
	if v.Anthropic != "" {
		d.str("anthropic_version", v.Anthropic)
	} else {
		d.str("model", opt.Model)
	}

	limit := opt.MaxOutput
	if limit == 0 {
		limit = gen.maxOutput
	}
	max := q.maxTokens
	if max == 0 {
		if max = opt.MaxTokens; max == 0 {
			max = gen.unlimited()
		}
	}
	if limit > 0 && max > limit {
		max = limit
	}
	forceFormat := q.format.kind == formatSchema && !gen.schema
	think := q.claudeThinking(gen, max, limit, q.lostThinking(opt.issuer(issuerAnthropic)) || forceFormat)
	d.int("max_tokens", think.max)

	lead := q.lead()
	marks := 0
	writeMessagesSystem(q, d, lead, &marks)
	if err := writeMessagesMessages(q, d, opt, lead, &marks); err != nil {
		return err
	}
	writeMessagesTools(q, d, gen, forceFormat, &marks)
	writeMessagesChoice(q, d, gen, think.budget, forceFormat)
	d.optRaw("thinking", think.json)
	schema := q.format.kind == formatSchema && gen.schema
	if think.effort != "" || schema {
		d.open("output_config", '{')
		d.opt("effort", think.effort)
		if schema {
			d.open("format", '{')
			d.str("type", "json_schema")
			d.raw("schema", q.closed(q.fieldName(fieldFormat), q.describedSchema()))
			d.close('}')
		}
		d.close('}')
	}

	if gen.sampling && !think.budget {
		temperature := q.temperature
		if temperature != "" && gjson.Parse(temperature).Num > 1 {
			temperature = "1"
		}
		d.optRaw("temperature", temperature)
		if gen.oneSampling && temperature != "" {
			q.dropSet("top_p", q.topP)
		} else {
			d.optRaw("top_p", q.topP)
		}
		d.optRaw("top_k", q.topK)
	} else {
		q.dropSet("temperature", q.temperature)
		q.dropSet("top_p", q.topP)
		q.dropSet("top_k", q.topK)
	}
	if stop := q.stops(); len(stop) > 0 {
		d.raw("stop_sequences", quoteList(stop))
	}
	if q.user != "" {
		d.open("metadata", '{')
		d.str("user_id", q.user)
		d.close('}')
	}
	q.dropSet("metadata", q.metadata)
	switch q.tier {
	case "":
	case "auto":
		d.str("service_tier", "auto")
	case "default":
		d.str("service_tier", "standard_only")
	default:
		q.drop("service_tier")
	}
	q.dropSet("presence_penalty", q.presence)
	q.dropSet("frequency_penalty", q.frequency)
	q.dropSet("seed", q.seed)
	q.dropOpenAI()
	if q.stream && v.Anthropic != "bedrock-2023-05-31" {
		d.bool("stream", true)
	}
	d.close('}')
	return nil
}

func writeMessagesSystem(q *request, d *doc, lead int, marks *int) {
	marked := false
	for _, m := range q.messages[:lead] {
		for i := range m.blocks {
			marked = marked || m.blocks[i].cache != ""
		}
	}
	text := q.systemText(lead)
	if q.format.kind == formatObject {
		// There is no JSON mode: the model is told.
		hint := "Answer with one JSON object and nothing else."
		if text == "" {
			text = hint
		} else {
			text += "\n\n" + hint
		}
		if marked {
			q.messages[lead-1].blocks = append(q.messages[lead-1].blocks, block{text: hint})
		}
	}
	if text == "" {
		return
	}
	if !marked {
		d.str("system", text)
		return
	}
	d.open("system", '[')
	for _, m := range q.messages[:lead] {
		for i := range m.blocks {
			if b := &m.blocks[i]; b.text != "" {
				messagesText(q, d, b, marks)
			}
		}
	}
	d.close(']')
}

func messagesText(q *request, d *doc, b *block, marks *int) {
	d.open("", '{')
	d.str("type", "text")
	d.str("text", b.text)
	writeCache(q, d, b.cache, marks)
	d.close('}')
}

// writeCache ends a cached prefix; there may be four.
func writeCache(q *request, d *doc, ttl string, marks *int) {
	if ttl == "" {
		return
	}
	if *marks++; *marks > 4 {
		q.dropField(fieldCache)
		return
	}
	d.open("cache_control", '{')
	d.str("type", "ephemeral")
	if ttl == "1h" {
		d.str("ttl", ttl)
	}
	d.close('}')
}

// writeMessagesMessages merges neighbours of one role, begins with a user
// message and puts results before everything else of their turn.
func writeMessagesMessages(q *request, d *doc, opt *Options, lead int, marks *int) error {
	d.open("messages", '[')
	list := q.messages[lead:]
	first := true
	for i := 0; i < len(list); {
		r := list[i].role
		turn := turnOf(list[i:])
		i += len(turn)
		if r == assistant && i == len(list) {
			trimLast(turn)
		}
		at := len(d.b)
		name := "user"
		if r == assistant {
			name = "assistant"
			if first {
				d.open("", '{')
				d.str("role", "user")
				d.str("content", "(The conversation so far is not shown.)")
				d.close('}')
			}
		}
		d.open("", '{')
		d.str("role", name)
		d.open("content", '[')
		start := len(d.b)
		if err := resultsFirst(turn, func(b *block) error { return writeMessagesBlock(q, d, b, opt, marks) }); err != nil {
			return err
		}
		if len(d.b) == start {
			d.b = d.b[:at] // nothing was left of it
			continue
		}
		first = false
		d.close(']')
		d.close('}')
	}
	d.close(']')
	return nil
}

func writeMessagesBlock(q *request, d *doc, b *block, opt *Options, marks *int) error {
	switch b.kind {
	case textBlock, refusalBlock:
		if b.text != "" {
			messagesText(q, d, b, marks)
		}
	case imageBlock:
		d.open("", '{')
		d.str("type", "image")
		if err := writeMessagesSource(d, b); err != nil {
			return err
		}
		writeCache(q, d, b.cache, marks)
		d.close('}')
	case documentBlock:
		if strings.HasPrefix(b.mime, "text/") && b.text == "" {
			b.plain()
		}
		d.open("", '{')
		d.str("type", "document")
		if err := writeMessagesSource(d, b); err != nil {
			return err
		}
		d.opt("title", b.title)
		writeCache(q, d, b.cache, marks)
		d.close('}')
	case audioBlock:
		return apierr.Invalid("messages", "This model does not take audio.")
	case toolUseBlock:
		args, ok := object(b.args)
		if !ok {
			args = `{"_raw":` + quoted(b.args) + `}`
		}
		d.open("", '{')
		d.str("type", "tool_use")
		d.str("id", messagesID(b.id))
		d.str("name", b.name)
		d.raw("input", args)
		writeCache(q, d, b.cache, marks)
		d.close('}')
	case toolResultBlock:
		d.open("", '{')
		d.str("type", "tool_result")
		d.str("tool_use_id", messagesID(b.id))
		if len(b.parts) > 0 {
			d.open("content", '[')
			for i := range b.parts {
				if err := writeMessagesBlock(q, d, &b.parts[i], opt, marks); err != nil {
					return err
				}
			}
			d.close(']')
		}
		if b.failed {
			d.bool("is_error", true)
		}
		writeCache(q, d, b.cache, marks)
		d.close('}')
	case thinkingBlock:
		if b.issuer != opt.issuer(issuerAnthropic) || b.sig == "" {
			q.dropField(fieldThinking)
			return nil
		}
		d.open("", '{')
		if b.redacted {
			d.str("type", "redacted_thinking")
			d.str("data", b.sig)
		} else {
			d.str("type", "thinking")
			d.str("thinking", b.text)
			d.str("signature", b.sig)
		}
		d.close('}')
	}
	return nil
}

func writeMessagesSource(d *doc, b *block) error {
	if b.file != "" {
		return apierr.Invalid("messages", "Files stored at another provider cannot be used with this model.")
	}
	d.open("source", '{')
	switch {
	case b.url != "":
		d.str("type", "url")
		d.str("url", b.url)
	case b.text != "" || strings.HasPrefix(b.mime, "text/"):
		d.str("type", "text")
		d.str("media_type", "text/plain")
		d.str("data", b.text)
	default:
		d.str("type", "base64")
		d.str("media_type", b.mime)
		d.str("data", b.data)
	}
	d.close('}')
	return nil
}
