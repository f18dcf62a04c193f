package llm

import "github.com/tidwall/gjson"

// readGeminiAnswer reads a GenerateContentResponse.
func readGeminiAnswer(root gjson.Result, a *answer, opt *Options) bool {
	candidate := root.Get("candidates.0")
	blocked := root.Get("promptFeedback.blockReason")
	if !candidate.IsObject() && str(blocked) == "" {
		return false
	}
	a.id, a.model = str(root.Get("responseId")), str(root.Get("modelVersion"))
	a.usage = geminiUsage(root.Get("usageMetadata"))
	a.finish = finishFilter
	if candidate.IsObject() {
		a.finish = geminiFinish(str(candidate.Get("finishReason")))
	} else {
		a.explain = "The prompt was blocked: " + limit(str(blocked))
	}
	sig := ""
	var run joined // of the text or thought that is last
	forEach(candidate.Get("content.parts"), func(_, p gjson.Result) bool {
		own := opt.issuer(issuerGemini)
		s := str(p.Get("thoughtSignature"))
		switch {
		case p.Get("functionCall").IsObject():
			settleText(a, &run)
			f := p.Get("functionCall")
			b := block{kind: toolUseBlock, id: str(f.Get("id")), name: str(f.Get("name")), args: rawOf(f.Get("args"))}
			if b.id == "" {
				b.id = opt.callID(len(a.blocks))
			}
			if s != "" {
				b.sig, b.issuer = s, own
			}
			a.blocks = append(a.blocks, b)
		case p.Get("inlineData").IsObject():
			settleText(a, &run)
			in := p.Get("inlineData")
			a.blocks = append(a.blocks, block{kind: imageBlock, mime: str(in.Get("mimeType")), data: str(in.Get("data"))})
		case p.Get("text").Type == gjson.String:
			kind := textBlock
			if p.Get("thought").Type == gjson.True {
				kind = thinkingBlock
			}
			text := p.Get("text").Str
			if n := len(a.blocks); text != "" && (n == 0 || a.blocks[n-1].kind != kind) {
				settleText(a, &run)
				a.blocks = append(a.blocks, block{kind: kind})
			}
			run.add("", text)
			if s != "" {
				sig = s
			}
		}
		return true
	})
	settleText(a, &run)
	if sig != "" && !a.hasTools() {
		// The signature of a text stands before it.
		b := block{kind: thinkingBlock, sig: sig, issuer: opt.issuer(issuerGemini)}
		at := 0
		if len(a.blocks) > 0 && a.blocks[0].kind == thinkingBlock {
			a.blocks[0].sig, a.blocks[0].issuer = b.sig, b.issuer
		} else {
			a.blocks = append(a.blocks[:at], append([]block{b}, a.blocks[at:]...)...)
		}
	}
	for i := len(a.blocks) - 1; i >= 0; i-- {
		if b := &a.blocks[i]; b.kind == textBlock {
			grounding(candidate.Get("groundingMetadata"), func() string { return b.text }, func(c citation) { b.cites = append(b.cites, c) })
			break
		}
	}
	return true
}

// settle gives the last block its text.
func settleText(a *answer, run *joined) {
	if text := run.text(); text != "" {
		a.blocks[len(a.blocks)-1].text = text
	}
	*run = joined{}
}

func geminiFinish(s string) finish {
	switch s {
	case "":
		return finishUnset
	case "MAX_TOKENS", "CONTINUATION":
		return finishLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE":
		return finishFilter
	}
	if len(s) > 6 && s[:6] == "IMAGE_" {
		return finishFilter
	}
	return finishStop
}

func geminiUsage(v gjson.Result) (u Usage) {
	if !v.IsObject() {
		return u
	}
	u.Known = true
	forEach(v, func(k, n gjson.Result) bool {
		switch k.Str {
		case "promptTokenCount", "toolUsePromptTokenCount":
			u.Input += count(n)
		case "cachedContentTokenCount":
			u.CacheRead = count(n)
		case "candidatesTokenCount":
			u.Output += count(n)
		case "thoughtsTokenCount":
			u.Reasoning = count(n)
			u.Output += u.Reasoning
		}
		return true
	})
	return u
}

// geminiAnswerUsage reads the token counts of a JSON answer.
func geminiAnswerUsage(root gjson.Result) Usage { return geminiUsage(root.Get("usageMetadata")) }
