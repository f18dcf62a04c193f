package messages

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// ReadAnswer reads a Message (docs/reference/api-shapes.md, 8.2).
func ReadAnswer(root gjson.Result, a *ir.Answer, opt *ir.Options) bool {
	content := root.Get("content")
	if !content.IsArray() {
		return false
	}
	a.ID, a.Model = ir.Str(root.Get("id")), ir.Str(root.Get("model"))
	ir.Each(content, func(_, p gjson.Result) bool {
		switch ir.Str(p.Get("type")) {
		case "text":
			b := ir.Block{Text: ir.Str(p.Get("text"))}
			ir.Each(p.Get("citations"), func(_, c gjson.Result) bool {
				if c, ok := readCitation(c); ok {
					b.Citations = append(b.Citations, c)
				}
				return true
			})
			b.CiteAll()
			a.Blocks = append(a.Blocks, b)
		case "thinking":
			a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ThinkingBlock, Text: ir.Str(p.Get("thinking")), Signature: ir.Str(p.Get("signature")), Issuer: opt.IssuerOr(ir.IssuerAnthropic)})
		case "redacted_thinking":
			a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ThinkingBlock, Redacted: true, Signature: ir.Str(p.Get("data")), Issuer: opt.IssuerOr(ir.IssuerAnthropic)})
		case "tool_use":
			if calledByCode(p) {
				return true
			}
			args := ir.Raw(p.Get("input"))
			if ir.Str(p.Get("name")) == ir.FormatTool {
				a.Blocks = append(a.Blocks, ir.Block{Text: args})
				a.Finish = ir.FinishStop
				return true
			}
			a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ToolCallBlock, ID: ir.Str(p.Get("id")), Name: ir.Str(p.Get("name")), Arguments: args})
		}
		return true
	})
	asFormat := a.Finish == ir.FinishStop
	a.Finish = ir.ClaudeFinish(ir.Str(root.Get("stop_reason")))
	if asFormat && a.Finish == ir.FinishTools {
		a.Finish = ir.FinishStop
	}
	a.StopSequence = ir.Str(root.Get("stop_sequence"))
	a.Explanation = ir.Str(root.Get("stop_details.explanation"))
	a.Usage = usageOf(root.Get("usage"))
	a.ServiceTier = tierOf(ir.Str(root.Get("usage.service_tier")))
	return true
}

// calledByCode reports whether a call comes from code that Claude runs, and not
// by Claude itself. Its result goes to that code, which no other dialect can
// express.
func calledByCode(call gjson.Result) bool {
	kind := ir.Str(call.Get("caller.type"))
	return kind != "" && kind != "direct"
}

// tierOf returns OpenAI's name of a service tier, "" for none.
func tierOf(s string) string {
	switch s {
	case "standard":
		return "default"
	case "priority":
		return s
	}
	return ""
}

func usageOf(v gjson.Result) (u ir.Usage) {
	if !v.IsObject() {
		return u
	}
	u.Known = true
	ir.Each(v, func(k, n gjson.Result) bool {
		switch k.Str {
		case "input_tokens":
			u.Input += ir.Count(n)
		case "cache_creation_input_tokens":
			u.CacheWrite = ir.Count(n)
			u.Input += u.CacheWrite
		case "cache_creation":
			u.CacheWriteHour = ir.Count(n.Get("ephemeral_1h_input_tokens"))
		case "cache_read_input_tokens":
			u.CacheRead = ir.Count(n)
			u.Input += u.CacheRead
		case "output_tokens":
			u.Output = ir.Count(n)
		case "output_tokens_details":
			u.Reasoning = ir.Count(n.Get("thinking_tokens"))
		case "server_tool_use":
			u.Searches = ir.Count(n.Get("web_search_requests"))
		case "service_tier", "speed", "inference_geo":
			u.Serve(n.Str)
		case "cost":
			u.Charge(v, k.Str, n)
		}
		return true
	})
	return u
}

// CountUsage reads a usage object.
func CountUsage(v gjson.Result) ir.Usage { return usageOf(v) }

// ReadUsage reads the token counts of a JSON answer.
func ReadUsage(root gjson.Result) ir.Usage { return usageOf(root.Get("usage")) }

// lastUsage reads the token counts at the end of a stream. Its output is the
// final count, which may be lower than the first one (0 for a refused answer).
func lastUsage(v gjson.Result) ir.Usage {
	u := usageOf(v)
	u.Final = v.Get("output_tokens").Type == gjson.Number
	return u
}

// readCitation reads a citation of Claude. It has no offsets: it applies to the
// whole block.
func readCitation(v gjson.Result) (c ir.Citation, ok bool) {
	c = ir.Citation{URL: ir.Str(v.Get("url")), Title: ir.Str(v.Get("title")), Quote: ir.Str(v.Get("cited_text"))}
	if s := ir.Str(v.Get("source")); c.URL == "" && strings.Contains(s, "://") {
		c.URL = s // a search result of the client's
	}
	return c, c.URL != ""
}
