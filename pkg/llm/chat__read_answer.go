package llm

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// readChatAnswer reads a chat completion (docs/reference/api-shapes.md, 3.2).
func readChatAnswer(root gjson.Result, a *answer, opt *Options) bool {
	choice := root.Get("choices.0")
	m := choice.Get("message")
	if !m.IsObject() {
		return false
	}
	a.id, a.model = str(root.Get("id")), str(root.Get("model"))
	a.tier = str(root.Get("service_tier"))
	a.usage = chatUsage(root)
	a.blocks = append(a.blocks, chatThinking(nil, recordOf(m), opt.issuer(issuerChat))...)
	text := block{}
	var run joined
	switch c := m.Get("content"); {
	case c.Type == gjson.String:
		run.one = c.Str
	case c.IsArray(): // Mistral's reasoning models
		forEach(c, func(_, p gjson.Result) bool {
			switch str(p.Get("type")) {
			case "text":
				run.add("", str(p.Get("text")))
			case "thinking":
				a.blocks = append(a.blocks, block{kind: thinkingBlock, text: textsOf(p.Get("thinking"), "")})
			}
			return true
		})
	}
	notes := m.Get("annotations")
	forEach(notes, func(_, v gjson.Result) bool {
		if u := v.Get("url_citation"); u.IsObject() {
			text.cites = append(room(text.cites, notes), chatCite(u))
		}
		return true
	})
	if len(text.cites) == 0 { // Perplexity
		forEach(root.Get("search_results"), func(_, v gjson.Result) bool {
			text.cites = append(text.cites, citation{url: str(v.Get("url")), title: str(v.Get("title")), quote: str(v.Get("snippet"))})
			return true
		})
	}
	if text.text = run.text(); text.text != "" {
		a.blocks = append(a.blocks, text)
	}
	if s := str(m.Get("refusal")); s != "" {
		a.blocks = append(a.blocks, block{kind: refusalBlock, text: s})
	}
	forEach(m.Get("tool_calls"), func(_, c gjson.Result) bool {
		b := chatCall(c)
		if b.id == "" {
			b.id = opt.callID(len(a.blocks))
		}
		a.blocks = append(a.blocks, b)
		return true
	})
	if f := m.Get("function_call"); f.IsObject() {
		name := str(f.Get("name"))
		a.blocks = append(a.blocks, block{kind: toolUseBlock, old: true, id: "call_" + name, name: name, args: str(f.Get("arguments"))})
	}
	if l := choice.Get("logprobs"); l.IsObject() {
		a.logprobs = l.Raw
	}
	a.finish, a.failure = chatFinish(str(choice.Get("finish_reason")))
	return true
}

// chatFinish reads a finish_reason; some upstreams report a failure by it.
func chatFinish(s string) (finish, *apierr.Error) {
	switch s {
	case "":
		return finishUnset, nil
	case "length", "max_tokens", "model_length":
		return finishLength, nil
	case "tool_calls", "function_call":
		return finishTools, nil
	case "content_filter", "sensitive":
		return finishFilter, nil
	case "error", "network_error":
		return finishUnset, ofStatus(502)
	case "insufficient_system_resource":
		return finishUnset, ofStatus(503)
	}
	return finishStop, nil
}

// chatUsage reads the usage of a chunk or an answer, wherever the vendor has it.
func chatUsage(root gjson.Result) (u Usage) {
	v := root.Get("usage")
	if !v.IsObject() {
		if v = root.Get("x_groq.usage"); !v.IsObject() {
			if v = root.Get("choices.0.usage"); !v.IsObject() {
				return u
			}
		}
	}
	u.Known = true
	forEach(v, func(k, n gjson.Result) bool {
		switch k.Str {
		case "prompt_tokens":
			u.Input = count(n)
		case "completion_tokens":
			u.Output = count(n)
		case "prompt_tokens_details":
			u.CacheRead = max(u.CacheRead, count(n.Get("cached_tokens")))
			u.CacheWrite = count(n.Get("cache_write_tokens"))
		case "completion_tokens_details":
			u.Reasoning = count(n.Get("reasoning_tokens"))
		case "cached_tokens", "prompt_cache_hit_tokens": // Moonshot; DeepSeek
			u.CacheRead = max(u.CacheRead, count(n))
		}
		return true
	})
	return u
}
