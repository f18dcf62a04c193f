package chat

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/jsonscan"
)

// limitTools removes all tools that tool_choice does not allow, for an upstream
// without allowed_tools, and replaces tool_choice with its mode.
func limitTools(p *ir.Patch) {
	v := p.Get("tool_choice")
	if ir.Str(v.Get("type")) != "allowed_tools" {
		return
	}
	c := ir.ReadAllowedTools(v.Get("allowed_tools"))
	may := make(map[string]bool, len(c.Allowed))
	for _, name := range c.Allowed {
		may[name] = true
	}
	mode := `"auto"`
	if c.Mode == ir.ChoiceAny {
		mode = `"required"`
	}
	p.Set("tool_choice", mode)
	left := false
	p.Each("tools", func(t gjson.Result) (string, bool) {
		keep := may[ir.Str(t.Get("function.name"))] || may[ir.Str(t.Get("custom.name"))]
		left = left || keep
		return t.Raw, keep
	})
	if !left {
		p.Del("tools")
		p.Del("tool_choice")
		p.Dropped = append(p.Dropped, "tool_choice.allowed_tools")
	}
}

// wrapCustomTools turns the custom tools of a chat request into functions, for
// an upstream of the same dialect that supports only these.
func wrapCustomTools(p *ir.Patch, t *ir.Tools) {
	p.Each("tools", func(v gjson.Result) (string, bool) {
		if ir.Str(v.Get("type")) != "custom" {
			return v.Raw, true
		}
		c := v.Get("custom")
		f := ir.ReadCustomTool(c, c.Get("format"), c.Get("format.grammar"))
		t.Map(strings.Clone(f.Name), ir.ClientTool{Name: strings.Clone(f.Name), Custom: true, Wrapped: true})
		f.Wrap()
		d := ir.Writer{}
		writeFunction(&d, &f)
		return string(d.Buf), true
	})
	if c := p.Get("tool_choice"); c.IsObject() {
		p.Body = jsonscan.Splice(p.Body, jsonscan.Span{Start: c.Index, End: c.Index + len(c.Raw)}, []byte(functionRef(c)))
	}
	p.Each("messages", func(m gjson.Result) (string, bool) {
		calls := m.Get("tool_calls")
		if !calls.IsArray() || !strings.Contains(calls.Raw, `"custom"`) {
			return m.Raw, true
		}
		return ir.MapMembers(m, func(name string, x gjson.Result) (string, bool) {
			if name != "tool_calls" {
				return x.Raw, true
			}
			d := ir.Writer{}
			d.Open("", '[')
			ir.Each(x, func(_, c gjson.Result) bool {
				if b := ir.ReadChatCall(c); b.Custom {
					b.Custom, b.Arguments = false, ir.WrapInput(b.Arguments)
					ir.WriteChatCall(&d, &b, b.ID, false)
				} else {
					d.Raw("", c.Raw)
				}
				return true
			})
			d.Close(']')
			return string(d.Buf), true
		}), true
	})
}

// functionRef turns {type:custom} into {type:function} in a tool_choice.
func functionRef(v gjson.Result) string {
	if ir.Str(v.Get("type")) == "custom" && v.Get("custom").IsObject() {
		return `{"type":"function","function":` + v.Get("custom").Raw + `}`
	}
	if !v.Get("allowed_tools.tools").IsArray() {
		return v.Raw
	}
	return ir.MapMembers(v, func(name string, x gjson.Result) (string, bool) {
		if name != "allowed_tools" {
			return x.Raw, true
		}
		return ir.MapMembers(x, func(name string, x gjson.Result) (string, bool) {
			if name != "tools" {
				return x.Raw, true
			}
			d := ir.Writer{}
			d.Open("", '[')
			ir.Each(x, func(_, e gjson.Result) bool { d.Raw("", functionRef(e)); return true })
			d.Close(']')
			return string(d.Buf), true
		}), true
	})
}
