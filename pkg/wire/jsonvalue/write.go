package jsonvalue

import (
	"cmp"
	"strconv"

	"weir/pkg/wire/jsonscan"
)

// Quote returns s as a JSON string.
func Quote(s string) string { return string(jsonscan.Quote(nil, s)) }

// Strings returns a JSON array of strings, or "" for an empty list.
func Strings(list []string) string {
	if len(list) == 0 {
		return ""
	}
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonscan.Quote(b, s)
	}
	return string(append(b, ']'))
}

// Writer appends one JSON document, member by member. The zero value is empty; a
// caller may give it a buffer. Names are those of the gateway's own members, or
// quoted by the Writer; "" names an element of an array.
//
//	w.Object("")
//	w.Text("provider", id)  // "" is null
//	w.Array("results")
//	…
//	w.End(']')
//	w.End('}')
type Writer []byte

// name appends the comma that the member needs and its name.
func (w *Writer) name(name string) {
	if b := *w; len(b) > 0 && b[len(b)-1] != '{' && b[len(b)-1] != '[' {
		*w = append(*w, ',')
	}
	if name != "" {
		*w = append(jsonscan.Quote(*w, name), ':')
	}
}

// Text appends a string; "" is null.
func (w *Writer) Text(name, s string) {
	if s == "" {
		w.Raw(name, "")
		return
	}
	w.String(name, s)
}

// String appends a string, also an empty one.
func (w *Writer) String(name, s string) {
	w.name(name)
	*w = jsonscan.Quote(*w, s)
}

// Raw appends a value that is JSON already; "" is null.
func (w *Writer) Raw(name, value string) {
	value = cmp.Or(value, "null")
	w.name(name)
	*w = append(*w, value...)
}

// Int appends an integer.
func (w *Writer) Int(name string, n int) {
	w.name(name)
	*w = strconv.AppendInt(*w, int64(n), 10)
}

// Object begins an object, Array an array. End ends either of them.
func (w *Writer) Object(name string) {
	w.name(name)
	*w = append(*w, '{')
}

// Array begins an array.
func (w *Writer) Array(name string) {
	w.name(name)
	*w = append(*w, '[')
}

// End ends an object with '}' or an array with ']'.
func (w *Writer) End(bracket byte) { *w = append(*w, bracket) }
