package cohere

import (
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// WriteRequest writes a v2 chat request.
func WriteRequest(q *ir.Request, d *ir.Writer, opt *ir.Options) error {
	d.Open("", '{')
	d.Str("model", opt.Model)
	d.Open("messages", '[')
	for _, m := range q.WriteSystem(d) {
		q.DropCaches(m.Blocks)
		switch m.Role {
		case ir.RoleAssistant:
			writeAssistant(q, d, m.Blocks)
		case ir.RoleSystem:
			d.Open("", '{')
			d.Str("role", "system")
			d.Str("content", ir.JoinTexts(m.Blocks, "\n\n"))
			d.Close('}')
		default:
			if err := writeUser(q, d, m.Blocks); err != nil {
				return err
			}
		}
	}
	d.Close(']')
	if q.MaxTokens > 0 {
		d.Int("max_tokens", q.MaxTokens)
	}
	temperature := q.Temperature
	if temperature != "" && gjson.Parse(temperature).Num > 1 {
		temperature = "1"
	}
	d.OptRaw("temperature", temperature)
	d.OptRaw("p", q.TopP)
	d.OptRaw("k", q.TopK)
	if len(q.Stop) > 5 {
		q.DropField(ir.FieldStop)
		q.Stop = q.Stop[:5]
	}
	if len(q.Stop) > 0 {
		d.Raw("stop_sequences", ir.QuoteList(q.Stop))
	}
	d.OptRaw("seed", q.Seed)
	d.OptRaw("presence_penalty", q.PresencePenalty)
	d.OptRaw("frequency_penalty", q.FrequencyPenalty)
	writeTools(q, d)
	switch q.Format.Kind {
	case ir.FormatObject:
		d.Raw("response_format", `{"type":"json_object"}`)
	case ir.FormatSchema:
		d.Open("response_format", '{')
		d.Str("type", "json_object")
		d.Raw("json_schema", q.DescribedSchema())
		d.Close('}')
	}
	if name := q.EffortName(); name == "none" {
		d.Raw("thinking", `{"type":"disabled"}`)
	} else if q.Think == ir.ThinkBudget {
		d.Raw("thinking", `{"type":"enabled","token_budget":`+strconv.FormatInt(q.ThinkBudget, 10)+`}`)
	} else if q.Think != ir.ThinkUnset {
		d.Raw("thinking", `{"type":"enabled"}`)
		if q.Effort != "" {
			q.DropEffort() // Cohere has no levels
		}
	}
	q.DropOpenAI()
	q.DropIfSet("metadata", q.Metadata)
	if q.User != "" {
		q.DropField(ir.FieldUser)
	}
	q.DropIfSet("service_tier", q.ServiceTier)
	if q.Parallel == "false" {
		q.DropField(ir.FieldParallel)
	}
	if q.SearchWeb {
		q.DropField(ir.FieldSearch)
	}
	if q.Stream {
		d.Bool("stream", true)
	}
	d.Close('}')
	return nil
}

func writeUser(q *ir.Request, d *ir.Writer, blocks []ir.Block) error {
	rest := q.NonResults(blocks)
	for i := range blocks {
		b := &blocks[i]
		if b.Kind != ir.ToolResultBlock {
			continue
		}
		d.Open("", '{')
		d.Str("role", "tool")
		d.Str("tool_call_id", b.ID)
		d.Str("content", ir.ResultText(b))
		d.Close('}')
	}
	if len(rest) == 0 && len(blocks) > 0 {
		return nil
	}
	for i := range rest {
		b := &rest[i]
		if b.Kind == ir.AudioBlock || b.Kind == ir.DocumentBlock && b.Text == "" || b.FileID != "" {
			return apierr.Invalid("messages", "This model accepts text and images only.")
		}
	}
	d.Open("", '{')
	d.Str("role", "user")
	ir.WriteChatParts(q, d, rest)
	d.Close('}')
	return nil
}

func writeAssistant(q *ir.Request, d *ir.Writer, blocks []ir.Block) {
	d.Open("", '{')
	d.Str("role", "assistant")
	calls, thoughts := 0, ir.Joiner{}
	for i := range blocks {
		switch b := &blocks[i]; b.Kind {
		case ir.ToolCallBlock:
			calls++
		case ir.ThinkingBlock:
			thoughts.Add("", b.Text)
		}
	}
	text, thought := ir.JoinTexts(blocks, ""), thoughts.Text()
	switch {
	case thought != "":
		d.Open("content", '[')
		d.Open("", '{')
		d.Str("type", "thinking")
		d.Str("thinking", thought)
		d.Close('}')
		if text != "" {
			ir.WriteChatText(d, text)
		}
		d.Close(']')
	case text != "" || calls == 0:
		d.Str("content", text)
	}
	if calls > 0 {
		d.Open("tool_calls", '[')
		for i := range blocks {
			if b := &blocks[i]; b.Kind == ir.ToolCallBlock {
				ir.WriteChatCall(d, b, b.ID, false)
			}
		}
		d.Close(']')
	}
	d.Close('}')
}

func writeTools(q *ir.Request, d *ir.Writer) {
	tools := q.Tools
	if q.ToolChoice.Mode == ir.ChoiceTool {
		// tool_choice cannot name a tool, so it is sent alone and required.
		tools = ir.FilterTools(tools, []string{q.ToolChoice.Name})
	} else if len(q.ToolChoice.Allowed) > 0 {
		tools = ir.FilterTools(tools, q.ToolChoice.Allowed)
	}
	if len(tools) == 0 {
		return
	}
	strict := true
	d.Open("tools", '[')
	for i := range tools {
		t := &tools[i]
		strict = strict && t.Strict == "true"
		if t.Cache != "" {
			q.DropField(ir.FieldCache)
		}
		d.Open("", '{')
		d.Str("type", "function")
		d.Open("function", '{')
		d.Str("name", t.Name)
		d.OptStr("description", t.Description)
		d.Raw("parameters", t.SchemaOrEmpty())
		d.Close('}')
		d.Close('}')
	}
	d.Close(']')
	if strict {
		d.Bool("strict_tools", true)
	}
	switch q.ToolChoice.Mode {
	case ir.ChoiceAny, ir.ChoiceTool:
		d.Str("tool_choice", "REQUIRED")
	case ir.ChoiceNone:
		d.Str("tool_choice", "NONE")
	}
}
