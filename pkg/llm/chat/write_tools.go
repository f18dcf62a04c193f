package chat

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

func writeTools(q *ir.Request, d *ir.Writer, v *ir.Deviations, set func(name, client, raw string)) {
	tools := q.Tools
	if len(q.ToolChoice.Allowed) > 0 && !v.IsOpenAI() { // only OpenAI supports allowed_tools
		if tools = ir.FilterTools(tools, q.ToolChoice.Allowed); len(tools) == 0 {
			q.Drop("tool_choice.allowed_tools")
		}
	}
	if len(tools) == 0 {
		return
	}
	d.Open("tools", '[')
	for i := range tools {
		t := &tools[i]
		if t.Cache != "" {
			q.DropField(ir.FieldCache)
		}
		if t.Custom == "" {
			writeFunction(d, t)
			continue
		}
		d.Open("", '{')
		d.Str("type", "custom")
		d.Raw("custom", nestCustomTool(t.Custom))
		d.Close('}')
	}
	d.Close(']')
	switch c := &q.ToolChoice; {
	case v.ThinksFreely && (c.Mode == ir.ChoiceAny || c.Mode == ir.ChoiceTool) && thinksAbout(q):
		q.Drop("tool_choice")
	case len(c.Allowed) > 0 && v.IsOpenAI():
		e := ir.Writer{}
		e.Open("", '{')
		e.Str("type", "allowed_tools")
		e.Open("allowed_tools", '{')
		mode := "auto"
		if c.Mode == ir.ChoiceAny {
			mode = "required"
		}
		e.Str("mode", mode)
		e.Open("tools", '[')
		custom := q.CustomNames()
		for _, n := range c.Allowed {
			kind := "function"
			if custom[n] {
				kind = "custom"
			}
			e.Open("", '{')
			e.Str("type", kind)
			e.Open(kind, '{')
			e.Str("name", n)
			e.Close('}')
			e.Close('}')
		}
		e.Close(']')
		e.Close('}')
		e.Close('}')
		set("tool_choice", "tool_choice", string(e.Buf))
	case c.Mode == ir.ChoiceAuto:
		set("tool_choice", "tool_choice", `"auto"`)
	case c.Mode == ir.ChoiceAny:
		set("tool_choice", "tool_choice", `"required"`)
	case c.Mode == ir.ChoiceNone:
		set("tool_choice", "tool_choice", `"none"`)
	case c.Mode == ir.ChoiceTool:
		kind := "function"
		if c.Custom {
			kind = "custom"
		}
		set("tool_choice", "tool_choice", `{"type":"`+kind+`","`+kind+`":{"name":`+ir.Quote(c.Name)+`}}`)
	}
	set("parallel_tool_calls", q.FieldName(ir.FieldParallel), q.Parallel)
}

// thinksAbout reports whether a request asks for reasoning.
func thinksAbout(q *ir.Request) bool {
	name := q.EffortName()
	return name != "none" && (name != "" || q.Think != ir.ThinkUnset)
}

// writeFunction writes an entry of tools.
func writeFunction(d *ir.Writer, t *ir.Tool) {
	d.Open("", '{')
	d.Str("type", "function")
	d.Open("function", '{')
	d.Str("name", t.Name)
	d.OptStr("description", t.Description)
	if t.Schema != "" {
		d.Raw("parameters", t.Schema)
	}
	d.OptRaw("strict", t.Strict)
	d.Close('}')
	d.Close('}')
}

// nestCustomTool returns a custom tool in chat's form, made from the flat form.
func nestCustomTool(flat string) string {
	v := gjson.Parse(flat)
	d := ir.Writer{}
	d.Open("", '{')
	d.Str("name", ir.Str(v.Get("name")))
	d.OptStr("description", ir.Str(v.Get("description")))
	if t := ir.Str(v.Get("format.type")); t == "grammar" {
		d.Open("format", '{')
		d.Str("type", t)
		d.Open("grammar", '{')
		d.OptStr("syntax", ir.Str(v.Get("format.syntax")))
		d.OptStr("definition", ir.Str(v.Get("format.definition")))
		d.Close('}')
		d.Close('}')
	} else if t != "" {
		d.Open("format", '{')
		d.Str("type", t)
		d.Close('}')
	}
	d.Close('}')
	return string(d.Buf)
}
