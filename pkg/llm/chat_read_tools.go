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

// customTool reads a custom tool into the flat form of Responses.
func customTool(c, format, grammar gjson.Result) tool {
	t := tool{name: str(c.Get("name")), description: str(c.Get("description"))}
	d := doc{}
	d.open("", '{')
	d.str("type", "custom")
	d.str("name", t.name)
	d.opt("description", t.description)
	if f := str(format.Get("type")); f == "grammar" {
		d.open("format", '{')
		d.str("type", f)
		d.opt("syntax", str(grammar.Get("syntax")))
		d.opt("definition", str(grammar.Get("definition")))
		d.close('}')
	} else if f != "" {
		d.open("format", '{')
		d.str("type", f)
		d.close('}')
	}
	d.close('}')
	t.custom = string(d.b)
	return t
}

// function reads {name, description, parameters, strict}.
func function(f gjson.Result) tool {
	t := tool{name: str(f.Get("name")), description: str(f.Get("description")), strict: boolean(f.Get("strict"))}
	if p := f.Get("parameters"); p.IsObject() {
		t.schema = p.Raw
	}
	return t
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

// allowed reads {mode, tools[]}, whose entries have a name in some place.
func allowed(v gjson.Result) (c toolChoice) {
	c.mode = choiceAuto
	if str(v.Get("mode")) == "required" {
		c.mode = choiceAny
	}
	forEach(v.Get("tools"), func(_, t gjson.Result) bool {
		for _, path := range [...]string{"name", "function.name", "custom.name"} {
			if n := str(t.Get(path)); n != "" {
				c.allowed = append(c.allowed, identity(str(t.Get("namespace")), n, 0))
				return true
			}
		}
		if built := builtinOf(str(t.Get("type"))); built != 0 {
			c.allowed = append(c.allowed, identity("", "", built))
		}
		return true
	})
	return c
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

// schemaFormat reads {name, description, schema, strict}.
func schemaFormat(s gjson.Result) format {
	f := format{
		kind: formatSchema, name: str(s.Get("name")), description: str(s.Get("description")),
		schema: "{}", strict: boolean(s.Get("strict")),
	}
	if v := s.Get("schema"); v.IsObject() {
		f.schema = v.Raw
	}
	return f
}
