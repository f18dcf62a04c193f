package gemini

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// ReadAnswer reads a GenerateContentResponse.
func ReadAnswer(root gjson.Result, a *ir.Answer, opt *ir.Options) bool {
	candidate := root.Get("candidates.0")
	blocked := root.Get("promptFeedback.blockReason")
	if !candidate.IsObject() && ir.Str(blocked) == "" {
		return false
	}
	a.Id, a.Model = ir.Str(root.Get("responseId")), ir.Str(root.Get("modelVersion"))
	a.Usage = usageOf(root.Get("usageMetadata"))
	a.Finish = ir.FinishFilter
	if candidate.IsObject() {
		a.Finish = finishOf(ir.Str(candidate.Get("finishReason")))
	} else {
		a.Explain = "The prompt was blocked: " + ir.Truncate(ir.Str(blocked))
	}
	sig := ""
	var run ir.Joiner // of the text or thought that is last
	ir.Each(candidate.Get("content.parts"), func(_, p gjson.Result) bool {
		own := opt.IssuerOr(ir.IssuerGemini)
		s := ir.Str(p.Get("thoughtSignature"))
		switch {
		case p.Get("functionCall").IsObject():
			settleText(a, &run)
			f := p.Get("functionCall")
			b := ir.Block{Kind: ir.ToolCallBlock, Id: ir.Str(f.Get("id")), Name: ir.Str(f.Get("name")), Args: ir.Raw(f.Get("args"))}
			if b.Id == "" {
				b.Id = opt.CallID(len(a.Blocks))
			}
			if s != "" {
				b.Sig, b.Issuer = s, own
			}
			a.Blocks = append(a.Blocks, b)
		case p.Get("inlineData").IsObject():
			settleText(a, &run)
			in := p.Get("inlineData")
			a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ImageBlock, Mime: ir.Str(in.Get("mimeType")), Data: ir.Str(in.Get("data"))})
		case p.Get("text").Type == gjson.String:
			kind := ir.TextBlock
			if p.Get("thought").Type == gjson.True {
				kind = ir.ThinkingBlock
			}
			text := p.Get("text").Str
			if n := len(a.Blocks); text != "" && (n == 0 || a.Blocks[n-1].Kind != kind) {
				settleText(a, &run)
				a.Blocks = append(a.Blocks, ir.Block{Kind: kind})
			}
			run.Add("", text)
			if s != "" {
				sig = s
			}
		}
		return true
	})
	settleText(a, &run)
	if sig != "" && !a.HasCalls() {
		// The signature of a text stands before it.
		b := ir.Block{Kind: ir.ThinkingBlock, Sig: sig, Issuer: opt.IssuerOr(ir.IssuerGemini)}
		at := 0
		if len(a.Blocks) > 0 && a.Blocks[0].Kind == ir.ThinkingBlock {
			a.Blocks[0].Sig, a.Blocks[0].Issuer = b.Sig, b.Issuer
		} else {
			a.Blocks = append(a.Blocks[:at], append([]ir.Block{b}, a.Blocks[at:]...)...)
		}
	}
	for i := len(a.Blocks) - 1; i >= 0; i-- {
		if b := &a.Blocks[i]; b.Kind == ir.TextBlock {
			grounding(candidate.Get("groundingMetadata"), func() string { return b.Text }, func(c ir.Citation) { b.Cites = append(b.Cites, c) })
			break
		}
	}
	return true
}

// settle gives the last block its text.
func settleText(a *ir.Answer, run *ir.Joiner) {
	if text := run.Text(); text != "" {
		a.Blocks[len(a.Blocks)-1].Text = text
	}
	*run = ir.Joiner{}
}

func finishOf(s string) ir.Finish {
	switch s {
	case "":
		return ir.FinishUnset
	case "MAX_TOKENS", "CONTINUATION":
		return ir.FinishLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE":
		return ir.FinishFilter
	}
	if len(s) > 6 && s[:6] == "IMAGE_" {
		return ir.FinishFilter
	}
	return ir.FinishStop
}

func usageOf(v gjson.Result) (u ir.Usage) {
	if !v.IsObject() {
		return u
	}
	u.Known = true
	ir.Each(v, func(k, n gjson.Result) bool {
		switch k.Str {
		case "promptTokenCount", "toolUsePromptTokenCount":
			u.Input += ir.Count(n)
		case "cachedContentTokenCount":
			u.CacheRead = ir.Count(n)
		case "candidatesTokenCount":
			u.Output += ir.Count(n)
		case "thoughtsTokenCount":
			u.Reasoning = ir.Count(n)
			u.Output += u.Reasoning
		}
		return true
	})
	return u
}

// ReadUsage reads the token counts of a JSON answer.
func ReadUsage(root gjson.Result) ir.Usage { return usageOf(root.Get("usageMetadata")) }
