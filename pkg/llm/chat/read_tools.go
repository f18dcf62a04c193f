package chat

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

func readTools(v gjson.Result, q *ir.Request) (err error) {
	if !v.IsArray() {
		return apierr.Invalid("tools", "tools must be an array.")
	}
	ir.Each(v, func(_, t gjson.Result) bool {
		q.Work(ir.PieceWork + len(t.Raw))
		switch kind := ir.Str(t.Get("type")); kind {
		case "function":
			q.Tools = append(ir.Reserve(q.Tools, v), ir.ReadFunction(t.Get("function")))
		case "custom":
			c := t.Get("custom")
			q.Tools = append(ir.Reserve(q.Tools, v), ir.ReadCustomTool(c, c.Get("format"), c.Get("format.grammar")))
		default:
			q.Drop("tools." + kind)
		}
		return true
	})
	return nil
}

func readToolChoice(v gjson.Result) (c ir.ToolChoice, err error) {
	switch v.Str {
	case "none":
		c.Mode = ir.ChoiceNone
		return c, nil
	case "auto":
		c.Mode = ir.ChoiceAuto
		return c, nil
	case "required", "any":
		c.Mode = ir.ChoiceAny
		return c, nil
	}
	switch ir.Str(v.Get("type")) {
	case "function":
		c = ir.ToolChoice{Mode: ir.ChoiceTool, Name: ir.Str(v.Get("function.name"))}
	case "custom":
		c = ir.ToolChoice{Mode: ir.ChoiceTool, Name: ir.Str(v.Get("custom.name")), Custom: true}
	case "allowed_tools":
		c = ir.ReadAllowedTools(v.Get("allowed_tools"))
	}
	if c.Mode == ir.ChoiceUnset || c.Mode == ir.ChoiceTool && c.Name == "" {
		return c, apierr.Invalid("tool_choice", "tool_choice must be none, auto, required or an object that names a tool.")
	}
	return c, nil
}

func readFormat(v gjson.Result) (f ir.Format, err error) {
	switch ir.Str(v.Get("type")) {
	case "text":
		f.Kind = ir.FormatText
	case "json_object":
		f.Kind = ir.FormatObject
	case "json_schema":
		f = ir.ReadSchemaFormat(v.Get("json_schema"))
	default:
		err = apierr.Invalid("response_format", "response_format.type must be text, json_object or json_schema.")
	}
	return f, err
}
