package messages

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// WriteRequest writes a Messages request for the generation of the model's id.
func WriteRequest(q *ir.Request, d *ir.Writer, opt *ir.Options) error {
	gen := ir.ClaudeNamed(opt.Model)
	v := opt.DeviationsOrDefault()
	if gen != &ir.OtherClaude {
		q.MarkCache(opt)
	}
	d.Open("", '{')
	if v.Anthropic != "" {
		d.Str("anthropic_version", v.Anthropic)
	} else {
		d.Str("model", opt.Model)
	}

	limit := cmp.Or(opt.MaxOutput, gen.MaxOutput)
	if n := opt.OutputLimit; n > 0 && (limit == 0 || n < limit) {
		limit = n
	}
	max := cmp.Or(q.MaxTokens, opt.RequiredMaxTokens(gen))
	if limit > 0 && max > limit {
		max = limit
	}
	forceFormat := q.Format.Kind == ir.FormatSchema && !gen.Schema
	think := q.ClaudeThinking(gen, max, limit, q.LostThinking(opt.IssuerOr(ir.IssuerAnthropic)) || forceFormat)
	d.Int("max_tokens", think.MaxTokens)

	lead := q.Lead()
	marks := 0
	writeSystem(q, d, lead, &marks)
	if err := writeMessages(q, d, opt, lead, &marks); err != nil {
		return err
	}
	writeTools(q, d, gen, forceFormat, &marks)
	writeToolChoice(q, d, gen, think.Budget, forceFormat)
	d.OptRaw("thinking", think.JSON)
	schema := q.Format.Kind == ir.FormatSchema && gen.Schema
	if think.Effort != "" || schema {
		d.Open("output_config", '{')
		d.OptStr("effort", think.Effort)
		if schema {
			d.Open("format", '{')
			d.Str("type", "json_schema")
			d.Raw("schema", q.CloseSchema(q.FieldName(ir.FieldFormat), q.DescribedSchema()))
			d.Close('}')
		}
		d.Close('}')
	}

	if gen.Sampling && !think.Budget {
		temperature := q.Temperature
		if temperature != "" && gjson.Parse(temperature).Num > 1 {
			temperature = "1"
		}
		d.OptRaw("temperature", temperature)
		if gen.OneSampling && temperature != "" {
			q.DropIfSet("top_p", q.TopP)
		} else {
			d.OptRaw("top_p", q.TopP)
		}
		d.OptRaw("top_k", q.TopK)
	} else {
		q.DropIfSet("temperature", q.Temperature)
		q.DropIfSet("top_p", q.TopP)
		q.DropIfSet("top_k", q.TopK)
	}
	if stop := q.StopSequences(); len(stop) > 0 {
		d.Raw("stop_sequences", ir.QuoteList(stop))
	}
	if q.User != "" {
		d.Open("metadata", '{')
		d.Str("user_id", q.User)
		d.Close('}')
	}
	q.DropIfSet("metadata", q.Metadata)
	switch q.ServiceTier {
	case "":
	case "auto":
		d.Str("service_tier", "auto")
	case "default":
		d.Str("service_tier", "standard_only")
	default:
		q.Drop("service_tier")
	}
	q.DropIfSet("presence_penalty", q.PresencePenalty)
	q.DropIfSet("frequency_penalty", q.FrequencyPenalty)
	q.DropIfSet("seed", q.Seed)
	q.DropOpenAI()
	if q.Stream && v.Anthropic != "bedrock-2023-05-31" {
		d.Bool("stream", true)
	}
	d.Close('}')
	return nil
}

func writeSystem(q *ir.Request, d *ir.Writer, lead int, marks *int) {
	marked := false
	for _, m := range q.Messages[:lead] {
		for i := range m.Blocks {
			marked = marked || m.Blocks[i].Cache != ""
		}
	}
	text := q.SystemText(lead)
	if q.Format.Kind == ir.FormatObject {
		// There is no JSON mode: the prompt asks for JSON.
		hint := "Answer with one JSON object and nothing else."
		if text == "" {
			text = hint
		} else {
			text += "\n\n" + hint
		}
		if marked {
			q.Messages[lead-1].Blocks = append(q.Messages[lead-1].Blocks, ir.Block{Text: hint})
		}
	}
	if text == "" {
		return
	}
	if !marked {
		d.Str("system", text)
		return
	}
	d.Open("system", '[')
	for _, m := range q.Messages[:lead] {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Text != "" {
				writeText(q, d, b, marks)
			}
		}
	}
	d.Close(']')
}

func writeText(q *ir.Request, d *ir.Writer, b *ir.Block, marks *int) {
	d.Open("", '{')
	d.Str("type", "text")
	d.Str("text", b.Text)
	writeCacheControl(q, d, b.Cache, marks)
	d.Close('}')
}

