package llm

import "github.com/tidwall/gjson"

// readConverseAnswer reads the answer of Converse.
//
//	{"output":{"message":{"role","content":[…]}},"stopReason","usage":{…}}
func readConverseAnswer(root gjson.Result, a *answer, opt *Options) bool {
	content := root.Get("output.message.content")
	if !content.IsArray() {
		return false
	}
	asFormat := false
	forEach(content, func(_, p gjson.Result) bool {
		forEach(p, func(k, v gjson.Result) bool {
			if v.Type == gjson.Null {
				return true
			}
			switch k.Str {
			case "text":
				a.blocks = append(a.blocks, block{text: str(v)})
			case "toolUse":
				if str(v.Get("name")) == formatTool {
					a.blocks = append(a.blocks, block{text: rawOf(v.Get("input"))})
					asFormat = true
					break
				}
				a.blocks = append(a.blocks, block{kind: toolUseBlock, id: str(v.Get("toolUseId")), name: str(v.Get("name")), args: rawOf(v.Get("input"))})
			case "reasoningContent":
				if data := str(v.Get("redactedContent")); data != "" {
					a.blocks = append(a.blocks, block{kind: thinkingBlock, redacted: true, sig: data, issuer: opt.issuer(issuerBedrock)})
				} else if t := v.Get("reasoningText"); t.IsObject() {
					b := block{kind: thinkingBlock, text: str(t.Get("text")), sig: str(t.Get("signature"))}
					if b.sig != "" {
						b.issuer = opt.issuer(issuerBedrock)
					}
					a.blocks = append(a.blocks, b)
				}
			case "citationsContent":
				b := block{text: textsOf(v.Get("content"), "")}
				forEach(v.Get("citations"), func(_, t gjson.Result) bool {
					if c, ok := converseCite(t); ok {
						b.cites = append(b.cites, c)
					}
					return true
				})
				b.citeWhole()
				a.blocks = append(a.blocks, b)
			}
			return true
		})
		return true
	})
	a.finish = converseFinish(str(root.Get("stopReason")))
	if asFormat && a.finish == finishTools {
		a.finish = finishStop
	}
	a.stopSeq = str(root.Get("additionalModelResponseFields.stop_sequence"))
	a.usage = converseUsage(root.Get("usage"))
	a.tier = str(root.Get("serviceTier.type"))
	return true
}

func converseFinish(s string) finish {
	switch s {
	case "content_filtered", "guardrail_intervened":
		return finishFilter
	}
	return messagesFinish(s) // the others have the names of the Messages dialect
}

// converseUsage counts the tokens; inputTokens has no cached ones in it.
func converseUsage(v gjson.Result) (u Usage) {
	if !v.IsObject() {
		return u
	}
	u.Known = true
	u.CacheRead, u.CacheWrite = count(v.Get("cacheReadInputTokens")), count(v.Get("cacheWriteInputTokens"))
	u.Input = count(v.Get("inputTokens")) + u.CacheRead + u.CacheWrite
	u.Output = count(v.Get("outputTokens"))
	return u
}

// converseAnswerUsage reads the token counts of a JSON answer.
func converseAnswerUsage(root gjson.Result) Usage { return converseUsage(root.Get("usage")) }
