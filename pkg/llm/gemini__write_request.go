package llm

import (
	"strings"

	"weir/pkg/wire/apierr"
)

// noSignature stands for a thought signature that is not to be had, as for
// calls that another model made; the vendor documents it for that.
const noSignature = "skip_thought_signature_validator"

// writeGeminiRequest writes a generateContent request
// (docs/reference/api-shapes.md, 10). The model and the wish to stream are in
// its address.
func writeGeminiRequest(q *request, d *doc, opt *Options) error {
	d.open("", '{')
	lead := q.lead()
	if text := q.systemText(lead); text != "" {
		d.open("systemInstruction", '{')
		d.open("parts", '[')
		geminiText(d, text)
		d.close(']')
		d.close('}')
	}
	for i := range q.messages {
		q.dropCaches(q.messages[i].blocks)
	}
	v, ok := geminiVersion(opt.Model)
	signs := !ok || !v.before(version{3, 0})
	d.open("contents", '[')
	list := q.messages[lead:]
	for i := 0; i < len(list); {
		model := list[i].role == assistant
		at := len(d.b)
		d.open("", '{')
		if model {
			d.str("role", "model")
		} else {
			d.str("role", "user")
		}
		d.open("parts", '[')
		start := len(d.b)
		for ; i < len(list) && (list[i].role == assistant) == model; i++ {
			var err error
			if model {
				writeGeminiModel(q, d, list[i].blocks, opt, signs)
			} else {
				err = writeGeminiUser(q, d, list[i].blocks)
			}
			if err != nil {
				return err
			}
		}
		if len(d.b) == start {
			d.b = d.b[:at]
			continue
		}
		d.close(']')
		d.close('}')
	}
	d.close(']')
	writeGeminiTools(q, d)
	writeGeminiConfig(q, d, opt)
	q.dropOpenAI()
	q.dropSet("metadata", q.metadata)
	if q.user != "" {
		q.dropField(fieldUser)
	}
	q.dropSet("service_tier", q.tier)
	d.close('}')
	return nil
}

func geminiText(d *doc, text string) {
	d.open("", '{')
	d.str("text", text)
	d.close('}')
}

