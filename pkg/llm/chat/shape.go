package chat

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// FlatTools reports whether the tools of a request are not in the form of chat
// completions, but in that of Responses or Messages, as Cursor sends them to the
// chat endpoint (docs/reference/clients.md, 6.3):
//
//	{"type":"function","name","parameters"}, {"type":"custom","name","format"}, {"name","input_schema"}
//
// tools is the raw array.
func FlatTools(tools []byte) bool {
	first := gjson.GetBytes(tools, "0")
	return first.IsObject() && !first.Get("function").Exists() && !first.Get("custom").Exists() &&
		first.Get("name").Type == gjson.String
}

// NestTools returns a request whose flat tools and tool choice are in the form of
// chat completions.
func NestTools(body []byte) ([]byte, error) {
	p := ir.NewPatch(body, nil)
	p.Each("tools", func(t gjson.Result) (string, bool) { return nestTool(t), true })
	if c := p.Get("tool_choice"); c.IsObject() && !c.Get("function").Exists() && !c.Get("custom").Exists() {
		switch kind := ir.Str(c.Get("type")); kind {
		case "any":
			p.Set("tool_choice", `"required"`)
		case "auto", "none":
			p.Set("tool_choice", ir.Quote(kind))
		case "tool", "function":
			p.Set("tool_choice", `{"type":"function","function":{"name":`+ir.Quote(ir.Str(c.Get("name")))+`}}`)
		case "custom":
			p.Set("tool_choice", `{"type":"custom","custom":{"name":`+ir.Quote(ir.Str(c.Get("name")))+`}}`)
		}
	}
	return p.Body, p.Err
}

func nestTool(t gjson.Result) string {
	kind := ir.Str(t.Get("type"))
	if t.Get("function").Exists() || t.Get("name").Type != gjson.String || kind == "custom" && t.Get("custom").Exists() {
		return t.Raw
	}
	if kind != "custom" {
		kind = "function"
	}
	var d ir.Writer
	d.Open("", '{')
	d.Str("type", kind)
	d.Open(kind, '{')
	d.Str("name", t.Get("name").Str)
	d.OptStr("description", ir.Str(t.Get("description")))
	if kind == "custom" {
		if f := t.Get("format"); ir.Str(f.Get("type")) == "grammar" && !f.Get("grammar").Exists() {
			d.Open("format", '{')
			d.Str("type", "grammar")
			d.Open("grammar", '{')
			d.Str("syntax", ir.Str(f.Get("syntax")))
			d.Str("definition", ir.Str(f.Get("definition")))
			d.Close('}')
			d.Close('}')
		} else if f.IsObject() {
			d.Raw("format", f.Raw)
		}
	} else {
		for _, name := range [...]string{"parameters", "input_schema"} {
			if s := t.Get(name); s.IsObject() {
				d.Raw("parameters", s.Raw)
				break
			}
		}
		d.OptRaw("strict", ir.Boolean(t.Get("strict")))
	}
	d.Close('}')
	d.Close('}')
	return string(d.Buf)
}

// HasBlocks reports whether the messages of a request have blocks of the Messages
// dialect, or the request its system prompt, and none of chat's own roles. It is a
// request of that dialect then.
func HasBlocks(body []byte) bool {
	text := ir.View(body)
	foreign := gjson.Get(text, "system").Exists()
	if !foreign && !strings.Contains(text, `"tool_result"`) && !strings.Contains(text, `"tool_use"`) {
		return false
	}
	own := false
	ir.Each(gjson.Get(text, "messages"), func(_, m gjson.Result) bool {
		switch ir.Str(m.Get("role")) {
		case "user", "assistant":
			own = m.Get("tool_calls").Exists()
		default:
			own = true
		}
		ir.Each(m.Get("content"), func(_, b gjson.Result) bool {
			kind := ir.Str(b.Get("type"))
			foreign = foreign || kind == "tool_result" || kind == "tool_use"
			return !foreign
		})
		return !own
	})
	return foreign && !own
}
