package ir

import "strings"

// schemaMark names the version of JSON Schema. Gemini refuses it.
const schemaMark = `"$schema"`

// WithoutSchemaMarks returns JSON without the $schema members of its schemas. Properties
// of that name stay, as do values that are not schemas (defaults, examples). It
// takes linear time, however deep the input is.
func WithoutSchemaMarks(raw string) string {
	if !strings.Contains(raw, schemaMark) {
		return raw
	}
	d := Writer{Buf: make([]byte, 0, len(raw))}
	// level is an open object or array.
	type level struct {
		object bool
		names  bool // the members' names are the client's own
		data   bool // not a schema
		key    bool // a name comes next
	}
	var open []level
	top := level{}
	last := "" // name of the member that is read
	for i := 0; i < len(raw); {
		start := i
		switch c := raw[i]; c {
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
			continue
		case '{', '[':
			i++
			d.Open("", c)
			below := level{object: c == '{', key: c == '{', data: top.data || top.object && !top.names && isData(last)}
			below.names = below.object && top.object && !top.names && hasNames(last)
			open = append(open, top)
			top = below
			continue
		case '}', ']':
			i++
			d.Close(c)
			top = open[len(open)-1]
			open = open[:len(open)-1]
			top.key = top.object
			continue
		case '"':
			i = endOfString(raw, i)
		default:
			for i < len(raw) && strings.IndexByte(" \t\n\r,]}", raw[i]) < 0 {
				i++
			}
		}
		word := raw[start:i]
		if !top.key {
			d.Raw("", word)
			top.key = top.object
			continue
		}
		if word == schemaMark && !top.names && !top.data {
			i = endOfValue(raw, i)
			continue
		}
		d.Key("")
		d.Buf = append(append(d.Buf, word...), ':')
		top.key, last = false, word
	}
	return string(d.Buf)
}

func hasNames(key string) bool {
	switch key {
	case `"properties"`, `"$defs"`, `"definitions"`, `"patternProperties"`, `"dependentSchemas"`:
		return true
	}
	return false
}

func isData(key string) bool {
	switch key {
	case `"default"`, `"const"`, `"enum"`, `"examples"`:
		return true
	}
	return false
}

// endOfString returns the index after the string that begins at i.
func endOfString(raw string, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// endOfValue returns the index after the value that follows a name.
func endOfValue(raw string, i int) int {
	for depth := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			if i = endOfString(raw, i); depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
			if depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return len(raw)
}
