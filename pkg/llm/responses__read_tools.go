package llm

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

func readResponsesTools(v gjson.Result, q *request) error {
	if !v.IsArray() {
		return apierr.Invalid("tools", "tools must be an array.")
	}
	forEach(v, func(_, t gjson.Result) bool {
		q.did(pieceWork + len(t.Raw))
		switch kind := str(t.Get("type")); {
		case kind == "function":
			q.tools = append(room(q.tools, v), function(t))
		case kind == "namespace":
			readNamespace(t, q)
		case kind == builtinNames[builtinShell]:
			q.tools = append(q.tools, tool{name: kind, built: builtinShell, description: "Runs a shell command on the user's machine and returns its output.", schema: shellSchema})
		case kind == builtinNames[builtinCommands]:
			f, ok := commandsTool(t)
			if !ok {
				q.drop("tools." + kind)
				return true
			}
			q.tools = append(q.tools, f)
		case kind == builtinNames[builtinPatch]:
			q.tools = append(q.tools, tool{name: kind, built: builtinPatch, description: patchAbout, schema: patchSchema})
		case kind == builtinNames[builtinSearch] && str(t.Get("execution")) == "client":
			f := function(t)
			f.name, f.built, f.strict = kind, builtinSearch, ""
			q.tools = append(q.tools, f)
		case kind == "custom":
			f := t.Get("format")
			q.tools = append(room(q.tools, v), customTool(t, f, f))
		case strings.HasPrefix(kind, "web_search"):
			q.search = true
			q.web.readTool(t)
		default:
			q.drop("tools." + kind)
		}
		return true
	})
	return nil
}

func readResponsesChoice(v gjson.Result, q *request) error {
	switch v.Str {
	case "none":
		q.choice.mode = choiceNone
		return nil
	case "auto":
		q.choice.mode = choiceAuto
		return nil
	case "required":
		q.choice.mode = choiceAny
		return nil
	}
	kind := str(v.Get("type"))
	if built := builtinOf(kind); built != 0 {
		q.choice = toolChoice{mode: choiceTool, name: kind, built: built}
		return nil
	}
	switch kind {
	case "function", "custom":
		q.choice = toolChoice{mode: choiceTool, name: str(v.Get("name")), space: str(v.Get("namespace")), custom: kind == "custom"}
	case "allowed_tools":
		q.choice = allowed(v)
	case "":
		return apierr.Invalid("tool_choice", "Unknown tool_choice.")
	default:
		q.drop("tool_choice." + kind)
	}
	return nil
}

// readNamespace reads {name, description, tools}. The namespace's description
// becomes a part of the first tool's.
func readNamespace(v gjson.Result, q *request) {
	name, about := str(v.Get("name")), str(v.Get("description"))
	forEach(v.Get("tools"), func(_, v gjson.Result) bool {
		var t tool
		switch kind := str(v.Get("type")); kind {
		case "function":
			t = function(v)
		case "custom":
			f := v.Get("format")
			t = customTool(v, f, f)
		default:
			q.drop("tools." + kind)
			return true
		}
		t.space = name
		if about != "" {
			t.description = strings.TrimSpace("About the " + name + " tools: " + about + "\n\n" + t.description)
			about = ""
		}
		q.tools = append(q.tools, t)
		return true
	})
}
