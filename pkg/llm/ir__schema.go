package llm

import (
	"strings"

	"github.com/tidwall/gjson"
)

// closed makes a schema one that Anthropic's structured output takes. Objects
// have additionalProperties false, oneOf becomes anyOf, and what the vendor
// refuses (limits of numbers, lengths, patterns, most formats) is told in the
// description instead and named as dropped under the field at. It is what the
// vendor's own client does; source: npm:@anthropic-ai/sdk,
// lib/transform-json-schema, and Anthropic's documentation of structured
// outputs, "JSON Schema limitations".
func (q *request) closed(at, schema string) string {
	d := doc{}
	q.closeSchema(at, &d, gjson.Parse(schema))
	return string(d.b)
}

// maxSchemas limits the bytes of schemas that are read for rewriting. Those of an
// inner schema count once for each schema that contains it. Real requests have a
// tenth of it.
const maxSchemas = 32 << 20

// read counts the bytes of a schema.
func (q *request) read(schema gjson.Result) {
	q.schemas += len(schema.Raw)
	q.did(3 * len(schema.Raw))
}

// describedSchema returns the schema of the answer with the format's name and
// description, for which only OpenAI's dialects have fields, as its title and
// description.
func (q *request) describedSchema() string {
	f := &q.format
	if f.name == "" && f.description == "" {
		return f.schema
	}
	at := q.fieldName(fieldSchema)
	v := gjson.Parse(f.schema)
	d := doc{}
	d.open("", '{')
	for _, m := range [...][3]string{{"title", f.name, "name"}, {"description", f.description, "description"}} {
		if m[1] == "" {
			continue
		}
		if v.Get(m[0]).Exists() {
			if str(v.Get(m[0])) != m[1] {
				q.drop(at + m[2])
			}
			continue
		}
		d.str(m[0], m[1])
	}
	if rest := strings.TrimLeft(f.schema[1:], " \t\r\n"); rest != "}" {
		d.key("")
		return string(d.b) + rest
	}
	d.close('}')
	return string(d.b)
}

// formats of strings that the vendor knows.
const schemaFormats = " date-time time date duration email hostname uri ipv4 ipv6 uuid "

// keeps tells what becomes of a member of a schema: it is taken as it is or
// with its own schemas closed, is left out, or is told in words.
func keeps(name string, v gjson.Result) (kept, silent bool) {
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
func (q *request) closeSchema(at string, d *doc, v gjson.Result) {
	if !v.IsObject() {
		d.raw("", v.Raw)
		return
	}
	if q.read(v); q.schemas > maxSchemas {
		d.raw("", v.Raw) // Request refuses it
		return
	}
	words, isObject, described := "", false, false
	forEach(v, func(k, x gjson.Result) bool {
		switch k.Str {
		case "type":
			isObject = isObject || strings.Contains(x.Raw, `"object"`)
		case "properties":
			isObject = isObject || x.IsObject()
		case "description":
			described = true
		}
		kept, silent := keeps(k.Str, x)
		if kept || silent {
			return true
		}
		q.drop(at + "." + k.Str)
		if k.Str != "additionalProperties" && len(words)+len(x.Raw) < 1<<10 {
			if words != "" {
				words += ", "
			}
			words += k.Str + ": " + x.Raw
		}
		return true
	})
	if words != "" {
		words = "{" + words + "}"
	}
	d.open("", '{')
	forEach(v, func(k, x gjson.Result) bool {
		if kept, _ := keeps(k.Str, x); !kept {
			return true
		}
		name := k.Str
		if name == "oneOf" && !v.Get("anyOf").Exists() {
			name = "anyOf"
		}
		switch name {
		case "description":
			text := str(x)
			if words != "" {
				text += "\n\n" + words
			}
			d.str(name, text)
		case "properties", "$defs", "definitions":
			d.key(name)
			q.closeEach(at, d, x)
		case "anyOf", "oneOf", "allOf":
			d.open(name, '[')
			forEach(x, func(_, s gjson.Result) bool { q.closeSchema(at, d, s); return true })
			d.close(']')
		case "items":
			d.key(name)
			q.closeSchema(at, d, x)
		default:
			d.raw(name, x.Raw)
		}
		return true
	})
	if words != "" && !described {
		d.str("description", words)
	}
	if isObject {
		d.bool("additionalProperties", false)
	}
	d.close('}')
}

// closeEach writes an object whose members are schemas.
func (q *request) closeEach(at string, d *doc, v gjson.Result) {
	d.b = append(d.b, '{')
	forEach(v, func(k, x gjson.Result) bool {
		d.key("")
		d.b = append(append(d.b, k.Raw...), ':')
		q.closeSchema(at, d, x)
		return true
	})
	d.close('}')
}

// strictable tells whether OpenAI takes a schema with strict true: each object
// requires all that it has, and nothing else.
func (q *request) strictable(v gjson.Result) bool {
	if !v.IsObject() {
		return true
	}
	if q.read(v); q.schemas > maxSchemas {
		return false // Request refuses it
	}
	all, ok := 0, true
	each := func(_, x gjson.Result) bool {
		all++
		ok = ok && q.strictable(x)
		return ok
	}
	if p := v.Get("properties"); p.IsObject() || strings.Contains(v.Get("type").Raw, `"object"`) {
		forEach(p, each)
		ok = ok && v.Get("additionalProperties").Type == gjson.False && int(v.Get("required.#").Int()) >= all
	}
	for _, name := range [...]string{"$defs", "definitions", "anyOf", "allOf"} {
		forEach(v.Get(name), each)
	}
	return ok && q.strictable(v.Get("items"))
}
