package llm

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// readCohereAnswer reads the answer of v2 chat.
func readCohereAnswer(root gjson.Result, a *answer, opt *Options) bool {
	m := root.Get("message")
	if !m.IsObject() {
		return false
	}
	a.id, a.model = str(root.Get("id")), opt.Model
	if plan := str(m.Get("tool_plan")); plan != "" {
		a.blocks = append(a.blocks, block{kind: thinkingBlock, text: plan})
	}
	var text joined
	forEach(m.Get("content"), func(_, p gjson.Result) bool {
		switch str(p.Get("type")) {
		case "text":
			text.add("", str(p.Get("text")))
		case "thinking":
			a.blocks = append(a.blocks, block{kind: thinkingBlock, text: str(p.Get("thinking"))})
		}
		return true
	})
	if s := text.text(); s != "" {
		a.blocks = append(a.blocks, block{text: s})
	}
	forEach(m.Get("tool_calls"), func(_, c gjson.Result) bool {
		a.blocks = append(a.blocks, chatCall(c))
		return true
	})
	a.finish, a.failure = cohereFinish(str(root.Get("finish_reason")))
	a.usage = cohereUsage(root.Get("usage"))
	return true
}

func cohereFinish(s string) (finish, *apierr.Error) {
	switch s {
	case "":
		return finishUnset, nil
	case "MAX_TOKENS":
		return finishLength, nil
	case "STOP_SEQUENCE":
		return finishSequence, nil
	case "TOOL_CALL":
		return finishTools, nil
	case "ERROR_TOXIC":
		return finishFilter, nil
	case "ERROR":
		return finishUnset, ofStatus(502)
	case "TIMEOUT":
		return finishUnset, ofStatus(504)
	}
	return finishStop, nil
}

func cohereUsage(v gjson.Result) (u Usage) {
	t := v.Get("tokens")
	if !t.IsObject() {
		if t = v.Get("billed_units"); !t.IsObject() {
			return u
		}
	}
	u.Known = true
	u.Input, u.Output = count(t.Get("input_tokens")), count(t.Get("output_tokens"))
	u.CacheRead = count(v.Get("cached_tokens"))
	return u
}

// cohereAnswerUsage reads the token counts of a JSON answer.
func cohereAnswerUsage(root gjson.Result) Usage { return cohereUsage(root.Get("usage")) }
