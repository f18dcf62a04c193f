package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// jsonSchema returns the JSON Schema of a Schema of Google's API: OpenAPI's subset
// with types in capital letters, nullable, and lengths as strings. Members that both
// have keep their bytes, so that a JSON Schema passes.
func jsonSchema(q *ir.Request, schema gjson.Result) string {
	d := ir.Writer{Buf: make([]byte, 0, len(schema.Raw))}
	writeSchema(q, &d, schema)
	return string(d.Buf)
}

func writeSchema(q *ir.Request, d *ir.Writer, v gjson.Result) {
	if !v.IsObject() {
		d.Raw("", v.Raw)
		return
	}
	if q.CountSchema(v); q.SchemaBytes > ir.MaxSchemas {
		d.Raw("", v.Raw) // llm.Request refuses it
		return
	}
	nullable := v.Get("nullable").Type == gjson.True
	d.Open("", '{')
	members(v, func(name string, x gjson.Result) bool {
		switch name {
		case "nullable", "propertyOrdering", "example":
		case "type":
			writeType(d, x, nullable)
		case "format":
			switch x.Str {
			case "enum", "int32", "int64", "float", "double":
			default:
				d.Raw(name, x.Raw)
			}
		case "enum":
			if nullable && x.IsArray() && strings.TrimSpace(x.Raw[1:len(x.Raw)-1]) != "" {
				d.Raw(name, x.Raw[:len(x.Raw)-1]+",null]")
				break
			}
			d.Raw(name, x.Raw)
		case "minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength":
			if n, err := number(name, x); err == nil {
				d.Raw(name, n)
			}
		case "items", "additionalProperties":
			d.Key(name)
			writeSchema(q, d, x)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			d.Open(name, '[')
			ir.Each(x, func(_, s gjson.Result) bool { writeSchema(q, d, s); return true })
			if name == "anyOf" && nullable && !v.Get("type").Exists() {
				d.Raw("", `{"type":"null"}`)
			}
			d.Close(']')
		case "properties", "$defs", "definitions", "defs":
			if name == "defs" {
				name = "$defs"
			}
			d.Open(name, '{')
			ir.Each(x, func(k, s gjson.Result) bool {
				if s.Type != gjson.Null {
					d.Raw("", k.Raw)
					d.Buf = append(d.Buf, ':')
					writeSchema(q, d, s)
				}
				return true
			})
			d.Close('}')
		default:
			d.Raw("", ir.Quote(name))
			d.Buf = append(append(d.Buf, ':'), x.Raw...)
		}
		return true
	})
	d.Close('}')
}

// writeType writes the type of a schema.
func writeType(d *ir.Writer, x gjson.Result, nullable bool) {
	name := strings.ToLower(x.Str)
	switch {
	case x.Type != gjson.String:
		d.Raw("type", x.Raw)
	case name == "type_unspecified":
	case nullable && name != "null":
		d.Raw("type", ir.QuoteList([]string{name, "null"}))
	default:
		d.Str("type", name)
	}
}
