package llm

import "github.com/tidwall/gjson"

// readResponsesAnswer reads a Response (docs/reference/api-shapes.md, 4.2).
func readResponsesAnswer(root gjson.Result, a *answer, opt *Options) bool {
	output := root.Get("output")
	if !output.IsArray() {
		return false
	}
	a.id, a.model = str(root.Get("id")), str(root.Get("model"))
	a.tier = str(root.Get("service_tier"))
	a.usage = responsesUsage(root.Get("usage"))
	forEach(output, func(_, item gjson.Result) bool {
		a.blocks = responsesItem(a.blocks, item, opt)
		return true
	})
	if p := output.Get("#(type==\"message\").content.0.logprobs"); p.IsArray() && p.Get("#").Int() > 0 {
		a.logprobs = `{"content":` + p.Raw + `,"refusal":null}`
	}
	a.finish = responsesFinish(root)
	if s := str(root.Get("status")); s == "failed" || s == "cancelled" {
		a.failure = ofStatus(502)
		return false
	}
	return true
}

// responsesItem appends the blocks of an output item.
func responsesItem(blocks []block, v gjson.Result, opt *Options) []block {
	switch str(v.Get("type")) {
	case "message":
		forEach(v.Get("content"), func(_, p gjson.Result) bool {
			switch str(p.Get("type")) {
			case "output_text":
				b := block{text: str(p.Get("text"))}
				forEach(p.Get("annotations"), func(_, c gjson.Result) bool {
					if c := chatCite(c); c.url != "" {
						b.cites = append(b.cites, c)
					}
					return true
				})
				blocks = append(blocks, b)
			case "refusal":
				blocks = append(blocks, block{kind: refusalBlock, text: str(p.Get("refusal"))})
			}
			return true
		})
	case "function_call":
		blocks = append(blocks, block{kind: toolUseBlock, id: str(v.Get("call_id")), name: str(v.Get("name")), args: str(v.Get("arguments"))})
	case "custom_tool_call":
		blocks = append(blocks, block{kind: toolUseBlock, custom: true, id: str(v.Get("call_id")), name: str(v.Get("name")), args: str(v.Get("input"))})
	case "reasoning":
		b := block{kind: thinkingBlock, text: textsOf(v.Get("summary"), "\n\n")}
		if b.text == "" {
			b.text = textsOf(v.Get("content"), "")
		}
		if e := str(v.Get("encrypted_content")); e != "" {
			b.sig, b.issuer = str(v.Get("id"))+":"+e, opt.issuer(issuerOpenAI)
		}
		if b.text != "" || b.sig != "" {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

func responsesFinish(root gjson.Result) finish {
	if str(root.Get("status")) != "incomplete" {
		return finishStop
	}
	switch str(root.Get("incomplete_details.reason")) {
	case "content_filter":
		return finishFilter
	case "steered":
		return finishStop
	}
	return finishLength
}

func responsesUsage(v gjson.Result) (u Usage) {
	if !v.IsObject() {
		return u
	}
	u.Known = true
	u.Input, u.Output = count(v.Get("input_tokens")), count(v.Get("output_tokens"))
	u.CacheRead = count(v.Get("input_tokens_details.cached_tokens"))
	u.CacheWrite = count(v.Get("input_tokens_details.cache_write_tokens"))
	u.Reasoning = count(v.Get("output_tokens_details.reasoning_tokens"))
	return u
}

// responsesAnswerUsage reads the token counts of a JSON answer.
func responsesAnswerUsage(root gjson.Result) Usage { return responsesUsage(root.Get("usage")) }
