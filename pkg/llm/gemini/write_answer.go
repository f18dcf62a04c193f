package gemini

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// WriteAnswer writes a GenerateContentResponse.
func WriteAnswer(a *ir.Answer, d *ir.Writer, opt *ir.Options) {
	d.Open("", '{')
	d.Open("candidates", '[')
	d.Open("", '{')
	d.Open("content", '{')
	d.Open("parts", '[')
	var text ir.Joiner // of adjacent texts
	var sources grounded
	var thought *ir.Block // the last one since the last call
	calls := 0
	for i := range a.Blocks {
		b := &a.Blocks[i]
		switch b.Kind {
		case ir.TextBlock, ir.RefusalBlock:
			sources.begin()
			sources.add(b.Text)
			for _, c := range b.Citations {
				sources.cite(c)
			}
			text.Add("", b.Text)
			continue
		case ir.ThinkingBlock:
			if thought = b; opt.HideThoughts {
				continue
			}
		}
		writeTextPart(d, &text)
		switch b.Kind {
		case ir.ThinkingBlock:
			sig := ""
			if i+1 == len(a.Blocks) || a.Blocks[i+1].Kind != ir.ToolCallBlock || a.Blocks[i+1].Signature != "" {
				sig = encodeSignature(b, "")
			}
			if b.Text == "" && sig == "" {
				break
			}
			d.Open("", '{')
			d.Str("text", b.Text)
			d.Bool("thought", true)
			d.OptStr("thoughtSignature", sig)
			d.Close('}')
		case ir.ImageBlock:
			writeMedia(d, b)
		case ir.ToolCallBlock:
			writeCall(d, b, callSignature(b, thought, calls == 0))
			thought = nil
			calls++
		}
	}
	writeTextPart(d, &text)
	d.Close(']')
	d.Str("role", "model")
	d.Close('}')
	d.Str("finishReason", finishReason(a.FinishReason()))
	d.OptStr("finishMessage", a.Explanation)
	d.Int("index", 0)
	sources.write(d)
	if a.Logprobs != "" {
		writeLogprobs(d, []string{a.Logprobs})
	}
	d.Close('}')
	d.Close(']')
	writeUsage(d, &a.Usage)
	d.Str("modelVersion", opt.ModelOr(a.Model))
	d.Str("responseId", opt.AnswerID("", a.ID))
	d.Close('}')
}

func writeTextPart(d *ir.Writer, text *ir.Joiner) {
	if t := text.Text(); t != "" {
		writeText(d, t)
	}
	*text = ir.Joiner{}
}

// writeCall writes a function call.
func writeCall(d *ir.Writer, b *ir.Block, signature string) {
	d.Open("", '{')
	d.Open("functionCall", '{')
	d.OptStr("id", b.ID)
	d.Str("name", b.Name)
	d.Raw("args", ir.OneLine(ir.ObjectArguments(b.Arguments)))
	d.Close('}')
	d.OptStr("thoughtSignature", signature)
	d.Close('}')
}

// writeMedia writes a file by its address or its content.
func writeMedia(d *ir.Writer, b *ir.Block) {
	d.Open("", '{')
	if b.URL != "" {
		d.Open("fileData", '{')
		d.Str("mimeType", mediaTypeOf(b))
		d.Str("fileUri", b.URL)
	} else {
		d.Open("inlineData", '{')
		d.Str("mimeType", b.MediaType)
		d.Str("data", b.Data)
	}
	d.Close('}')
	d.Close('}')
}

func finishReason(f ir.Finish) string {
	switch f {
	case ir.FinishLength, ir.FinishWindow:
		return "MAX_TOKENS"
	case ir.FinishFilter:
		return "SAFETY"
	}
	return "STOP"
}

func writeUsage(d *ir.Writer, u *ir.Usage) {
	if !u.Known {
		return
	}
	d.Open("usageMetadata", '{')
	d.Int("promptTokenCount", u.Input)
	if u.CacheRead > 0 {
		d.Int("cachedContentTokenCount", u.CacheRead)
	}
	d.Int("candidatesTokenCount", max(0, u.Output-u.Reasoning))
	if u.Reasoning > 0 {
		d.Int("thoughtsTokenCount", u.Reasoning)
	}
	d.Int("totalTokenCount", u.Input+u.Output)
	d.Close('}')
}

// writeLogprobs writes logprobs, which come in chat's form, as a logprobsResult.
func writeLogprobs(d *ir.Writer, list []string) {
	each := func(f func(token gjson.Result)) {
		for _, s := range list {
			ir.Each(gjson.Get(s, "content"), func(_, token gjson.Result) bool { f(token); return true })
		}
	}
	token := func(v gjson.Result) {
		d.Open("", '{')
		d.Str("token", ir.Str(v.Get("token")))
		d.OptRaw("logProbability", ir.Raw(v.Get("logprob")))
		d.Close('}')
	}
	d.Open("logprobsResult", '{')
	d.Open("topCandidates", '[')
	each(func(v gjson.Result) {
		d.Open("", '{')
		d.Open("candidates", '[')
		ir.Each(v.Get("top_logprobs"), func(_, v gjson.Result) bool { token(v); return true })
		d.Close(']')
		d.Close('}')
	})
	d.Close(']')
	d.Open("chosenCandidates", '[')
	each(token)
	d.Close(']')
	d.Close('}')
}
