package ir

import (
	"strings"

	"github.com/tidwall/gjson"
)

// CloseSchema rewrites a schema to one that Anthropic's structured output
// accepts. Objects have additionalProperties false, oneOf becomes anyOf, and
// what the vendor refuses (limits of numbers, lengths, patterns, most formats)
// is written in the description instead and dropped under the field at. The
// vendor's own client does the same. Source: npm:@anthropic-ai/sdk,
// lib/transform-json-schema, and Anthropic's documentation of structured
// outputs, "JSON Schema limitations".
func (q *Request) CloseSchema(at, schema string) string {
	d := Writer{}
	q.closeSchema(at, &d, gjson.Parse(schema))
	return string(d.Buf)
}

// MaxSchemas limits the bytes of schemas that are read for rewriting. Those of an
// inner schema count once for each schema that contains it. Real requests have a
// tenth of it.
const MaxSchemas = 32 << 20

// CountSchema counts the bytes of a schema that is read for rewriting.
func (q *Request) CountSchema(schema gjson.Result) {
	q.SchemaBytes += len(schema.Raw)
	q.Work(3 * len(schema.Raw))
}

// DescribedSchema returns the schema of the answer with the format's name and
// description, for which only OpenAI's dialects have fields, as its title and
// description.
func (q *Request) DescribedSchema() string {
	f := &q.Format
	if f.Name == "" && f.Description == "" {
		return f.Schema
	}
	at := q.FieldName(FieldSchema)
	v := gjson.Parse(f.Schema)
	d := Writer{}
	d.Open("", '{')
	for _, m := range [...][3]string{{"title", f.Name, "name"}, {"description", f.Description, "description"}} {
		if m[1] == "" {
			continue
		}
		if v.Get(m[0]).Exists() {
			if Str(v.Get(m[0])) != m[1] {
				q.Drop(at + m[2])
			}
			continue
		}
		d.Str(m[0], m[1])
	}
	if rest := strings.TrimLeft(f.Schema[1:], " \t\r\n"); rest != "}" {
		d.Key("")
		return string(d.Buf) + rest
	}
	d.Close('}')
	return string(d.Buf)
}

// schemaFormats are the formats of strings that the vendor supports.
const schemaFormats = " date-time time date duration email hostname uri ipv4 ipv6 uuid "

// memberRule returns how a member of a schema is written: unchanged or with its
// own schemas closed, silently omitted, or in the description.
func memberRule(name string, v gjson.Result) (keep, silent bool) {
	switch name {
	case "type", "enum", "const", "default", "title", "description", "required", "$ref", "$defs", "definitions",
		"properties", "items", "anyOf", "oneOf", "allOf":
		return true, false
	case "format":
		return strings.Contains(schemaFormats, " "+v.Str+" "), false
	case "minItems":
		return v.Raw == "0" || v.Raw == "1", false
	case "$schema", "$id", "$comment", "examples":
		return false, true
	case "additionalProperties":
		return false, v.Type == gjson.False
	}
	return false, false
}

// closeSchema writes a schema after its name, or as an element.
func (q *Request) closeSchema(at string, d *Writer, v gjson.Result) {
	if !v.IsObject() {
		d.Raw("", v.Raw)
		return
	}
	if q.CountSchema(v); q.SchemaBytes > MaxSchemas {
		d.Raw("", v.Raw) // llm.Request refuses it
		return
	}
	notes, isObject, described := "", false, false
	Each(v, func(k, x gjson.Result) bool {
		switch k.Str {
		case "type":
			isObject = isObject || strings.Contains(x.Raw, `"object"`)
		case "properties":
			isObject = isObject || x.IsObject()
		case "description":
			described = true
		}
		keep, silent := memberRule(k.Str, x)
		if keep || silent {
			return true
		}
		q.Drop(at + "." + k.Str)
		if k.Str != "additionalProperties" && len(notes)+len(x.Raw) < 1<<10 {
			if notes != "" {
				notes += ", "
			}
			notes += k.Str + ": " + x.Raw
		}
		return true
	})
	if notes != "" {
		notes = "{" + notes + "}"
	}
	d.Open("", '{')
	Each(v, func(k, x gjson.Result) bool {
		if keep, _ := memberRule(k.Str, x); !keep {
			return true
		}
		name := k.Str
		if name == "oneOf" && !v.Get("anyOf").Exists() {
			name = "anyOf"
		}
		switch name {
		case "description":
			text := Str(x)
			if notes != "" {
				text += "\n\n" + notes
			}
			d.Str(name, text)
		case "properties", "$defs", "definitions":
			d.Key(name)
			q.closeEach(at, d, x)
		case "anyOf", "oneOf", "allOf":
			d.Open(name, '[')
			Each(x, func(_, s gjson.Result) bool { q.closeSchema(at, d, s); return true })
			d.Close(']')
		case "items":
			d.Key(name)
			q.closeSchema(at, d, x)
		default:
			d.Raw(name, x.Raw)
		}
		return true
	})
	if notes != "" && !described {
		d.Str("description", notes)
	}
	if isObject {
		d.Bool("additionalProperties", false)
	}
	d.Close('}')
}

// closeEach writes an object whose members are schemas.
func (q *Request) closeEach(at string, d *Writer, v gjson.Result) {
	d.Buf = append(d.Buf, '{')
	Each(v, func(k, x gjson.Result) bool {
		d.Key("")
		d.Buf = append(append(d.Buf, k.Raw...), ':')
		q.closeSchema(at, d, x)
		return true
	})
	d.Close('}')
}

// Strictable reports whether OpenAI accepts a schema with strict true: each
// object requires all of its properties and allows no others.
func (q *Request) Strictable(v gjson.Result) bool {
	if !v.IsObject() {
		return true
	}
	if q.CountSchema(v); q.SchemaBytes > MaxSchemas {
		return false // llm.Request refuses it
	}
	all, ok := 0, true
	each := func(_, x gjson.Result) bool {
		all++
		ok = ok && q.Strictable(x)
		return ok
	}
	if p := v.Get("properties"); p.IsObject() || strings.Contains(v.Get("type").Raw, `"object"`) {
		Each(p, each)
		ok = ok && v.Get("additionalProperties").Type == gjson.False && int(v.Get("required.#").Int()) >= all
	}
	for _, name := range [...]string{"$defs", "definitions", "anyOf", "allOf"} {
		Each(v.Get(name), each)
	}
	return ok && q.Strictable(v.Get("items"))
}
