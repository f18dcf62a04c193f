package llm

func writeMessagesTools(q *request, d *doc, gen *claude, forceFormat bool, marks *int) {
	tools := q.tools
	if len(q.choice.allowed) > 0 {
		tools = only(tools, q.choice.allowed)
	}
	if len(tools) == 0 && !q.search && !forceFormat {
		return
	}
	d.open("tools", '[')
	for i := range tools {
		t := &tools[i]
		d.open("", '{')
		d.str("name", t.name)
		d.opt("description", t.description)
		if t.strict == "true" && gen.schema {
			d.raw("input_schema", q.closed("tools", t.schemaOr()))
			d.bool("strict", true)
		} else {
			d.raw("input_schema", t.schemaOr())
			q.dropStrict(t)
		}
		writeCache(q, d, t.cache, marks)
		d.close('}')
	}
	if q.search {
		d.open("", '{')
		d.str("type", "web_search_20250305")
		d.str("name", "web_search")
		d.optRaw("max_uses", q.web.uses)
		d.optRaw("allowed_domains", q.web.allowed)
		d.optRaw("blocked_domains", q.web.blocked)
		d.optRaw("user_location", q.web.place)
		d.close('}')
		q.dropWeb(true, false, false, false, false)
	}
	if forceFormat {
		d.open("", '{')
		d.str("name", formatTool)
		d.str("description", "Gives the answer.")
		d.raw("input_schema", objectSchema(q.describedSchema()))
		d.close('}')
	}
	d.close(']')
}

func writeMessagesChoice(q *request, d *doc, gen *claude, budget, forceFormat bool) {
	mode, name := q.choice.mode, q.choice.name
	if forceFormat && len(q.tools) == 0 {
		mode, name = choiceTool, formatTool
	} else if forceFormat {
		mode, name = choiceAny, ""
	}
	if (mode == choiceAny || mode == choiceTool) && (!gen.forced || budget) {
		mode = choiceAuto
		q.drop("tool_choice")
	}
	single := q.parallel == "false"
	if mode == choiceUnset && single && len(q.tools) > 0 {
		mode = choiceAuto
	}
	if mode == choiceUnset || len(q.tools) == 0 && !q.search && !forceFormat {
		return
	}
	d.open("tool_choice", '{')
	d.str("type", [...]string{choiceAuto: "auto", choiceAny: "any", choiceTool: "tool", choiceNone: "none"}[mode])
	if mode == choiceTool {
		d.str("name", name)
	}
	if single && mode != choiceNone {
		d.bool("disable_parallel_tool_use", true)
	}
	d.close('}')
}
