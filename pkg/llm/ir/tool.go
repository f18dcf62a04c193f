package ir

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"
)

// Tool is a function that the model may call.
type Tool struct {
	Name, Description string
	Schema            string // raw JSON; empty when absent
	Strict            string // "true", "false" or empty
	Custom            string // raw JSON of a custom tool, flat form; empty for functions
	Cache             string
	Namespace         string // its namespace
	Builtin           Builtin
}

type choiceMode uint8

// The modes of a tool choice.
const (
	ChoiceUnset choiceMode = iota
	ChoiceAuto
	ChoiceAny
	ChoiceTool
	ChoiceNone
)

// ToolChoice is which tools the model may or must call.
type ToolChoice struct {
	Mode      choiceMode
	Name      string
	Namespace string // namespace of the tool
	Custom    bool
	Builtin   Builtin
	Allowed   []string // only these tools may be called: names, namespaces, or results of identity
}

// FormatTool is the tool that a model must call if the vendor has no structured
// output: its input is the answer.
const FormatTool = "weir_structured_output"

// FilterTools returns the tools that may be called.
func FilterTools(tools []Tool, names []string) (filtered []Tool) {
	may := make(map[string]bool, len(names))
	for _, n := range names {
		may[n] = true
	}
	for i := range tools {
		if may[tools[i].Name] {
			filtered = append(filtered, tools[i])
		}
	}
	return filtered
}

// SchemaOrEmpty returns the schema of a tool, or that of an empty object.
func (t *Tool) SchemaOrEmpty() string { return ObjectSchema(t.Schema) }

// ObjectSchema returns a schema with type object, which upstreams require.
func ObjectSchema(schema string) string {
	if schema == "" || schema == "{}" {
		return `{"type":"object","properties":{}}`
	}
	if gjson.Get(schema, "type").Exists() || schema[0] != '{' {
		return schema
	}
	rest := strings.TrimLeft(schema[1:], " \t\r\n")
	if rest == "}" {
		return ObjectSchema("")
	}
	return `{"type":"object",` + rest
}

// Wrap turns a custom tool into a function. The format of its input becomes text
// in the description.
func (t *Tool) Wrap() {
	f := gjson.Get(t.Custom, "format")
	text := t.Description
	if text != "" {
		text += "\n\n"
	}
	text += "Call this tool as a function, whatever format is described above: put the complete input text in the string \"input\"."
	if def := Str(f.Get("definition")); Str(f.Get("type")) == "grammar" && def != "" {
		kind := "Lark grammar"
		if Str(f.Get("syntax")) == "regex" {
			kind = "regular expression"
		}
		text += " The input must match this " + kind + ":\n" + def
	}
	t.Description, t.Schema, t.Custom, t.Strict = text, inputSchema, "", ""
}

const inputSchema = `{"type":"object","properties":{"input":{"type":"string","description":"The whole input of the tool, as plain text."}},` +
	`"required":["input"],"additionalProperties":false}`

// WrapInput returns the arguments of the function that replaces a custom tool.
func WrapInput(text string) string { return `{"input":` + Quote(text) + `}` }

// ReadFunction reads {name, description, parameters, strict}.
func ReadFunction(f gjson.Result) Tool {
	t := Tool{Name: Str(f.Get("name")), Description: Str(f.Get("description")), Strict: Boolean(f.Get("strict"))}
	if p := f.Get("parameters"); p.IsObject() {
		t.Schema = p.Raw
	}
	return t
}

// ReadCustomTool reads a custom tool into the flat form of Responses.
func ReadCustomTool(c, format, grammar gjson.Result) Tool {
	t := Tool{Name: Str(c.Get("name")), Description: Str(c.Get("description"))}
	d := Writer{}
	d.Open("", '{')
	d.Str("type", "custom")
	d.Str("name", t.Name)
	d.OptStr("description", t.Description)
	if f := Str(format.Get("type")); f == "grammar" {
		d.Open("format", '{')
		d.Str("type", f)
		d.OptStr("syntax", Str(grammar.Get("syntax")))
		d.OptStr("definition", Str(grammar.Get("definition")))
		d.Close('}')
	} else if f != "" {
		d.Open("format", '{')
		d.Str("type", f)
		d.Close('}')
	}
	d.Close('}')
	t.Custom = string(d.Buf)
	return t
}

// ReadAllowedTools reads {mode, tools[]}. The place of a tool's name differs by
// dialect.
func ReadAllowedTools(v gjson.Result) (c ToolChoice) {
	c.Mode = ChoiceAuto
	if Str(v.Get("mode")) == "required" {
		c.Mode = ChoiceAny
	}
	Each(v.Get("tools"), func(_, t gjson.Result) bool {
		for _, path := range [...]string{"name", "function.name", "custom.name"} {
			if n := Str(t.Get(path)); n != "" {
				c.Allowed = append(c.Allowed, identity(Str(t.Get("namespace")), n, 0))
				return true
			}
		}
		if built := BuiltinNamed(Str(t.Get("type"))); built != 0 {
			c.Allowed = append(c.Allowed, identity("", "", built))
		}
		return true
	})
	return c
}

// callMark begins the id of a call that stands for another one: after it comes that
// id in base64url.
const callMark = "weir_"

// maxCallID is the longest id of a call that all vendors accept in a request, but
// OpenAI's chat, which has a limit of 40.
const maxCallID = 64

// SafeCallID returns an id of the characters that Anthropic accepts, the same for
// the same id. OriginalCallID reverses it: some models expect the ids of their own
// calls, such as functions.weather:0, in later turns.
func SafeCallID(id string) string {
	if id == "" {
		return "call"
	}
	safe := func(c byte) bool { return IsLetter(c) || c >= '0' && c <= '9' || c == '_' || c == '-' }
	for i := 0; i < len(id); i++ {
		if safe(id[i]) {
			continue
		}
		if n := base64.RawURLEncoding.EncodedLen(len(id)); len(callMark)+n <= maxCallID {
			return callMark + base64.RawURLEncoding.EncodeToString([]byte(id))
		}
		b := []byte(id)
		for j := range b {
			if !safe(b[j]) {
				b[j] = '_'
			}
		}
		return string(b)
	}
	return id
}

// OriginalCallID returns the id for which SafeCallID has returned id.
func OriginalCallID(id string) string {
	if rest, ok := strings.CutPrefix(id, callMark); ok {
		if raw, err := base64.RawURLEncoding.DecodeString(rest); err == nil && SafeCallID(string(raw)) == id {
			return string(raw)
		}
	}
	return id
}

// ShortCallID returns an id of at most max characters: the same, or a digest of one
// that is longer.
func ShortCallID(id string, max int) string {
	if len(id) <= max {
		return id
	}
	return "call_" + digest(id)[:32]
}
