package llm

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonscan"
)

// allowedTools removes all other tools for an upstream that does not support
// allowed_tools, and replaces tool_choice with its mode.
func limitTools(p *patch) {
	v := gjson.GetBytes(p.body, "tool_choice")
	if str(v.Get("type")) != "allowed_tools" {
		return
	}
	c := allowed(v.Get("allowed_tools"))
	may := make(map[string]bool, len(c.allowed))
	for _, name := range c.allowed {
		may[name] = true
	}
	mode := `"auto"`
	if c.mode == choiceAny {
		mode = `"required"`
	}
	p.set("tool_choice", mode)
	left := false
	p.each("tools", func(t gjson.Result) (string, bool) {
		keep := may[str(t.Get("function.name"))] || may[str(t.Get("custom.name"))]
		left = left || keep
		return t.Raw, keep
	})
	if !left {
		p.del("tools")
		p.del("tool_choice")
		p.dropped = append(p.dropped, "tool_choice.allowed_tools")
	}
}

// customTools turns the custom tools of a chat request into functions, for an
// upstream of the same dialect that supports only these.
func wrapCustomTools(p *patch, t *Tools) {
	p.each("tools", func(v gjson.Result) (string, bool) {
		if str(v.Get("type")) != "custom" {
			return v.Raw, true
		}
		c := v.Get("custom")
		f := customTool(c, c.Get("format"), c.Get("format.grammar"))
		t.note(strings.Clone(f.name), callee{name: strings.Clone(f.name), custom: true, wrapped: true})
		f.wrap()
		d := doc{}
		writeChatFunction(&d, &f)
		return string(d.b), true
	})
	if c := gjson.GetBytes(p.body, "tool_choice"); c.IsObject() {
		p.body = jsonscan.Splice(p.body, jsonscan.Span{Start: c.Index, End: c.Index + len(c.Raw)}, []byte(functionRef(c)))
	}
	p.each("messages", func(m gjson.Result) (string, bool) {
		calls := m.Get("tool_calls")
		if !calls.IsArray() || !strings.Contains(calls.Raw, `"custom"`) {
			return m.Raw, true
		}
		return members(m, func(name string, x gjson.Result) (string, bool) {
			if name != "tool_calls" {
				return x.Raw, true
			}
			d := doc{}
			d.open("", '[')
			forEach(x, func(_, c gjson.Result) bool {
				if b := chatCall(c); b.custom {
					b.custom, b.args = false, wrapInput(b.args)
					writeChatCall(&d, &b, b.id, false)
				} else {
					d.raw("", c.Raw)
				}
				return true
			})
			d.close(']')
			return string(d.b), true
		}), true
	})
}

// functionRef turns {type:custom} into {type:function} in a tool_choice.
func functionRef(v gjson.Result) string {
	if str(v.Get("type")) == "custom" && v.Get("custom").IsObject() {
		return `{"type":"function","function":` + v.Get("custom").Raw + `}`
	}
	if !v.Get("allowed_tools.tools").IsArray() {
		return v.Raw
	}
	return members(v, func(name string, x gjson.Result) (string, bool) {
		if name != "allowed_tools" {
			return x.Raw, true
		}
		return members(x, func(name string, x gjson.Result) (string, bool) {
			if name != "tools" {
				return x.Raw, true
			}
			d := doc{}
			d.open("", '[')
			forEach(x, func(_, e gjson.Result) bool { d.raw("", functionRef(e)); return true })
			d.close(']')
			return string(d.b), true
		}), true
	})
}
