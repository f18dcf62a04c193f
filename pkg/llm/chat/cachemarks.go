package chat

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// The members by which a chat client marks the end of a cached prefix.
var ownMarks = [...][]byte{[]byte(`"cache_control"`), []byte(`"prompt_cache_breakpoint"`)}

const cacheControl = `"cache_control":{"type":"ephemeral"}`

// markCache marks the system prompt and the last texts of the last two turns of the
// user, as ir.Request.MarkCache does, for Claude at an upstream that reads marks of
// texts. A turn of results alone has no text that could be marked.
func markCache(p *ir.Patch, opt *ir.Options) {
	marks := opt.CacheMarks
	if marks == nil || !opt.DeviationsOrDefault().CacheTexts || !strings.Contains(opt.Model, "claude") {
		return
	}
	marks.Added = nil
	for _, own := range ownMarks {
		if bytes.Contains(p.Body, own) {
			return
		}
	}
	system, user := -1, [2]int{-1, -1}
	lead, answered := true, true
	session := p.Get("tools.#").Int() > 0 // see ir.CacheMarks
	n := 0
	ir.Each(p.Get("messages"), func(_, m gjson.Result) bool {
		role := ir.Str(m.Get("role"))
		lead = lead && (role == "system" || role == "developer")
		switch {
		case role == "assistant":
			answered, session = true, true
		case !lead && role != "user" || !hasText(m.Get("content")):
		case lead:
			system = n
		default:
			if answered {
				user[0] = user[1]
			}
			user[1], answered = n, false
		}
		n++
		return true
	})
	if marks.Auto && !session {
		return
	}
	if !session {
		user = [2]int{-1, -1}
	}
	n = 0
	p.Each("messages", func(m gjson.Result) (string, bool) {
		at := n
		n++
		switch at {
		case system:
			marks.Added = append(marks.Added, "system")
		case user[0], user[1]:
			marks.Added = append(marks.Added, "user")
		default:
			return m.Raw, true
		}
		done := false // a second content is not looked at
		return ir.MapMembers(m, func(name string, v gjson.Result) (string, bool) {
			if name == "content" && !done {
				done = true
				return markedContent(v), true
			}
			return v.Raw, true
		}), true
	})
}

// hasText reports whether a content has a text that is not blank.
func hasText(content gjson.Result) bool {
	if content.Type == gjson.String {
		return strings.TrimSpace(content.Str) != ""
	}
	return lastText(content) >= 0
}

// lastText returns the index of the last part that is a text, or -1.
func lastText(content gjson.Result) int {
	last, n := -1, 0
	ir.Each(content, func(_, part gjson.Result) bool {
		if part.IsObject() && strings.TrimSpace(ir.Str(part.Get("text"))) != "" {
			last = n
		}
		n++
		return true
	})
	return last
}

// markedContent returns a content with a mark at its last text.
func markedContent(content gjson.Result) string {
	if content.Type == gjson.String {
		return `[{"type":"text","text":` + content.Raw + `,` + cacheControl + `}]`
	}
	var b strings.Builder
	last, n := lastText(content), 0
	ir.Each(content, func(_, part gjson.Result) bool {
		if n > 0 {
			b.WriteByte(',')
		}
		if n == last {
			b.WriteString(strings.TrimSuffix(part.Raw, "}") + `,` + cacheControl + `}`)
		} else {
			b.WriteString(part.Raw)
		}
		n++
		return true
	})
	return `[` + b.String() + `]`
}
