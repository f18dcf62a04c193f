package llm

import (
	"strings"

	"github.com/tidwall/gjson"
)

// tool is a function that the model may call.
type tool struct {
	name, description string
	schema            string // raw JSON; empty when absent
	strict            string // "true", "false" or empty
	custom            string // raw JSON of a custom tool, flat form; empty for functions
	cache             string
	space             string // its namespace
	built             builtin
}

type choiceMode uint8

const (
	choiceUnset choiceMode = iota
	choiceAuto
	choiceAny
	choiceTool
	choiceNone
)

type toolChoice struct {
	mode    choiceMode
	name    string
	space   string // namespace of the tool
	custom  bool
	built   builtin
	allowed []string // only these tools may be called: names, namespaces, or results of identity
}

// formatTool is the tool that a model is made to call where the vendor has no
// structured output: its input is the answer.
const formatTool = "weir_structured_output"

// only keeps the tools that may be called.
func only(tools []tool, names []string) (kept []tool) {
	may := make(map[string]bool, len(names))
	for _, n := range names {
		may[n] = true
	}
	for i := range tools {
		if may[tools[i].name] {
			kept = append(kept, tools[i])
		}
	}
	return kept
}

// schemaOr gives the schema of a tool, at least that of an empty object.
func (t *tool) schemaOr() string { return objectSchema(t.schema) }

func objectSchema(schema string) string {
	if schema == "" || schema == "{}" {
		return `{"type":"object","properties":{}}`
	}
	if gjson.Get(schema, "type").Exists() || schema[0] != '{' {
		return schema
	}
	rest := strings.TrimLeft(schema[1:], " \t\r\n")
	if rest == "}" {
		return objectSchema("")
	}
	return `{"type":"object",` + rest
}

// wrap turns a custom tool into a function. The format of its input becomes text
// in the description.
func (t *tool) wrap() {
	f := gjson.Get(t.custom, "format")
	text := t.description
	if text != "" {
		text += "\n\n"
	}
	text += "Call this tool as a function, whatever format is described above: put the complete input text in the string \"input\"."
	if def := str(f.Get("definition")); str(f.Get("type")) == "grammar" && def != "" {
		kind := "Lark grammar"
		if str(f.Get("syntax")) == "regex" {
			kind = "regular expression"
		}
		text += " The input must match this " + kind + ":\n" + def
	}
	t.description, t.schema, t.custom, t.strict = text, inputSchema, "", ""
}

const inputSchema = `{"type":"object","properties":{"input":{"type":"string","description":"The whole input of the tool, as plain text."}},` +
	`"required":["input"],"additionalProperties":false}`

// wrapInput returns the arguments of the function that replaces a custom tool.
func wrapInput(text string) string { return `{"input":` + quoted(text) + `}` }

// function reads {name, description, parameters, strict}.
func function(f gjson.Result) tool {
	t := tool{name: str(f.Get("name")), description: str(f.Get("description")), strict: boolean(f.Get("strict"))}
	if p := f.Get("parameters"); p.IsObject() {
		t.schema = p.Raw
	}
	return t
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

// messagesID makes an id of the characters that the vendor takes; the same
// for the same id.
func messagesID(id string) string {
	for i := 0; i < len(id); i++ {
		if c := id[i]; !letter(c) && (c < '0' || c > '9') && c != '_' && c != '-' {
			b := []byte(id)
			for j := range b {
				if c := b[j]; !letter(c) && (c < '0' || c > '9') && c != '_' && c != '-' {
					b[j] = '_'
				}
			}
			return string(b)
		}
	}
	if id == "" {
		return "call"
	}
	return id
}
