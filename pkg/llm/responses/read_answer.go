package responses

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// ReadAnswer reads a Response (docs/reference/api-shapes.md, 4.2).
func ReadAnswer(root gjson.Result, a *ir.Answer, opt *ir.Options) bool {
	output := root.Get("output")
	if !output.IsArray() {
		return false
	}
	a.ID, a.Model = ir.Str(root.Get("id")), ir.Str(root.Get("model"))
	a.ServiceTier = ir.Str(root.Get("service_tier"))
	a.Usage = ReadUsage(root)
	ir.Each(output, func(_, item gjson.Result) bool {
		a.Blocks = readOutputItem(a.Blocks, item, opt)
		return true
	})
	if p := output.Get("#(type==\"message\").content.0.logprobs"); p.IsArray() && p.Get("#").Int() > 0 {
		a.Logprobs = `{"content":` + p.Raw + `,"refusal":null}`
	}
	a.Finish = finishOf(root)
	if s := ir.Str(root.Get("status")); s == "failed" || s == "cancelled" {
		a.Failure = ir.StatusError(502)
		return false
	}
	return true
}

// readOutputItem appends the blocks of an output item.
func readOutputItem(blocks []ir.Block, v gjson.Result, opt *ir.Options) []ir.Block {
	switch ir.Str(v.Get("type")) {
	case "message":
		ir.Each(v.Get("content"), func(_, p gjson.Result) bool {
			switch ir.Str(p.Get("type")) {
			case "output_text":
				b := ir.Block{Text: ir.Str(p.Get("text"))}
				ir.Each(p.Get("annotations"), func(_, c gjson.Result) bool {
					if c := ir.ReadURLCitation(c); c.URL != "" {
						b.Citations = append(b.Citations, c)
					}
					return true
				})
				blocks = append(blocks, b)
			case "refusal":
				blocks = append(blocks, ir.Block{Kind: ir.RefusalBlock, Text: ir.Str(p.Get("refusal"))})
			}
			return true
		})
	case "function_call":
		blocks = append(blocks, ir.Block{Kind: ir.ToolCallBlock, ID: ir.Str(v.Get("call_id")), Name: ir.Str(v.Get("name")),
			Arguments: ir.Str(v.Get("arguments"))})
	case "custom_tool_call":
		blocks = append(blocks, ir.Block{Kind: ir.ToolCallBlock, Custom: true, ID: ir.Str(v.Get("call_id")),
			Name: ir.Str(v.Get("name")), Arguments: ir.Str(v.Get("input"))})
	case "reasoning":
		b := ir.Block{Kind: ir.ThinkingBlock, Text: ir.JoinTextFields(v.Get("summary"), "\n\n")}
		if b.Text == "" {
			b.Text = ir.JoinTextFields(v.Get("content"), "")
		}
		if e := ir.Str(v.Get("encrypted_content")); e != "" {
			b.Signature, b.Issuer = ir.Str(v.Get("id"))+":"+e, opt.IssuerOr(ir.IssuerOpenAI)
		}
		if b.Text != "" || b.Signature != "" {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

func finishOf(root gjson.Result) ir.Finish {
	if ir.Str(root.Get("status")) != "incomplete" {
		return ir.FinishStop
	}
	switch ir.Str(root.Get("incomplete_details.reason")) {
	case "content_filter":
		return ir.FinishFilter
	case "steered":
		return ir.FinishStop
	}
	return ir.FinishLength
}

func usageOf(v gjson.Result) (u ir.Usage) {
	if !v.IsObject() {
		return u
	}
	u.Known = true
	u.Input, u.Output = ir.Count(v.Get("input_tokens")), ir.Count(v.Get("output_tokens"))
	u.CacheRead = ir.Count(v.Get("input_tokens_details.cached_tokens"))
	u.CacheWrite = ir.Count(v.Get("input_tokens_details.cache_write_tokens"))
	u.Reasoning = ir.Count(v.Get("output_tokens_details.reasoning_tokens"))
	for _, name := range [...]string{"cost", "cost_in_usd_ticks"} {
		u.Charge(v, name, v.Get(name))
	}
	if tools := v.Get("server_side_tool_usage_details"); tools.IsObject() {
		u.ServerTools(tools)
	}
	return u
}

// CountUsage reads a usage object.
func CountUsage(v gjson.Result) ir.Usage { return usageOf(v) }

// ReadUsage reads the usage of a JSON answer.
func ReadUsage(root gjson.Result) ir.Usage {
	u := usageOf(root.Get("usage"))
	countTools(&u, root)
	u.Serve(root.Get("service_tier").Str)
	return u
}
