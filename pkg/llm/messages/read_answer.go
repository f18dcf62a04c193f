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
	var calls, format bool
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
			a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ThinkingBlock, Text: ir.Str(p.Get("thinking")),
				Signature: ir.Str(p.Get("signature")), Issuer: opt.IssuerOr(ir.IssuerAnthropic)})
		case "redacted_thinking":
			a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ThinkingBlock, Redacted: true, Signature: ir.Str(p.Get("data")),
				Issuer: opt.IssuerOr(ir.IssuerAnthropic)})
		case "tool_use":
			if calledByCode(p) {
				return true
			}
			args := ir.Raw(p.Get("input"))
			if ir.Str(p.Get("name")) == ir.FormatTool {
				a.Blocks = append(a.Blocks, ir.Block{Text: args})
				format = true
				return true
			}
			calls = true
			a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ToolCallBlock, ID: ir.Str(p.Get("id")), Name: ir.Str(p.Get("name")),
				Arguments: args})
		}
		return true
	})
	a.Finish = finish(ir.Str(root.Get("stop_reason")), calls && !format)
	a.StopSequence = ir.Str(root.Get("stop_sequence"))
	a.Explanation = ir.Str(root.Get("stop_details.explanation"))
	a.Usage = ReadUsage(root)
	a.ServiceTier = tierOf(ir.Str(root.Get("usage.service_tier")))
	return true
}

// finish returns why an answer has ended. One without a call that the client could
// run, such as one that has only those of Claude's code, has stopped.
func finish(stopReason string, calls bool) ir.Finish {
	f := ir.ClaudeFinish(stopReason)
	if f == ir.FinishTools && !calls {
		return ir.FinishStop
	}
	return f
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
	own := false // the counts include the iterations of the answer itself
	ir.Each(v, func(k, n gjson.Result) bool {
		switch k.Str {
		case "input_tokens":
			u.Input += ir.Count(n)
			own = own || n.Type == gjson.Number
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
	if list := v.Get("iterations"); list.IsArray() {
		addIterations(&u, list, own)
	}
	return u
}

// addIterations adds the requests that Claude made beside the client's and that are not
// in the counts of a usage object:
//
//	[{"type": "compaction", "input_tokens", "output_tokens", "cache_…"}, {"type": "message", …}]
//
// Those of the type message are in them, if it states the input. Others are of another
// model. See https://platform.claude.com/docs/en/build-with-claude/compaction.
func addIterations(u *ir.Usage, list gjson.Result, own bool) {
	ir.Each(list, func(_, v gjson.Result) bool {
		part := usageOf(v)
		switch v.Get("type").Str {
		case "message":
			if own {
				return true
			}
			part.Output = 0
		case "compaction":
			u.Apart += part.Input
		case "advisor_message":
			u.NoRate("advisor")
			return true
		case "fallback_message":
			u.NoRate("fallback_model")
			return true
		}
		u.Input += part.Input
		u.Output += part.Output
		u.CacheRead += part.CacheRead
		u.CacheWrite += part.CacheWrite
		u.CacheWriteHour += part.CacheWriteHour
		return true
	})
}

// BilledMarks are in an answer for which Claude had a container.
var BilledMarks = [...]string{`"container":{`, `"container": {`}

// countContainer notes the container in which Claude has run code. It is free in a request
// with tools that search or fetch:
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/code-execution-tool
func countContainer(u *ir.Usage, container, usage gjson.Result) {
	if tools := usage.Get("server_tool_use"); container.IsObject() &&
		ir.Count(tools.Get("web_search_requests"))+ir.Count(tools.Get("web_fetch_requests")) == 0 {
		u.Code = 1
	}
}

// CountUsage reads a usage object.
func CountUsage(v gjson.Result) ir.Usage { return usageOf(v) }

// ReadUsage reads the usage of a JSON answer.
func ReadUsage(root gjson.Result) ir.Usage {
	u := usageOf(root.Get("usage"))
	countContainer(&u, root.Get("container"), root.Get("usage"))
	return u
}

// lastUsage reads the usage at the end of a stream, and its delta. Its output is the
// final count, which may be lower than the first one (0 for a refused answer).
func lastUsage(v, delta gjson.Result) ir.Usage {
	u := usageOf(v)
	countContainer(&u, delta.Get("container"), v)
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
