package llm

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

func readChatTools(v gjson.Result, q *request) (err error) {
	if !v.IsArray() {
		return apierr.Invalid("tools", "tools must be an array.")
	}
	forEach(v, func(_, t gjson.Result) bool {
		q.did(pieceWork + len(t.Raw))
		switch kind := str(t.Get("type")); kind {
		case "function":
			q.tools = append(room(q.tools, v), function(t.Get("function")))
		case "custom":
			c := t.Get("custom")
			q.tools = append(room(q.tools, v), customTool(c, c.Get("format"), c.Get("format.grammar")))
		default:
			q.drop("tools." + kind)
		}
		return true
	})
	return nil
}

func chatChoice(v gjson.Result) (c toolChoice, err error) {
	switch v.Str {
	case "none":
		c.mode = choiceNone
		return c, nil
	case "auto":
		c.mode = choiceAuto
		return c, nil
	case "required", "any":
		c.mode = choiceAny
		return c, nil
	}
	switch str(v.Get("type")) {
	case "function":
		c = toolChoice{mode: choiceTool, name: str(v.Get("function.name"))}
	case "custom":
		c = toolChoice{mode: choiceTool, name: str(v.Get("custom.name")), custom: true}
	case "allowed_tools":
		c = allowed(v.Get("allowed_tools"))
	}
	if c.mode == choiceUnset || c.mode == choiceTool && c.name == "" {
		return c, apierr.Invalid("tool_choice", "Unknown tool_choice.")
	}
	return c, nil
}

func chatFormat(v gjson.Result) (f format, err error) {
	switch str(v.Get("type")) {
	case "text":
		f.kind = formatText
	case "json_object":
		f.kind = formatObject
	case "json_schema":
		f = schemaFormat(v.Get("json_schema"))
	default:
		err = apierr.Invalid("response_format", "Unknown response_format.")
	}
	return f, err
}
