package cohere

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// ReadAnswer reads an answer of v2 chat.
func ReadAnswer(root gjson.Result, a *ir.Answer, opt *ir.Options) bool {
	m := root.Get("message")
	if !m.IsObject() {
		return false
	}
	a.ID, a.Model = ir.Str(root.Get("id")), opt.Model
	if plan := ir.Str(m.Get("tool_plan")); plan != "" {
		a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ThinkingBlock, Text: plan})
	}
	var text ir.Joiner
	ir.Each(m.Get("content"), func(_, p gjson.Result) bool {
		switch ir.Str(p.Get("type")) {
		case "text":
			text.Add("", ir.Str(p.Get("text")))
		case "thinking":
			a.Blocks = append(a.Blocks, ir.Block{Kind: ir.ThinkingBlock, Text: ir.Str(p.Get("thinking"))})
		}
		return true
	})
	if s := text.Text(); s != "" {
		a.Blocks = append(a.Blocks, ir.Block{Text: s})
	}
	ir.Each(m.Get("tool_calls"), func(_, c gjson.Result) bool {
		a.Blocks = append(a.Blocks, ir.ReadChatCall(c))
		return true
	})
	a.Finish, a.Failure = finishOf(ir.Str(root.Get("finish_reason")))
	a.Usage = usageOf(root.Get("usage"))
	return true
}

func finishOf(s string) (ir.Finish, *apierr.Error) {
	switch s {
	case "":
		return ir.FinishUnset, nil
	case "MAX_TOKENS":
		return ir.FinishLength, nil
	case "STOP_SEQUENCE":
		return ir.FinishSequence, nil
	case "TOOL_CALL":
		return ir.FinishTools, nil
	case "ERROR_TOXIC":
		return ir.FinishFilter, nil
	case "ERROR":
		return ir.FinishUnset, ir.StatusError(502)
	case "TIMEOUT":
		return ir.FinishUnset, ir.StatusError(504)
	}
	return ir.FinishStop, nil
}

func usageOf(v gjson.Result) (u ir.Usage) {
	t := v.Get("tokens")
	if !t.IsObject() {
		if t = v.Get("billed_units"); !t.IsObject() {
			return u
		}
	}
	u.Known = true
	u.Input, u.Output = ir.Count(t.Get("input_tokens")), ir.Count(t.Get("output_tokens"))
	u.CacheRead = ir.Count(v.Get("cached_tokens"))
	return u
}

// ReadUsage reads the token counts of a JSON answer.
func ReadUsage(root gjson.Result) ir.Usage { return usageOf(root.Get("usage")) }
