package llm

import "github.com/tidwall/gjson"

func writeChatTools(q *request, d *doc, v *Deviations, set func(name, client, raw string)) {
	tools := q.tools
	if len(q.choice.allowed) > 0 && !v.openAI() { // only OpenAI supports allowed_tools
		if tools = only(tools, q.choice.allowed); len(tools) == 0 {
			q.drop("tool_choice.allowed_tools")
		}
	}
	if len(tools) == 0 {
		return
	}
	d.open("tools", '[')
	for i := range tools {
		t := &tools[i]
		if t.cache != "" {
			q.dropField(fieldCache)
		}
		if t.custom == "" {
			writeChatFunction(d, t)
			continue
		}
		d.open("", '{')
		d.str("type", "custom")
		d.raw("custom", nestCustom(t.custom))
		d.close('}')
	}
	d.close(']')
	switch c := &q.choice; {
	case len(c.allowed) > 0 && v.openAI():
		e := doc{}
		e.open("", '{')
		e.str("type", "allowed_tools")
		e.open("allowed_tools", '{')
		mode := "auto"
		if c.mode == choiceAny {
			mode = "required"
		}
		e.str("mode", mode)
		e.open("tools", '[')
		custom := q.customNames()
		for _, n := range c.allowed {
			kind := "function"
			if custom[n] {
				kind = "custom"
			}
			e.open("", '{')
			e.str("type", kind)
			e.open(kind, '{')
			e.str("name", n)
			e.close('}')
			e.close('}')
		}
		e.close(']')
		e.close('}')
		e.close('}')
		set("tool_choice", "tool_choice", string(e.b))
	case c.mode == choiceAuto:
		set("tool_choice", "tool_choice", `"auto"`)
	case c.mode == choiceAny:
		set("tool_choice", "tool_choice", `"required"`)
	case c.mode == choiceNone:
		set("tool_choice", "tool_choice", `"none"`)
	case c.mode == choiceTool:
		kind := "function"
		if c.custom {
			kind = "custom"
		}
		set("tool_choice", "tool_choice", `{"type":"`+kind+`","`+kind+`":{"name":`+quoted(c.name)+`}}`)
	}
	set("parallel_tool_calls", q.fieldName(fieldParallel), q.parallel)
}

// writeChatFunction writes an entry of tools.
func writeChatFunction(d *doc, t *tool) {
	d.open("", '{')
	d.str("type", "function")
	d.open("function", '{')
	d.str("name", t.name)
	d.opt("description", t.description)
	if t.schema != "" {
		d.raw("parameters", t.schema)
	}
	d.optRaw("strict", t.strict)
	d.close('}')
	d.close('}')
}

// nestCustom turns the flat form of a custom tool into chat's.
func nestCustom(flat string) string {
	v := gjson.Parse(flat)
	d := doc{}
	d.open("", '{')
	d.str("name", str(v.Get("name")))
	d.opt("description", str(v.Get("description")))
	if t := str(v.Get("format.type")); t == "grammar" {
		d.open("format", '{')
		d.str("type", t)
		d.open("grammar", '{')
		d.opt("syntax", str(v.Get("format.syntax")))
		d.opt("definition", str(v.Get("format.definition")))
		d.close('}')
		d.close('}')
	} else if t != "" {
		d.open("format", '{')
		d.str("type", t)
		d.close('}')
	}
	d.close('}')
	return string(d.b)
}
