package messages

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// The marks of a request, by number.
const (
	markSignature = iota
	markResult
	markAttribution
)

const resultID = `tool_use_id"`

// Marks are the strings in a request without which Adapt leaves its arrays unread.
var Marks = []string{markSignature: ir.SignatureMark, markResult: resultID, markAttribution: ir.AttributionMark}

// Adapt removes from a body for Claude what other providers have added.
func Adapt(p ir.Patch, opt ir.Options) ir.Patch {
	if v := opt.DeviationsOrDefault().Anthropic; v != "" {
		p.Del("model")
		p.Set("anthropic_version", ir.Quote(v))
		if strings.HasPrefix(v, "bedrock") {
			p.Del("stream")
		}
	}
	if !opt.Attribution && p.Marked(markAttribution) {
		dropAttribution(&p)
	}
	if p.Marked(markSignature) {
		foreignThoughts(&p, opt.IssuerOr(ir.IssuerAnthropic))
	} else if !foreignResult(&p) {
		return p
	}
	budgetThinking(&p)
	return p
}

// foreignResult reports whether the last tool result answers a call of another
// provider. No other body of an ordinary client is parsed a second time.
func foreignResult(p *ir.Patch) bool {
	if !p.Marked(markResult) {
		return false
	}
	id := bytes.TrimLeft(p.After(markResult, resultID), " \t\r\n:")
	return len(id) > 0 && !bytes.HasPrefix(id, []byte(`"toolu_`))
}

// budgetThinking disables a thinking budget if the current turn has called tools
// at another provider: Claude refuses the request without its own thinking before
// these calls. Adaptive thinking does not require it.
func budgetThinking(p *ir.Patch) {
	if p.Err != nil || p.Get("thinking.type").Str != "enabled" {
		return
	}
	bare, calls := false, false // of the last assistant message
	ir.Each(p.Get("messages"), func(_, m gjson.Result) bool {
		content := m.Get("content")
		if !content.IsArray() {
			content = gjson.Result{}
		}
		switch ir.Str(m.Get("role")) {
		case "assistant":
			bare, calls = true, false
			first := true
			ir.Each(content, func(_, b gjson.Result) bool {
				kind := ir.Str(b.Get("type"))
				if first {
					bare, first = kind != "thinking" && kind != "redacted_thinking", false
				}
				calls = calls || kind == "tool_use"
				return true
			})
		case "user":
			answers := false
			ir.Each(content, func(_, b gjson.Result) bool {
				answers = answers || ir.Str(b.Get("type")) == "tool_result"
				return !answers
			})
			calls = calls && answers
		}
		return true
	})
	if !bare || !calls {
		return
	}
	p.Set("thinking", `{"type":"disabled"}`)
	p.Note("thinking")
	// Without thinking Claude refuses clear_thinking edits.
	edits := p.Get("context_management.edits")
	if !edits.IsArray() || !strings.Contains(edits.Raw, `"clear_thinking`) {
		return
	}
	p.Each("context_management.edits", func(e gjson.Result) (string, bool) {
		return e.Raw, !strings.HasPrefix(ir.Str(e.Get("type")), "clear_thinking")
	})
	if p.Get("context_management.edits.#").Int() == 0 {
		p.Del("context_management")
	}
	p.Note("context_management.edits")
}

// foreignThoughts removes thinking that only other providers can read.
func foreignThoughts(p *ir.Patch, own string) {
	p.Each("messages", func(m gjson.Result) (string, bool) {
		content := m.Get("content")
		if !content.IsArray() || !strings.Contains(content.Raw, `"`+ir.SignatureMark) {
			return m.Raw, true
		}
		d := ir.Writer{}
		d.Open("", '[')
		ir.Each(content, func(_, b gjson.Result) bool {
			field := "signature"
			if ir.Str(b.Get("type")) == "redacted_thinking" {
				field = "data"
			}
			sig := ir.Str(b.Get(field))
			if !strings.HasPrefix(sig, ir.SignatureMark) {
				d.Raw("", ownCitations(p, b))
				return true
			}
			if issuer, inside := ir.UnwrapSignature(sig, ""); issuer == own && inside != "" {
				d.Raw("", ir.SetMember(b, field, ir.Quote(inside)))
				return true
			}
			p.Note("messages.thinking")
			return true
		})
		d.Close(']')
		if len(d.Buf) == len("[]") {
			return "", false
		}
		return ir.SetMember(m, "content", string(d.Buf)), true
	})
}

// ownCitations returns a block without the citations of other providers.
func ownCitations(p *ir.Patch, b gjson.Result) string {
	if !strings.Contains(b.Raw, `"`+ir.SignatureMark) || ir.Str(b.Get("type")) != "text" {
		return b.Raw
	}
	return ir.MapMembers(b, func(name string, v gjson.Result) (string, bool) {
		if name != "citations" || !v.IsArray() {
			return v.Raw, true
		}
		d := ir.Writer{}
		d.Open("", '[')
		v.ForEach(func(_, c gjson.Result) bool {
			if strings.HasPrefix(ir.Str(c.Get("encrypted_index")), ir.SignatureMark) {
				p.Note("messages.citations")
			} else {
				d.Raw("", c.Raw)
			}
			return true
		})
		d.Close(']')
		return string(d.Buf), len(d.Buf) > len("[]")
	})
}
