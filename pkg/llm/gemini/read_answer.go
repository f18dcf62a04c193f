package gemini

import (
	"bytes"
	"strings"

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
	a.ID, a.Model = ir.Str(root.Get("responseId")), ir.Str(root.Get("modelVersion"))
	a.Usage = ReadUsage(root)
	a.Finish = ir.FinishFilter
	if candidate.IsObject() {
		a.Finish = finishOf(ir.Str(candidate.Get("finishReason")))
	} else {
		a.Explanation = "The prompt was blocked: " + ir.Truncate(ir.Str(blocked))
	}
	sig := ""
	var run ir.Joiner // text of the last text or thinking block
	ir.Each(candidate.Get("content.parts"), func(_, p gjson.Result) bool {
		own := opt.IssuerOr(ir.IssuerGemini)
		s := ir.Str(p.Get("thoughtSignature"))
		switch {
		case p.Get("functionCall").IsObject():
			settleText(a, &run)
			f := p.Get("functionCall")
			b := ir.Block{Kind: ir.ToolCallBlock, ID: ir.Str(f.Get("id")), Name: ir.Str(f.Get("name")),
				Arguments: ir.Raw(f.Get("args"))}
			if b.ID == "" {
				b.ID = opt.CallID(len(a.Blocks))
			}
			if s != "" {
				b.Signature, b.Issuer = s, own
			}
			a.Blocks = append(a.Blocks, b)
		case p.Get("inlineData").IsObject():
			settleText(a, &run)
			in := p.Get("inlineData")
			a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ImageBlock, MediaType: ir.Str(in.Get("mimeType")),
				Data: ir.Str(in.Get("data"))})
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
		// The signature of a text goes before it.
		b := ir.Block{Kind: ir.ThinkingBlock, Signature: sig, Issuer: opt.IssuerOr(ir.IssuerGemini)}
		at := 0
		if len(a.Blocks) > 0 && a.Blocks[0].Kind == ir.ThinkingBlock {
			a.Blocks[0].Signature, a.Blocks[0].Issuer = b.Signature, b.Issuer
		} else {
			a.Blocks = append(a.Blocks[:at], append([]ir.Block{b}, a.Blocks[at:]...)...)
		}
	}
	for i := len(a.Blocks) - 1; i >= 0; i-- {
		if b := &a.Blocks[i]; b.Kind == ir.TextBlock {
			grounding(candidate.Get("groundingMetadata"), func() string { return b.Text },
				func(c ir.Citation) { b.Citations = append(b.Citations, c) })
			break
		}
	}
	return true
}

// settleText sets the text of the last block.
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
		case "promptTokensDetails":
			u.AudioInput = tokensOf(n, "AUDIO")
		case "cacheTokensDetails":
			u.AudioCacheRead, u.CacheByKind = tokensOf(n, "AUDIO"), n.IsArray()
		case "candidatesTokensDetails":
			u.AudioOutput, u.ImageOutput = tokensOf(n, "AUDIO"), tokensOf(n, "IMAGE")
		case "serviceTier", "trafficType": // the latter of Vertex: ON_DEMAND, ON_DEMAND_FLEX, PROVISIONED_THROUGHPUT
			u.Serve(strings.TrimPrefix(n.Str, "ON_DEMAND_"))
		}
		return true
	})
	return u
}

// tokensOf returns the tokens of a modality.
//
//	[{"modality":"TEXT","tokenCount":5}]
func tokensOf(details gjson.Result, modality string) (n int64) {
	ir.Each(details, func(_, d gjson.Result) bool {
		if d.Get("modality").Str == modality {
			n += ir.Count(d.Get("tokenCount"))
		}
		return true
	})
	return n
}

// ReadUsage reads the usage of a JSON answer.
func ReadUsage(root gjson.Result) ir.Usage {
	u := usageOf(root.Get("usageMetadata"))
	countGrounding(&u, root.Get("candidates"))
	return u
}

// BilledMark is in an answer with sources that Google has searched.
const BilledMark = `"groundingMetadata"`

// countGrounding notes what the sources of an answer's candidates are billed by:
//
//	{"webSearchQueries": ["…"], "imageSearchQueries": ["…"], "retrievalQueries": ["…"],
//	 "groundingChunks": [{"maps": {}}]}
//
// See https://ai.google.dev/gemini-api/docs/google-search; retrievalQueries are of Vertex AI
// Search. Empty queries are free.
func countGrounding(u *ir.Usage, candidates gjson.Result) {
	if !strings.Contains(candidates.Raw, BilledMark) {
		return
	}
	ir.Each(candidates, func(_, c gjson.Result) bool {
		g := c.Get("groundingMetadata")
		u.Searches = max(u.Searches, queries(g.Get("webSearchQueries"))+queries(g.Get("imageSearchQueries")))
		if queries(g.Get("retrievalQueries")) > 0 {
			u.NoRate("retrieval")
		}
		if g.Get("googleMapsWidgetContextToken").Str != "" || g.Get("groundingChunks.#.maps.uri|0").Exists() {
			u.Maps = 1
		}
		return true
	})
}

// queries counts the queries of a list that are not empty.
func queries(list gjson.Result) (n int64) {
	ir.Each(list, func(_, q gjson.Result) bool {
		if q.Str != "" {
			n++
		}
		return true
	})
	return n
}

// SeenBilled reads what is billed in a part of a long line.
func SeenBilled(u *ir.Usage, part []byte) {
	for _, name := range [...]string{`"webSearchQueries":`, `"imageSearchQueries":`} {
		if _, rest, ok := bytes.Cut(part, []byte(name)); ok {
			u.Searches = max(u.Searches, queries(gjson.ParseBytes(rest)))
		}
	}
	if bytes.Contains(part, []byte(`"retrievalQueries":`)) {
		u.NoRate("retrieval")
	}
	if bytes.Contains(part, []byte(`"maps":{`)) || bytes.Contains(part, []byte(`"maps": {`)) {
		u.Maps = 1
	}
}
