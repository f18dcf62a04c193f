package responses

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

func readTools(v gjson.Result, q *ir.Request) error {
	if !v.IsArray() {
		return apierr.Invalid("tools", "tools must be an array.")
	}
	ir.Each(v, func(_, t gjson.Result) bool {
		q.Work(ir.PieceWork + len(t.Raw))
		switch kind := ir.Str(t.Get("type")); {
		case kind == "function":
			q.Tools = append(ir.Reserve(q.Tools, v), ir.ReadFunction(t))
		case kind == "namespace":
			readNamespace(t, q)
		case kind == ir.BuiltinNames[ir.BuiltinShell]:
			q.Tools = append(q.Tools, ir.Tool{Name: kind, Builtin: ir.BuiltinShell,
				Description: "Runs a shell command on the user's machine and returns its output.", Schema: shellSchema})
		case kind == ir.BuiltinNames[ir.BuiltinCommands]:
			f, ok := commandsTool(t)
			if !ok {
				q.Drop("tools." + kind)
				return true
			}
			q.Tools = append(q.Tools, f)
		case kind == ir.BuiltinNames[ir.BuiltinPatch]:
			q.Tools = append(q.Tools, ir.Tool{Name: kind, Builtin: ir.BuiltinPatch, Description: patchDescription,
				Schema: patchSchema})
		case kind == ir.BuiltinNames[ir.BuiltinSearch] && ir.Str(t.Get("execution")) == "client":
			f := ir.ReadFunction(t)
			f.Name, f.Builtin, f.Strict = kind, ir.BuiltinSearch, ""
			q.Tools = append(q.Tools, f)
		case kind == "custom":
			f := t.Get("format")
			q.Tools = append(ir.Reserve(q.Tools, v), ir.ReadCustomTool(t, f, f))
		case strings.HasPrefix(kind, "web_search"):
			q.SearchWeb = true
			q.WebSearch.ReadTool(t)
		default:
			q.Drop("tools." + kind)
		}
		return true
	})
	return nil
}

func readToolChoice(v gjson.Result, q *ir.Request) error {
	switch v.Str {
	case "none":
		q.ToolChoice.Mode = ir.ChoiceNone
		return nil
	case "auto":
		q.ToolChoice.Mode = ir.ChoiceAuto
		return nil
	case "required":
		q.ToolChoice.Mode = ir.ChoiceAny
		return nil
	}
	kind := ir.Str(v.Get("type"))
	if built := ir.BuiltinNamed(kind); built != 0 {
		q.ToolChoice = ir.ToolChoice{Mode: ir.ChoiceTool, Name: kind, Builtin: built}
		return nil
	}
	switch kind {
	case "function", "custom":
		q.ToolChoice = ir.ToolChoice{Mode: ir.ChoiceTool, Name: ir.Str(v.Get("name")), Namespace: ir.Str(v.Get("namespace")),
			Custom: kind == "custom"}
	case "allowed_tools":
		q.ToolChoice = ir.ReadAllowedTools(v)
	case "":
		return apierr.Invalid("tool_choice", "tool_choice must be none, auto, required or an object with a type.")
	default:
		q.Drop("tool_choice." + kind)
	}
	return nil
}

// readNamespace reads {name, description, tools}. The namespace's description
// becomes a part of the first tool's.
func readNamespace(v gjson.Result, q *ir.Request) {
	name, about := ir.Str(v.Get("name")), ir.Str(v.Get("description"))
	ir.Each(v.Get("tools"), func(_, v gjson.Result) bool {
		var t ir.Tool
		switch kind := ir.Str(v.Get("type")); kind {
		case "function":
			t = ir.ReadFunction(v)
		case "custom":
			f := v.Get("format")
			t = ir.ReadCustomTool(v, f, f)
		default:
			q.Drop("tools." + kind)
			return true
		}
		t.Namespace = name
		if about != "" {
			t.Description = strings.TrimSpace("About the " + name + " tools: " + about + "\n\n" + t.Description)
			about = ""
		}
		q.Tools = append(q.Tools, t)
		return true
	})
}
