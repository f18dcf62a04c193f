package llm

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

// customNames returns the names of the custom tools.
func (q *request) customNames() map[string]bool {
	names := map[string]bool{}
	for i := range q.tools {
		if q.tools[i].custom != "" {
			names[q.tools[i].name] = true
		}
	}
	return names
}

func writeChatFormat(q *request, d *doc) {
	switch f := &q.format; f.kind {
	case formatText:
		d.raw("response_format", `{"type":"text"}`)
	case formatObject:
		d.raw("response_format", `{"type":"json_object"}`)
	case formatSchema:
		d.open("response_format", '{')
		d.str("type", "json_schema")
		d.open("json_schema", '{')
		d.str("name", f.nameOr("output"))
		d.opt("description", f.description)
		d.raw("schema", f.schema)
		d.optRaw("strict", f.strict)
		d.close('}')
		d.close('}')
	}
}

func (f *format) nameOr(name string) string {
	if f.name != "" {
		return f.name
	}
	return name
}

// writeChatEffort asks for reasoning the way the upstream wants to be asked.
func writeChatEffort(q *request, d *doc, model string, v *Deviations, reasons bool) {
	name := q.effortName()
	if name == "" && q.think == thinkUnset {
		return
	}
	q.dropSet("reasoning.summary", q.summary)
	onOff := "enabled"
	if name == "none" {
		onOff = "disabled"
	}
	effort := name
	if name != "" {
		effort = v.round(name)
		if leveled := v.Think != ThinkSwitch && v.Think != ThinkEnable; name != "none" && q.effort != "" && (!leveled || effort != name && !v.means(name)) && !v.openAIModel(model) {
			q.dropEffort()
		}
	}
	switch v.Think {
	case ThinkEffort:
		// An ordinary model of OpenAI refuses the field.
		if openai := v.openAIModel(model); openai && !reasons {
			if name != "none" {
				q.dropField(fieldEffort)
			}
		} else if openai {
			d.opt("reasoning_effort", q.openaiEffort(model, name))
		} else if effort != "" {
			d.str("reasoning_effort", effort)
		} else {
			q.dropField(fieldEffort)
		}
	case ThinkReasoning:
		d.open("reasoning", '{')
		switch {
		case q.think == thinkBudget:
			d.int("max_tokens", q.budget)
		case effort != "":
			d.str("effort", effort)
		default:
			d.bool("enabled", true)
		}
		d.close('}')
	case ThinkType, ThinkSwitch:
		d.open("thinking", '{')
		d.str("type", onOff)
		d.close('}')
		if v.Think == ThinkType && effort != "" && name != "none" {
			d.str("reasoning_effort", effort)
		}
	case ThinkEnable:
		d.bool("enable_thinking", name != "none")
		if q.think == thinkBudget {
			d.int("thinking_budget", q.budget)
		}
	case ThinkNone:
		q.dropField(fieldEffort)
	}
}