func writeGeminiUser(q *request, d *doc, blocks []block) error {
	for i := range blocks {
		b := &blocks[i]
		if b.kind != toolResultBlock {
			continue
		}
		name := b.name
		if name == "" {
			if name = q.toolName(b.id); name == "" {
				name = b.id
			}
		}
		d.open("", '{')
		d.open("functionResponse", '{')
		d.str("name", name)
		d.open("response", '{')
		field := "output"
		if b.failed {
			field = "error"
		}
		d.str(field, joinTexts(b.parts, "\n"))
		d.close('}')
		d.close('}')
		d.close('}')
	}
	for i := range blocks {
		b := &blocks[i]
		if b.kind != toolResultBlock {
			if err := geminiPart(d, b); err != nil {
				return err
			}
			continue
		}
		for j := range b.parts {
			if b.parts[j].kind != textBlock {
				if err := geminiPart(d, &b.parts[j]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// geminiPart writes a text, or bytes or an address of any kind.
func geminiPart(d *doc, b *block) error {
	switch b.kind {
	case textBlock, refusalBlock:
		if b.text != "" {
			geminiText(d, b.text)
		}
		return nil
	case imageBlock, documentBlock, audioBlock:
	default:
		return nil
	}
	if b.file != "" {
		return apierr.Invalid("messages", "Files stored at another provider cannot be used with this model.")
	}
	if b.text != "" {
		geminiText(d, b.text)
		return nil
	}
	d.open("", '{')
	if b.url != "" {
		d.open("fileData", '{')
		d.str("mimeType", mimeOf(b))
		d.str("fileUri", b.url)
	} else {
		d.open("inlineData", '{')
		d.str("mimeType", b.mime)
		d.str("data", b.data)
	}
	d.close('}')
	d.close('}')
	return nil
}

// mimeOf guesses the media type of an address by its ending.
func mimeOf(b *block) string {
	path := b.url
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
	if b.kind == documentBlock {
		return "application/pdf"
	}
	return "image/jpeg"
}

// writeGeminiModel writes a turn of the model. A signature stands before the
// call or text that it belongs to; thoughts themselves are not sent back.
func writeGeminiModel(q *request, d *doc, blocks []block, opt *Options, signs bool) {
	own := opt.issuer(issuerGemini)
	sig := ""
	calls := 0
	for i := range blocks {
		b := &blocks[i]
		switch b.kind {
		case thinkingBlock:
			if b.issuer == own && b.sig != "" {
				sig = b.sig
			} else {
				q.dropField(fieldThinking)
			}
		case textBlock, refusalBlock:
			if b.text == "" {
				continue
			}
			d.open("", '{')
			d.str("text", b.text)
			d.opt("thoughtSignature", sig)
			d.close('}')
			sig = ""
		case toolUseBlock:
			// A chat client's extra_content names Google alone as the issuer.
			if b.sig != "" && (b.issuer == own || b.issuer == issuerGemini) {
				sig = b.sig
			}
			// Only the first of parallel calls is signed.
			if sig == "" && calls == 0 && signs {
				sig = noSignature
			}
			calls++
			args, ok := object(b.args)
			if !ok {
				args = `{"_raw":` + quoted(b.args) + `}`
			}
			d.open("", '{')
			d.open("functionCall", '{')
			d.str("name", b.name)
			d.raw("args", args)
			d.close('}')
			d.opt("thoughtSignature", sig)
			d.close('}')
			sig = ""
		default:
			_ = geminiPart(d, b) // an assistant has no stored files
		}
	}
	if sig != "" {
		d.open("", '{')
		d.str("text", "")
		d.str("thoughtSignature", sig)
		d.close('}')
	}
}

func writeGeminiTools(q *request, d *doc) {
	tools := q.tools
	mode := [...]string{choiceUnset: "", choiceAuto: "AUTO", choiceAny: "ANY", choiceTool: "ANY", choiceNone: "NONE"}[q.choice.mode]
	names := q.choice.allowed
	if q.choice.mode == choiceTool {
		names = []string{q.choice.name}
	} else if len(names) > 0 && mode == "AUTO" {
		tools, names = only(tools, names), nil
	}
	if len(tools) == 0 {
		if q.search {
			d.raw("tools", `[{"googleSearch":{}}]`)
			q.dropWeb(true, true, true, true, true)
		}
		return
	}
	if q.search {
		q.dropField(fieldSearch) // not together with functions
	}
	d.open("tools", '[')
	d.open("", '{')
	d.open("functionDeclarations", '[')
	for i := range tools {
		t := &tools[i]
		if t.cache != "" {
			q.dropField(fieldCache)
		}
		d.open("", '{')
		d.str("name", t.name)
		d.opt("description", t.description)
		if t.schema != "" {
			d.raw("parametersJsonSchema", withoutMarks(t.schema))
		}
		q.dropStrict(t)
		d.close('}')
	}
	d.close(']')
	d.close('}')
	d.close(']')
	if mode != "" {
		d.open("toolConfig", '{')
		d.open("functionCallingConfig", '{')
		d.str("mode", mode)
		if len(names) > 0 {
			d.raw("allowedFunctionNames", quoteList(names))
		}
		d.close('}')
		d.close('}')
	}
	if q.parallel == "false" {
		q.dropField(fieldParallel)
	}
}

func writeGeminiConfig(q *request, d *doc, opt *Options) {
	d.open("generationConfig", '{')
	start := len(d.b)
	if q.maxTokens > 0 {
		d.int("maxOutputTokens", q.maxTokens)
	}
	d.optRaw("temperature", q.temperature)
	d.optRaw("topP", q.topP)
	d.optRaw("topK", q.topK)
	if len(q.stop) > 5 {
		q.dropField(fieldStop)
		q.stop = q.stop[:5]
	}
	if len(q.stop) > 0 {
		d.raw("stopSequences", quoteList(q.stop))
	}
	d.optRaw("seed", q.seed)
	d.optRaw("presencePenalty", q.presence)
	d.optRaw("frequencyPenalty", q.frequency)
	switch q.format.kind {
	case formatObject:
		d.str("responseMimeType", "application/json")
	case formatSchema:
		d.str("responseMimeType", "application/json")
		d.raw("responseJsonSchema", withoutMarks(q.describedSchema()))
	}
	d.optRaw("thinkingConfig", geminiThinking(q, opt.Model))
	if len(d.b) == start {
		d.b = d.b[:start-len(`,"generationConfig":{`)]
		return
	}
	d.close('}')
}
