package chat

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// ReadAnswer reads a chat completion (docs/reference/api-shapes.md, 3.2).
func ReadAnswer(root gjson.Result, a *ir.Answer, opt *ir.Options) bool {
	choice := root.Get("choices.0")
	m := choice.Get("message")
	if !m.IsObject() {
		return false
	}
	a.ID, a.Model = ir.Str(root.Get("id")), ir.Str(root.Get("model"))
	a.ServiceTier = ir.Str(root.Get("service_tier"))
	a.Usage = ReadUsage(root)
	a.Blocks = append(a.Blocks, readThinking(nil, ir.RecordOf(m), opt.IssuerOr(ir.IssuerChat))...)
	text := ir.Block{}
	var run ir.Joiner
	switch c := m.Get("content"); {
	case c.Type == gjson.String:
		run.First = c.Str
	case c.IsArray(): // Mistral's reasoning models
		ir.Each(c, func(_, p gjson.Result) bool {
			switch ir.Str(p.Get("type")) {
			case "text":
				run.Add("", ir.Str(p.Get("text")))
			case "thinking":
				a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ThinkingBlock, Text: ir.JoinTextFields(p.Get("thinking"), "")})
			}
			return true
		})
	}
	notes := m.Get("annotations")
	ir.Each(notes, func(_, v gjson.Result) bool {
		if u := v.Get("url_citation"); u.IsObject() {
			text.Citations = append(ir.Reserve(text.Citations, notes), ir.ReadURLCitation(u))
		}
		return true
	})
	if len(text.Citations) == 0 { // Perplexity
		ir.Each(root.Get("search_results"), func(_, v gjson.Result) bool {
			text.Citations = append(text.Citations, ir.Citation{URL: ir.Str(v.Get("url")), Title: ir.Str(v.Get("title")),
				Quote: ir.Str(v.Get("snippet"))})
			return true
		})
	}
	if text.Text = run.Text(); text.Text != "" {
		a.Blocks = append(a.Blocks, text)
	}
	if s := ir.Str(m.Get("refusal")); s != "" {
		a.Blocks = append(a.Blocks, ir.Block{Kind: ir.RefusalBlock, Text: s})
	}
	ir.Each(m.Get("tool_calls"), func(_, c gjson.Result) bool {
		b := ir.ReadChatCall(c)
		if b.ID == "" {
			b.ID = opt.CallID(len(a.Blocks))
		}
		a.Blocks = append(a.Blocks, b)
		return true
	})
	if f := m.Get("function_call"); f.IsObject() {
		name := ir.Str(f.Get("name"))
		a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ToolCallBlock, Legacy: true, ID: "call_" + name, Name: name,
			Arguments: ir.Str(f.Get("arguments"))})
	}
	if l := choice.Get("logprobs"); l.IsObject() {
		a.Logprobs = l.Raw
	}
	a.Finish, a.Failure = finishOf(ir.Str(choice.Get("finish_reason")))
	return true
}

// finishOf reads a finish_reason, by which some upstreams report a failure.
func finishOf(s string) (ir.Finish, *apierr.Error) {
	switch s {
	case "":
		return ir.FinishUnset, nil
	case "length", "max_tokens", "model_length":
		return ir.FinishLength, nil
	case "tool_calls", "function_call":
		return ir.FinishTools, nil
	case "content_filter", "sensitive":
		return ir.FinishFilter, nil
	case "error", "network_error":
		return ir.FinishUnset, ir.StatusError(502)
	case "insufficient_system_resource":
		return ir.FinishUnset, ir.StatusError(503)
	}
	return ir.FinishStop, nil
}

// ReadUsage reads the token counts of a chunk or an answer, in any place where
// a vendor writes them.
func ReadUsage(root gjson.Result) (u ir.Usage) {
	v := root.Get("usage")
	if !v.IsObject() {
		if v = root.Get("x_groq.usage"); !v.IsObject() {
			if v = root.Get("choices.0.usage"); !v.IsObject() {
				return u
			}
		}
	}
	u = CountUsage(v)
	u.Serve(root.Get("service_tier").Str)
	if model := root.Get("model").Str; strings.Contains(model, BilledMark) && strings.HasPrefix(model, "gpt-") &&
		!u.ToolsFinal {
		u.Searches = 1
		if strings.Contains(model, "-preview") {
			u.ToolOption("preview")
		}
	}
	return u
}

// BilledMark is in the names of OpenAI's models that search the web for each answer:
// https://platform.openai.com/docs/guides/tools-web-search?api-mode=chat
const BilledMark = "-search-"

// CountUsage reads a usage object.
func CountUsage(v gjson.Result) (u ir.Usage) {
	u.Known = true
	total := int64(0)
	ir.Each(v, func(k, n gjson.Result) bool {
		switch k.Str {
		case "total_tokens":
			total = ir.Count(n)
		case "prompt_tokens":
			u.Input = ir.Count(n)
		case "completion_tokens":
			u.Output = ir.Count(n)
		case "prompt_tokens_details":
			u.CacheRead = max(u.CacheRead, ir.Count(n.Get("cached_tokens")))
			u.CacheWrite = ir.Count(n.Get("cache_write_tokens"))
			u.AudioInput = ir.Count(n.Get("audio_tokens"))
		case "completion_tokens_details":
			u.Reasoning = ir.Count(n.Get("reasoning_tokens"))
			u.AudioOutput = ir.Count(n.Get("audio_tokens"))
			u.ImageOutput = ir.Count(n.Get("image_tokens"))
		case "cost", "cost_in_usd_ticks":
			u.Charge(v, k.Str, n)
		case "server_side_tool_usage_details": // xAI
			u.ServerTools(n)
		case "cached_tokens", "prompt_cache_hit_tokens": // Moonshot; DeepSeek
			u.CacheRead = max(u.CacheRead, ir.Count(n))
		}
		return true
	})
	if u.Reasoning > 0 && total == u.Input+u.Output+u.Reasoning { // xAI counts it beside the output
		u.Output += u.Reasoning
	}
	return u
}
