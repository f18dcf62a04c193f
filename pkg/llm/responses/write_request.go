package responses

import (
	"cmp"
	"strings"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// WriteRequest writes a Responses request that leaves no state at the provider:
// store is false, and reasoning is returned encrypted.
func WriteRequest(q *ir.Request, d *ir.Writer, opt *ir.Options) error {
	reasons := opt.Reasoning || ir.OpenAIReasons(opt.Model)
	d.Open("", '{')
	d.Str("model", opt.Model)
	lead := q.Lead()
	d.OptStr("instructions", q.SystemText(lead))
	for i := range q.Messages[:lead] {
		q.DropCaches(q.Messages[i].Blocks)
	}
	d.Open("input", '[')
	for i := range q.Messages[lead:] {
		m := &q.Messages[lead+i]
		q.DropCaches(m.Blocks)
		var err error
		if m.Role == ir.RoleAssistant {
			writeAssistant(q, d, m.Blocks, opt)
		} else {
			err = writeUser(d, m)
		}
		if err != nil {
			return err
		}
	}
	d.Close(']')
	if n := q.MaxTokens; n > 0 {
		d.Int("max_output_tokens", max(n, 16)) // the minimum
	}
	if reasons {
		q.DropIfSet("temperature", q.Temperature)
		q.DropIfSet("top_p", q.TopP)
	} else {
		d.OptRaw("temperature", q.Temperature)
		d.OptRaw("top_p", q.TopP)
	}
	q.DropIfSet("top_k", q.TopK)
	if len(q.Stop) > 0 {
		q.DropField(ir.FieldStop)
	}
	q.DropIfSet("seed", q.Seed)
	q.DropIfSet("logit_bias", q.LogitBias)
	q.DropIfSet("presence_penalty", q.PresencePenalty)
	q.DropIfSet("frequency_penalty", q.FrequencyPenalty)
	include := ""
	if reasons {
		include = `"reasoning.encrypted_content"`
	}
	if q.Logprobs {
		if include != "" {
			include += ","
		}
		include += `"message.output_text.logprobs"`
		d.OptRaw("top_logprobs", q.TopLogprobs)
	}
	if include != "" {
		d.Raw("include", "["+include+"]")
	}
	writeTools(q, d)
	writeTextSettings(q, d)
	if name := q.EffortName(); name != "" || q.Think != ir.ThinkUnset {
		if !reasons {
			if name != "none" {
				q.DropField(ir.FieldEffort)
			}
		} else {
			d.Open("reasoning", '{')
			d.OptStr("effort", q.OpenAIEffort(opt.Model, name))
			if name != "none" {
				// Clients of other dialects show the thinking.
				d.Str("summary", "auto")
			}
			d.Close('}')
		}
	}
	d.OptRaw("metadata", q.Metadata)
	d.OptStr("safety_identifier", q.User)
	d.OptStr("user", q.EndUser)
	d.OptStr("service_tier", q.ServiceTier)
	d.OptStr("prompt_cache_key", q.CacheKey)
	if q.Store == "true" {
		d.Bool("store", true)
	} else {
		d.Bool("store", false)
	}
	if q.Stream {
		d.Bool("stream", true)
	}
	d.Close('}')
	return nil
}

func writeUser(d *ir.Writer, m *ir.Message) error {
	rest := ir.WithoutResults(m.Blocks)
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Kind != ir.ToolResultBlock {
			continue
		}
		d.Open("", '{')
		kind := "function_call_output"
		if b.Custom {
			kind = "custom_tool_call_output"
		}
		d.Str("type", kind)
		d.Str("call_id", ir.ShortCallID(b.ID, 64))
		plain := true
		for _, p := range b.Parts {
			plain = plain && p.Kind == ir.TextBlock
		}
		if plain {
			d.Str("output", ir.ResultText(b))
		} else {
			d.Open("output", '[')
			if b.IsError {
				writeText(d, "Error:")
			}
			if err := writeParts(d, b.Parts); err != nil {
				return err
			}
			d.Close(']')
		}
		d.Close('}')
	}
	if len(rest) == 0 && len(m.Blocks) > 0 {
		return nil
	}
	d.Open("", '{')
	if m.Role == ir.RoleSystem {
		d.Str("role", "developer")
	} else {
		d.Str("role", "user")
	}
	if len(rest) == 0 || len(rest) == 1 && rest[0].Kind == ir.TextBlock {
		d.Str("content", ir.JoinTexts(rest, ""))
		d.Close('}')
		return nil
	}
	d.Open("content", '[')
	if err := writeParts(d, rest); err != nil {
		return err
	}
	d.Close(']')
	d.Close('}')
	return nil
}

func writeText(d *ir.Writer, text string) {
	d.Open("", '{')
	d.Str("type", "input_text")
	d.Str("text", text)
	d.Close('}')
}

func writeParts(d *ir.Writer, blocks []ir.Block) error {
	for i := range blocks {
		b := &blocks[i]
		switch b.Kind {
		case ir.TextBlock:
			writeText(d, b.Text)
		case ir.ImageBlock:
			d.Open("", '{')
			d.Str("type", "input_image")
			if b.FileID != "" {
				d.Str("file_id", b.FileID)
			} else {
				d.Str("image_url", b.URI())
			}
			if b.Detail != "" {
				d.Str("detail", b.Detail)
			} else {
				d.Str("detail", "auto")
			}
			d.Close('}')
		case ir.DocumentBlock:
			if b.Text != "" {
				writeText(d, b.Text)
				break
			}
			d.Open("", '{')
			d.Str("type", "input_file")
			switch {
			case b.FileID != "":
				d.Str("file_id", b.FileID)
			case b.URL != "":
				d.Str("file_url", b.URL)
			default:
				title := cmp.Or(b.Title, "document.pdf")
				d.Str("filename", title)
				d.Str("file_data", b.URI())
			}
			d.Close('}')
		case ir.AudioBlock:
			return apierr.Invalid("messages", "This model does not accept audio.")
		}
	}
	return nil
}