// writeCacheControl ends a cached prefix. Four are allowed.
func writeCacheControl(q *ir.Request, d *ir.Writer, ttl string, marks *int) {
	if ttl == "" {
		return
	}
	if *marks++; *marks > 4 {
		q.DropField(ir.FieldCache)
		return
	}
	d.Open("cache_control", '{')
	d.Str("type", "ephemeral")
	if ttl == "1h" {
		d.Str("ttl", ttl)
	}
	d.Close('}')
}

// writeMessages merges adjacent messages of one role, begins with a user
// message and puts tool results before the other blocks of their turn.
func writeMessages(q *ir.Request, d *ir.Writer, opt *ir.Options, lead int, marks *int) error {
	d.Open("messages", '[')
	list := q.Messages[lead:]
	first := true
	for i := 0; i < len(list); {
		r := list[i].Role
		turn := ir.Turn(list[i:])
		i += len(turn)
		if r == ir.RoleAssistant && i == len(list) {
			ir.TrimPrefill(turn)
		}
		at := len(d.Buf)
		name := "user"
		if r == ir.RoleAssistant {
			name = "assistant"
			if first {
				d.Open("", '{')
				d.Str("role", "user")
				d.Str("content", "(The conversation so far is not shown.)")
				d.Close('}')
			}
		}
		d.Open("", '{')
		d.Str("role", name)
		d.Open("content", '[')
		start := len(d.Buf)
		if err := ir.ResultsFirst(turn, func(b *ir.Block) error { return writeBlock(q, d, b, opt, marks) }); err != nil {
			return err
		}
		if len(d.Buf) == start {
			d.Buf = d.Buf[:at] // all of its blocks were left out
			continue
		}
		first = false
		d.Close(']')
		d.Close('}')
	}
	d.Close(']')
	return nil
}

func writeBlock(q *ir.Request, d *ir.Writer, b *ir.Block, opt *ir.Options, marks *int) error {
	switch b.Kind {
	case ir.TextBlock, ir.RefusalBlock:
		if b.Text != "" {
			writeText(q, d, b, marks)
		}
	case ir.ImageBlock:
		d.Open("", '{')
		d.Str("type", "image")
		if err := writeSource(d, b); err != nil {
			return err
		}
		writeCacheControl(q, d, b.Cache, marks)
		d.Close('}')
	case ir.DocumentBlock:
		if strings.HasPrefix(b.MediaType, "text/") && b.Text == "" {
			b.DecodeText()
		}
		d.Open("", '{')
		d.Str("type", "document")
		if err := writeSource(d, b); err != nil {
			return err
		}
		d.OptStr("title", b.Title)
		writeCacheControl(q, d, b.Cache, marks)
		d.Close('}')
	case ir.AudioBlock:
		return apierr.Invalid("messages", "This model does not accept audio.")
	case ir.ToolCallBlock:
		d.Open("", '{')
		d.Str("type", "tool_use")
		d.Str("id", ir.SafeCallID(b.ID))
		d.Str("name", b.Name)
		d.Raw("input", ir.ObjectArguments(b.Arguments))
		writeCacheControl(q, d, b.Cache, marks)
		d.Close('}')
	case ir.ToolResultBlock:
		d.Open("", '{')
		d.Str("type", "tool_result")
		d.Str("tool_use_id", ir.SafeCallID(b.ID))
		if len(b.Parts) > 0 {
			d.Open("content", '[')
			for i := range b.Parts {
				if err := writeBlock(q, d, &b.Parts[i], opt, marks); err != nil {
					return err
				}
			}
			d.Close(']')
		}
		if b.IsError {
			d.Bool("is_error", true)
		}
		writeCacheControl(q, d, b.Cache, marks)
		d.Close('}')
	case ir.ThinkingBlock:
		if b.Issuer != opt.IssuerOr(ir.IssuerAnthropic) || b.Signature == "" {
			q.DropField(ir.FieldThinking)
			return nil
		}
		d.Open("", '{')
		if b.Redacted {
			d.Str("type", "redacted_thinking")
			d.Str("data", b.Signature)
		} else {
			d.Str("type", "thinking")
			d.Str("thinking", b.Text)
			d.Str("signature", b.Signature)
		}
		d.Close('}')
	}
	return nil
}

func writeSource(d *ir.Writer, b *ir.Block) error {
	if b.FileID != "" {
		return apierr.Invalid("messages", "Files stored at another provider cannot be used with this model.")
	}
	d.Open("source", '{')
	switch {
	case b.URL != "":
		d.Str("type", "url")
		d.Str("url", b.URL)
	case b.Text != "" || strings.HasPrefix(b.MediaType, "text/"):
		d.Str("type", "text")
		d.Str("media_type", "text/plain")
		d.Str("data", b.Text)
	default:
		d.Str("type", "base64")
		d.Str("media_type", b.MediaType)
		d.Str("data", b.Data)
	}
	d.Close('}')
	return nil
}
