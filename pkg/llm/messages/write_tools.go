package messages

import "weir/pkg/llm/ir"

func writeTools(q *ir.Request, d *ir.Writer, gen *ir.ClaudeModel, forceFormat bool, marks *int) {
	tools := q.Tools
	if len(q.ToolChoice.Allowed) > 0 {
		tools = ir.FilterTools(tools, q.ToolChoice.Allowed)
	}
	if len(tools) == 0 && !q.SearchWeb && !forceFormat {
		return
	}
	d.Open("tools", '[')
	for i := range tools {
		t := &tools[i]
		d.Open("", '{')
		d.Str("name", t.Name)
		d.OptStr("description", t.Description)
		if t.Strict == "true" && gen.Schema {
			d.Raw("input_schema", q.CloseSchema("tools", t.SchemaOrEmpty()))
			d.Bool("strict", true)
		} else {
			d.Raw("input_schema", t.SchemaOrEmpty())
			q.DropStrict(t)
		}
		writeCacheControl(q, d, t.Cache, marks)
		d.Close('}')
	}
	if q.SearchWeb {
		d.Open("", '{')
		d.Str("type", "web_search_20250305")
		d.Str("name", "web_search")
		d.OptRaw("max_uses", q.WebSearch.MaxUses)
		d.OptRaw("allowed_domains", q.WebSearch.Allowed)
		d.OptRaw("blocked_domains", q.WebSearch.Blocked)
		d.OptRaw("user_location", q.WebSearch.Location)
		d.Close('}')
		q.DropWeb(true, false, false, false, false)
	}
	if forceFormat {
		d.Open("", '{')
		d.Str("name", ir.FormatTool)
		d.Str("description", "Returns the answer.")
		d.Raw("input_schema", ir.ObjectSchema(q.DescribedSchema()))
		d.Close('}')
	}
	d.Close(']')
}

func writeToolChoice(q *ir.Request, d *ir.Writer, gen *ir.ClaudeModel, budget, forceFormat bool) {
	mode, name := q.ToolChoice.Mode, q.ToolChoice.Name
	if forceFormat && len(q.Tools) == 0 {
		mode, name = ir.ChoiceTool, ir.FormatTool
	} else if forceFormat {
		mode, name = ir.ChoiceAny, ""
	}
	if (mode == ir.ChoiceAny || mode == ir.ChoiceTool) && (!gen.Forced || budget) {
		mode = ir.ChoiceAuto
		q.Drop("tool_choice")
	}
	single := q.Parallel == "false"
	if mode == ir.ChoiceUnset && single && len(q.Tools) > 0 {
		mode = ir.ChoiceAuto
	}
	if mode == ir.ChoiceUnset || len(q.Tools) == 0 && !q.SearchWeb && !forceFormat {
		return
	}
	d.Open("tool_choice", '{')
	d.Str("type", [...]string{ir.ChoiceAuto: "auto", ir.ChoiceAny: "any", ir.ChoiceTool: "tool",
		ir.ChoiceNone: "none"}[mode])
	if mode == ir.ChoiceTool {
		d.Str("name", name)
	}
	if single && mode != ir.ChoiceNone {
		d.Bool("disable_parallel_tool_use", true)
	}
	d.Close('}')
}
