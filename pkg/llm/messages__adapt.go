package llm

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
)

// messages removes from a body for Claude what other providers have added.
func adaptMessages(p patch, opt Options) patch {
	if v := opt.deviations().Anthropic; v != "" {
		p.del("model")
		p.set("anthropic_version", quoted(v))
		if strings.HasPrefix(v, "bedrock") {
			p.del("stream")
		}
	}
	if bytes.Contains(p.body, []byte(`"`+wrapMark)) {
		foreignThoughts(&p, opt.issuer(issuerAnthropic))
	} else if !foreignResult(p.body) {
		return p
	}
	budgetThinking(&p)
	return p
}

// maxTail is how many bytes at the end of a body are searched for the last tool
// result, so that a long body without one costs no more.
const maxTail = 1 << 20

// foreignResult reports whether the last tool result answers a call of another
// provider. No other body of an ordinary client is parsed a second time.
func foreignResult(body []byte) bool {
	name := []byte(`"tool_use_id"`)
	body = body[max(0, len(body)-maxTail):]
	i := bytes.LastIndex(body, name)
	if i < 0 {
		return false
	}
	id := bytes.TrimLeft(body[i+len(name):], " \t\r\n:")
	return len(id) > 0 && !bytes.HasPrefix(id, []byte(`"toolu_`))
}

// budgetThinking disables a thinking budget if the current turn has called tools
// at another provider: Claude refuses the request without its own thinking before
// these calls. Adaptive thinking does not require it.
func budgetThinking(p *patch) {
	if p.err != nil || gjson.GetBytes(p.body, "thinking.type").Str != "enabled" {
		return
	}
	bare, calls := false, false // of the last assistant message
	forEach(gjson.GetBytes(p.body, "messages"), func(_, m gjson.Result) bool {
		content := m.Get("content")
		if !content.IsArray() {
			content = gjson.Result{}
		}
		switch str(m.Get("role")) {
		case "assistant":
			bare, calls = true, false
			first := true
			forEach(content, func(_, b gjson.Result) bool {
				kind := str(b.Get("type"))
				if first {
					bare, first = kind != "thinking" && kind != "redacted_thinking", false
				}
				calls = calls || kind == "tool_use"
				return true
			})
		case "user":
			answers := false
			forEach(content, func(_, b gjson.Result) bool {
				answers = answers || str(b.Get("type")) == "tool_result"
				return !answers
			})
			calls = calls && answers
		}
		return true
	})
	if !bare || !calls {
		return
	}
	p.set("thinking", `{"type":"disabled"}`)
	p.note("thinking")
	// Without thinking Claude refuses clear_thinking edits.
	edits := gjson.GetBytes(p.body, "context_management.edits")
	if !edits.IsArray() || !strings.Contains(edits.Raw, `"clear_thinking`) {
		return
	}
	p.each("context_management.edits", func(e gjson.Result) (string, bool) {
		return e.Raw, !strings.HasPrefix(str(e.Get("type")), "clear_thinking")
	})
	if gjson.GetBytes(p.body, "context_management.edits.#").Int() == 0 {
		p.del("context_management")
	}
	p.note("context_management.edits")
}

// foreignThoughts removes what only other providers can read.
func foreignThoughts(p *patch, own string) {
	p.each("messages", func(m gjson.Result) (string, bool) {
		content := m.Get("content")
		if !content.IsArray() || !strings.Contains(content.Raw, `"`+wrapMark) {
			return m.Raw, true
		}
		d := doc{}
		d.open("", '[')
		forEach(content, func(_, b gjson.Result) bool {
			field := "signature"
			if str(b.Get("type")) == "redacted_thinking" {
				field = "data"
			}
			sig := str(b.Get(field))
			if !strings.HasPrefix(sig, wrapMark) {
				d.raw("", ownCitations(p, b))
				return true
			}
			if issuer, inside := unwrap(sig, ""); issuer == own && inside != "" {
				d.raw("", members(b, func(name string, x gjson.Result) (string, bool) {
					if name == field {
						return quoted(inside), true
					}
					return x.Raw, true
				}))
				return true
			}
			p.note("messages.thinking")
			return true
		})
		d.close(']')
		if len(d.b) == len("[]") {
			return "", false
		}
		return members(m, func(name string, x gjson.Result) (string, bool) {
			if name == "content" {
				return string(d.b), true
			}
			return x.Raw, true
		}), true
	})
}

// ownCitations returns a block without the citations of other providers.
func ownCitations(p *patch, b gjson.Result) string {
	if !strings.Contains(b.Raw, `"`+wrapMark) || str(b.Get("type")) != "text" {
		return b.Raw
	}
	return members(b, func(name string, v gjson.Result) (string, bool) {
		if name != "citations" || !v.IsArray() {
			return v.Raw, true
		}
		d := doc{}
		d.open("", '[')
		v.ForEach(func(_, c gjson.Result) bool {
			if strings.HasPrefix(str(c.Get("encrypted_index")), wrapMark) {
				p.note("messages.citations")
			} else {
				d.raw("", c.Raw)
			}
			return true
		})
		d.close(']')
		return string(d.b), len(d.b) > len("[]")
	})
}
