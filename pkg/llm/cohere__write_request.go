package llm

import (
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// writeCohereRequest writes a v2 chat request.
func writeCohereRequest(q *request, d *doc, opt *Options) error {
	d.open("", '{')
	d.str("model", opt.Model)
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
	for i := range q.messages[lead:] {
		m := &q.messages[lead+i]
		q.dropCaches(m.blocks)
		switch m.role {
		case assistant:
			writeCohereAssistant(q, d, m.blocks)
		case system:
			d.open("", '{')
			d.str("role", "system")
			d.str("content", joinTexts(m.blocks, "\n\n"))
			d.close('}')
		default:
			if err := writeCohereUser(q, d, m.blocks); err != nil {
				return err
			}
		}
	}
	d.close(']')
	if q.maxTokens > 0 {
		d.int("max_tokens", q.maxTokens)
	}
	temperature := q.temperature
	if temperature != "" && gjson.Parse(temperature).Num > 1 {
		temperature = "1"
	}
	d.optRaw("temperature", temperature)
	d.optRaw("p", q.topP)
	d.optRaw("k", q.topK)
	if len(q.stop) > 5 {
		q.dropField(fieldStop)
		q.stop = q.stop[:5]
	}
	if len(q.stop) > 0 {
		d.raw("stop_sequences", quoteList(q.stop))
	}
	d.optRaw("seed", q.seed)
	d.optRaw("presence_penalty", q.presence)
	d.optRaw("frequency_penalty", q.frequency)
	writeCohereTools(q, d)
	switch q.format.kind {
	case formatObject:
		d.raw("response_format", `{"type":"json_object"}`)
	case formatSchema:
		d.open("response_format", '{')
		d.str("type", "json_object")
		d.raw("json_schema", q.describedSchema())
		d.close('}')
	}
	if name := q.effortName(); name == "none" {
		d.raw("thinking", `{"type":"disabled"}`)
	} else if q.think == thinkBudget {
		d.raw("thinking", `{"type":"enabled","token_budget":`+strconv.FormatInt(q.budget, 10)+`}`)
	} else if q.think != thinkUnset {
		d.raw("thinking", `{"type":"enabled"}`)
		if q.effort != "" {
			q.dropEffort() // it has no levels
		}
	}
	q.dropOpenAI()
	q.dropSet("metadata", q.metadata)
	if q.user != "" {
		q.dropField(fieldUser)
	}
	q.dropSet("service_tier", q.tier)
	if q.parallel == "false" {
		q.dropField(fieldParallel)
	}
	if q.search {
		q.dropField(fieldSearch)
	}
	if q.stream {
		d.bool("stream", true)
	}
	d.close('}')
	return nil
}

func writeCohereUser(q *request, d *doc, blocks []block) error {
	rest := q.others(blocks)
	for i := range blocks {
		b := &blocks[i]
		if b.kind != toolResultBlock {
			continue
		}
		d.open("", '{')
		d.str("role", "tool")
		d.str("tool_call_id", b.id)
		d.str("content", resultText(b))
		d.close('}')
	}
	if len(rest) == 0 && len(blocks) > 0 {
		return nil
	}
	for i := range rest {
		b := &rest[i]
		if b.kind == audioBlock || b.kind == documentBlock && b.text == "" || b.file != "" {
			return apierr.Invalid("messages", "This model takes text and images only.")
		}
	}
	d.open("", '{')
	d.str("role", "user")
	writeChatParts(q, d, rest)
	d.close('}')
	return nil
}

func writeCohereAssistant(q *request, d *doc, blocks []block) {
	d.open("", '{')
	d.str("role", "assistant")
	calls, thoughts := 0, joined{}
	for i := range blocks {
		switch b := &blocks[i]; b.kind {
		case toolUseBlock:
			calls++
		case thinkingBlock:
			thoughts.add("", b.text)
		}
	}
	text, thought := joinTexts(blocks, ""), thoughts.text()
	switch {
	case thought != "":
		d.open("content", '[')
		d.open("", '{')
		d.str("type", "thinking")
		d.str("thinking", thought)
		d.close('}')
		if text != "" {
			chatTextPart(d, text)
		}
		d.close(']')
	case text != "" || calls == 0:
		d.str("content", text)
	}
	if calls > 0 {
		d.open("tool_calls", '[')
		for i := range blocks {
			if b := &blocks[i]; b.kind == toolUseBlock {
				writeChatCall(d, b, b.id, false)
			}
		}
		d.close(']')
	}
	d.close('}')
}

func writeCohereTools(q *request, d *doc) {
	tools := q.tools
	if q.choice.mode == choiceTool {
		// A tool cannot be named: it is left as the only one, and required.
		tools = only(tools, []string{q.choice.name})
	} else if len(q.choice.allowed) > 0 {
		tools = only(tools, q.choice.allowed)
	}
	if len(tools) == 0 {
		return
	}
	strict := true
	d.open("tools", '[')
	for i := range tools {
		t := &tools[i]
		strict = strict && t.strict == "true"
		if t.cache != "" {
			q.dropField(fieldCache)
		}
		d.open("", '{')
		d.str("type", "function")
		d.open("function", '{')
		d.str("name", t.name)
		d.opt("description", t.description)
		d.raw("parameters", t.schemaOr())
		d.close('}')
		d.close('}')
	}
	d.close(']')
	if strict {
		d.bool("strict_tools", true)
	}
	switch q.choice.mode {
	case choiceAny, choiceTool:
		d.str("tool_choice", "REQUIRED")
	case choiceNone:
		d.str("tool_choice", "NONE")
	}
}
