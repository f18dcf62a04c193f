package gemini

import (
	"strings"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// unsignedCall replaces an unavailable thought signature, as for calls of
// another model. Source: ai.google.dev, "Thought signatures".
const unsignedCall = "skip_thought_signature_validator"

// WriteRequest writes a generateContent request (docs/reference/api-shapes.md,
// 10). The model and the streaming method are in its URL.
func WriteRequest(q *ir.Request, d *ir.Writer, opt *ir.Options) error {
	d.Open("", '{')
	lead := q.Lead()
	if text := q.SystemText(lead); text != "" {
		d.Open("systemInstruction", '{')
		d.Open("parts", '[')
		writeText(d, text)
		d.Close(']')
		d.Close('}')
	}
	for i := range q.Messages {
		q.DropCaches(q.Messages[i].Blocks)
	}
	signs := signsCalls(opt.Model)
	d.Open("contents", '[')
	list := q.Messages[lead:]
	for i := 0; i < len(list); {
		model := list[i].Role == ir.RoleAssistant
		at := len(d.Buf)
		d.Open("", '{')
		if model {
			d.Str("role", "model")
		} else {
			d.Str("role", "user")
		}
		d.Open("parts", '[')
		start := len(d.Buf)
		for ; i < len(list) && (list[i].Role == ir.RoleAssistant) == model; i++ {
			var err error
			if model {
				writeModel(q, d, list[i].Blocks, opt, signs)
			} else {
				err = writeUser(q, d, list[i].Blocks)
			}
			if err != nil {
				return err
			}
		}
		if len(d.Buf) == start {
			d.Buf = d.Buf[:at]
			continue
		}
		d.Close(']')
		d.Close('}')
	}
	d.Close(']')
	writeTools(q, d)
	writeConfig(q, d, opt)
	q.DropOpenAI()
	q.DropIfSet("metadata", q.Metadata)
	if q.User != "" {
		q.DropField(ir.FieldUser)
	}
	q.DropIfSet("service_tier", q.ServiceTier)
	d.Close('}')
	return nil
}

func writeText(d *ir.Writer, text string) {
	d.Open("", '{')
	d.Str("text", text)
	d.Close('}')
}

func writeUser(q *ir.Request, d *ir.Writer, blocks []ir.Block) error {
	for i := range blocks {
		b := &blocks[i]
		if b.Kind != ir.ToolResultBlock {
			continue
		}
		name := b.Name
		if name == "" {
			if name = q.ToolName(b.ID); name == "" {
				name = b.ID
			}
		}
		d.Open("", '{')
		d.Open("functionResponse", '{')
		d.Str("name", name)
		d.Open("response", '{')
		field := "output"
		if b.IsError {
			field = "error"
		}
		d.Str(field, ir.JoinTexts(b.Parts, "\n"))
		d.Close('}')
		d.Close('}')
		d.Close('}')
	}
	for i := range blocks {
		b := &blocks[i]
		if b.Kind != ir.ToolResultBlock {
			if err := writePart(d, b); err != nil {
				return err
			}
			continue
		}
		for j := range b.Parts {
			if b.Parts[j].Kind != ir.TextBlock {
				if err := writePart(d, &b.Parts[j]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// writePart writes a text, data or a URL of any kind.
func writePart(d *ir.Writer, b *ir.Block) error {
	switch b.Kind {
	case ir.TextBlock, ir.RefusalBlock:
		if b.Text != "" {
			writeText(d, b.Text)
		}
		return nil
	case ir.ImageBlock, ir.DocumentBlock, ir.AudioBlock:
	default:
		return nil
	}
	if b.FileID != "" {
		return apierr.Invalid("messages", "Files stored at another provider cannot be used with this model.")
	}
	if b.Text != "" {
		writeText(d, b.Text)
		return nil
	}
	writeMedia(d, b)
	return nil
}

// mediaTypeOf returns the media type of a URL by its file extension.
func mediaTypeOf(b *ir.Block) string {
	path := b.URL
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	ext := ""
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		ext = strings.ToLower(path[i+1:])
	}
	switch ext {
	case "png", "webp", "gif", "heic":
		return "image/" + ext
	case "pdf":
		return "application/pdf"
	case "txt", "md":
		return "text/plain"
	}
	if b.Kind == ir.DocumentBlock {
		return "application/pdf"
	}
	return "image/jpeg"
}

// writeModel writes a turn of the model. A signature goes with the call or text
// after it; thinking texts are not sent back.
func writeModel(q *ir.Request, d *ir.Writer, blocks []ir.Block, opt *ir.Options, signs bool) {
	own := opt.IssuerOr(ir.IssuerGemini)
	sig := ""
	calls := 0
	for i := range blocks {
		b := &blocks[i]
		switch b.Kind {
		case ir.ThinkingBlock:
			if b.Issuer == own && b.Signature != "" {
				sig = b.Signature
			} else {
				q.DropField(ir.FieldThinking)
			}
		case ir.TextBlock, ir.RefusalBlock:
			if b.Text == "" {
				continue
			}
			d.Open("", '{')
			d.Str("text", b.Text)
			d.OptStr("thoughtSignature", sig)
			d.Close('}')
			sig = ""
		case ir.ToolCallBlock:
			// A chat client's extra_content names Google as the issuer, without
			// the provider.
			if b.Signature != "" && (b.Issuer == own || b.Issuer == ir.IssuerGemini) {
				sig = b.Signature
			}
			// Only the first of parallel calls is signed.
			if sig == "" && calls == 0 && signs {
				sig = unsignedCall
			}
			calls++
			d.Open("", '{')
			d.Open("functionCall", '{')
			d.Str("name", b.Name)
			d.Raw("args", ir.ObjectArguments(b.Arguments))
			d.Close('}')
			d.OptStr("thoughtSignature", sig)
			d.Close('}')
			sig = ""
		default:
			_ = writePart(d, b) // an assistant has no stored files
		}
	}
	if sig != "" {
		d.Open("", '{')
		d.Str("text", "")
		d.Str("thoughtSignature", sig)
		d.Close('}')
	}
}

func writeTools(q *ir.Request, d *ir.Writer) {
	tools := q.Tools
	mode := [...]string{ir.ChoiceUnset: "", ir.ChoiceAuto: "AUTO", ir.ChoiceAny: "ANY", ir.ChoiceTool: "ANY",
		ir.ChoiceNone: "NONE"}[q.ToolChoice.Mode]
	names := q.ToolChoice.Allowed
	if q.ToolChoice.Mode == ir.ChoiceTool {
		names = []string{q.ToolChoice.Name}
	} else if len(names) > 0 && mode == "AUTO" {
		tools, names = ir.FilterTools(tools, names), nil
	}
	if len(tools) == 0 {
		if q.SearchWeb {
			d.Raw("tools", `[{"googleSearch":{}}]`)
			q.DropWeb(true, true, true, true, true)
		}
		return
	}
	if q.SearchWeb {
		q.DropField(ir.FieldSearch) // not supported together with functions
	}
	d.Open("tools", '[')
	d.Open("", '{')
	d.Open("functionDeclarations", '[')
	for i := range tools {
		t := &tools[i]
		if t.Cache != "" {
			q.DropField(ir.FieldCache)
		}
		d.Open("", '{')
		d.Str("name", t.Name)
		d.OptStr("description", t.Description)
		if t.Schema != "" {
			d.Raw("parametersJsonSchema", ir.WithoutSchemaMarks(t.Schema))
		}
		q.DropStrict(t)
		d.Close('}')
	}
	d.Close(']')
	d.Close('}')
	d.Close(']')
	if mode != "" {
		d.Open("toolConfig", '{')
		d.Open("functionCallingConfig", '{')
		d.Str("mode", mode)
		if len(names) > 0 {
			d.Raw("allowedFunctionNames", ir.QuoteList(names))
		}
		d.Close('}')
		d.Close('}')
	}
	if q.Parallel == "false" {
		q.DropField(ir.FieldParallel)
	}
}

func writeConfig(q *ir.Request, d *ir.Writer, opt *ir.Options) {
	d.Open("generationConfig", '{')
	start := len(d.Buf)
	if q.MaxTokens > 0 {
		d.Int("maxOutputTokens", q.MaxTokens)
	}
	d.OptRaw("temperature", q.Temperature)
	d.OptRaw("topP", q.TopP)
	d.OptRaw("topK", q.TopK)
	if len(q.Stop) > 5 {
		q.DropField(ir.FieldStop)
		q.Stop = q.Stop[:5]
	}
	if len(q.Stop) > 0 {
		d.Raw("stopSequences", ir.QuoteList(q.Stop))
	}
	d.OptRaw("seed", q.Seed)
	d.OptRaw("presencePenalty", q.PresencePenalty)
	d.OptRaw("frequencyPenalty", q.FrequencyPenalty)
	switch q.Format.Kind {
	case ir.FormatObject:
		d.Str("responseMimeType", "application/json")
	case ir.FormatSchema:
		d.Str("responseMimeType", "application/json")
		d.Raw("responseJsonSchema", ir.WithoutSchemaMarks(q.DescribedSchema()))
	}
	d.OptRaw("thinkingConfig", thinkingConfig(q, opt.Model))
	if len(d.Buf) == start {
		d.Buf = d.Buf[:start-len(`,"generationConfig":{`)]
		return
	}
	d.Close('}')
}