func writeAssistant(q *ir.Request, d *ir.Writer, blocks []ir.Block, opt *ir.Options) {
	for i := range blocks {
		b := &blocks[i]
		switch b.Kind {
		case ir.TextBlock:
			if b.Text != "" {
				d.Open("", '{')
				d.Str("role", "assistant")
				d.Str("content", b.Text)
				d.Close('}')
			}
		case ir.RefusalBlock:
			d.Open("", '{')
			d.Str("type", "message")
			d.Str("role", "assistant")
			d.Open("content", '[')
			d.Open("", '{')
			d.Str("type", "refusal")
			d.Str("refusal", b.Text)
			d.Close('}')
			d.Close(']')
			d.Close('}')
		case ir.ThinkingBlock:
			id, sig, ok := strings.Cut(b.Signature, ":")
			if b.Issuer != opt.IssuerOr(ir.IssuerOpenAI) || !ok || sig == "" {
				q.DropField(ir.FieldThinking)
				continue
			}
			d.Open("", '{')
			d.Str("type", "reasoning")
			d.Str("id", id)
			d.Open("summary", '[')
			if b.Text != "" {
				d.Open("", '{')
				d.Str("type", "summary_text")
				d.Str("text", b.Text)
				d.Close('}')
			}
			d.Close(']')
			d.Str("encrypted_content", sig)
			d.Close('}')
		case ir.ToolCallBlock:
			d.Open("", '{')
			if b.Custom {
				d.Str("type", "custom_tool_call")
				d.Str("call_id", ir.ShortCallID(b.ID, 64))
				d.Str("name", b.Name)
				d.Str("input", b.Arguments)
			} else {
				args := cmp.Or(b.Arguments, "{}")
				d.Str("type", "function_call")
				d.Str("call_id", ir.ShortCallID(b.ID, 64))
				d.Str("name", b.Name)
				d.Str("arguments", args)
			}
			d.Close('}')
		}
	}
}

func writeTools(q *ir.Request, d *ir.Writer) {
	if len(q.Tools) == 0 && !q.SearchWeb {
		return
	}
	d.Open("tools", '[')
	for i := range q.Tools {
		t := &q.Tools[i]
		if t.Cache != "" {
			q.DropField(ir.FieldCache)
		}
		if t.Custom != "" {
			d.Raw("", t.Custom)
			continue
		}
		d.Open("", '{')
		d.Str("type", "function")
		d.Str("name", t.Name)
		d.OptStr("description", t.Description)
		d.Raw("parameters", t.SchemaOrEmpty())
		// If omitted, it is true in this dialect and false in the others.
		d.Bool("strict", t.Strict == "true")
		d.Close('}')
	}
	if q.SearchWeb {
		d.Open("", '{')
		d.Str("type", "web_search")
		d.OptRaw("search_context_size", q.WebSearch.Size)
		d.OptRaw("user_location", q.WebSearch.Location)
		if q.WebSearch.Allowed != "" {
			d.Raw("filters", `{"allowed_domains":`+q.WebSearch.Allowed+`}`)
		}
		d.Close('}')
		q.DropWeb(false, false, false, true, true)
	}
	d.Close(']')
	switch c := &q.ToolChoice; {
	case len(c.Allowed) > 0:
		d.Open("tool_choice", '{')
		d.Str("type", "allowed_tools")
		mode := "auto"
		if c.Mode == ir.ChoiceAny {
			mode = "required"
		}
		d.Str("mode", mode)
		d.Open("tools", '[')
		custom := q.CustomNames()
		for _, n := range c.Allowed {
			kind := "function"
			if custom[n] {
				kind = "custom"
			}
			d.Open("", '{')
			d.Str("type", kind)
			d.Str("name", n)
			d.Close('}')
		}
		d.Close(']')
		d.Close('}')
	case c.Mode == ir.ChoiceTool:
		kind := "function"
		if c.Custom {
			kind = "custom"
		}
		d.Open("tool_choice", '{')
		d.Str("type", kind)
		d.Str("name", c.Name)
		d.Close('}')
	case c.Mode != ir.ChoiceUnset:
		d.Str("tool_choice", [...]string{ir.ChoiceAuto: "auto", ir.ChoiceAny: "required", ir.ChoiceNone: "none",
			ir.ChoiceTool: ""}[c.Mode])
	}
	d.OptRaw("parallel_tool_calls", q.Parallel)
}

func writeTextSettings(q *ir.Request, d *ir.Writer) {
	f := &q.Format
	if f.Kind == ir.FormatUnset && q.Verbosity == "" {
		return
	}
	d.Open("text", '{')
	if f.Kind != ir.FormatUnset {
		d.Open("format", '{')
		switch f.Kind {
		case ir.FormatText:
			d.Str("type", "text")
		case ir.FormatObject:
			d.Str("type", "json_object")
		case ir.FormatSchema:
			d.Str("type", "json_schema")
			d.Str("name", f.NameOr("output"))
			d.OptStr("description", f.Description)
			d.Raw("schema", f.Schema)
			d.Bool("strict", f.Strict == "true")
		}
		d.Close('}')
	}
	d.OptStr("verbosity", q.Verbosity)
	d.Close('}')
}
