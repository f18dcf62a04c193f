package converse

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// ReadAnswer reads the answer of Converse.
//
//	{"output":{"message":{"role","content":[…]}},"stopReason","usage":{…}}
func ReadAnswer(root gjson.Result, a *ir.Answer, opt *ir.Options) bool {
	content := root.Get("output.message.content")
	if !content.IsArray() {
		return false
	}
	asFormat := false
	ir.Each(content, func(_, p gjson.Result) bool {
		ir.Each(p, func(k, v gjson.Result) bool {
			if v.Type == gjson.Null {
				return true
			}
			switch k.Str {
			case "text":
				a.Blocks = append(a.Blocks, ir.Block{Text: ir.Str(v)})
			case "toolUse":
				if ir.Str(v.Get("name")) == ir.FormatTool {
					a.Blocks = append(a.Blocks, ir.Block{Text: ir.Raw(v.Get("input"))})
					asFormat = true
					break
				}
				a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ToolCallBlock, ID: ir.Str(v.Get("toolUseId")),
					Name: ir.Str(v.Get("name")), Arguments: ir.Raw(v.Get("input"))})
			case "reasoningContent":
				if data := ir.Str(v.Get("redactedContent")); data != "" {
					a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ThinkingBlock, Redacted: true, Signature: data,
						Issuer: opt.IssuerOr(ir.IssuerBedrock)})
				} else if t := v.Get("reasoningText"); t.IsObject() {
					b := ir.Block{Kind: ir.ThinkingBlock, Text: ir.Str(t.Get("text")), Signature: ir.Str(t.Get("signature"))}
					if b.Signature != "" {
						b.Issuer = opt.IssuerOr(ir.IssuerBedrock)
					}
					a.Blocks = append(a.Blocks, b)
				}
			case "citationsContent":
				b := ir.Block{Text: ir.JoinTextFields(v.Get("content"), "")}
				ir.Each(v.Get("citations"), func(_, t gjson.Result) bool {
					if c, ok := readCitation(t); ok {
						b.Citations = append(b.Citations, c)
					}
					return true
				})
				b.CiteAll()
				a.Blocks = append(a.Blocks, b)
			}
			return true
		})
		return true
	})
	a.Finish = finishOf(ir.Str(root.Get("stopReason")))
	if asFormat && a.Finish == ir.FinishTools {
		a.Finish = ir.FinishStop
	}
	a.StopSequence = ir.Str(root.Get("additionalModelResponseFields.stop_sequence"))
	a.Usage = ReadUsage(root)
	a.ServiceTier = ir.Str(root.Get("serviceTier.type"))
	return true
}

func finishOf(s string) ir.Finish {
	switch s {
	case "content_filtered", "guardrail_intervened":
		return ir.FinishFilter
	}
	return ir.ClaudeFinish(s) // the others have the names of the Messages dialect
}

// usageOf reads the token counts. inputTokens does not include cached tokens.
func usageOf(v gjson.Result) (u ir.Usage) {
	if !v.IsObject() {
		return u
	}
	u.Known = true
	u.CacheRead, u.CacheWrite = ir.Count(v.Get("cacheReadInputTokens")), ir.Count(v.Get("cacheWriteInputTokens"))
	u.Input = ir.Count(v.Get("inputTokens")) + u.CacheRead + u.CacheWrite
	u.Output = ir.Count(v.Get("outputTokens"))
	ir.Each(v.Get("cacheDetails"), func(_, d gjson.Result) bool {
		if d.Get("ttl").Str == "1h" {
			u.CacheWriteHour += ir.Count(d.Get("inputTokens"))
		}
		return true
	})
	return u
}

// ReadUsage reads the token counts of a JSON answer.
func ReadUsage(root gjson.Result) ir.Usage {
	u := usageOf(root.Get("usage"))
	u.Serve(root.Get("serviceTier.type").Str)
	return u
}
