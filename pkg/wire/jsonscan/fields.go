// Package jsonscan reads single fields of a JSON document whose bytes are forwarded
// unchanged.
//
// One iterative pass validates the whole document strictly (RFC 8259) and notes the
// spans of the wanted fields of the top-level object; it allocates no values. An
// accepted document means the same to every other parser: names are compared after
// unescaping, with their case; a duplicate wanted field, a byte order mark, invalid
// UTF-8, and half a surrogate pair in a wanted field are errors. If the model is
// wanted, a name that differs from "model" or "stream" only in case is an error too:
// parsers that ignore case, such as encoding/json, would read it as that field.
package jsonscan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a document.
const (
	MaxDepth  = 128     // containers within each other
	MaxTokens = 1 << 20 // values and names, unless a Cursor says otherwise
	maxNumber = 64      // bytes of a number that is read
	maxFields = 16      // names per Read
)

// Kind is the type of a JSON value.
type Kind uint8

// The kinds. A missing field is Absent.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"absent", "null", "boolean", "number", "string", "array", "object"}[k]
}

// Error is the reason why a document is refused. It contains no part of the document.
type Error struct {
	Offset int    // of the byte at which the error was detected
	Line   int    // of that byte, from 1; 0 if the document is valid JSON
	Column int    // in that line, in characters from 1
	Field  string // the wanted field concerned, or ""
	Reason string // a predicate if Field is set, else a clause
}

func (e *Error) Error() string {
	switch {
	case e.Field != "":
		return e.Field + " " + e.Reason
	case e.Line == 0:
		return e.Reason
	}
	return fmt.Sprintf("invalid JSON at line %d, column %d (byte %d): %s", e.Line, e.Column, e.Offset, e.Reason)
}

// Sentence returns the text for the client that sent the document as a body.
func (e *Error) Sentence() string {
	switch {
	case e.Reason == reasonEmpty:
		return "The body is empty."
	case e.Reason == reasonNoObject:
		return "The body must be a JSON object."
	case e.Field != "" || e.Line == 0:
		return e.Error() + "."
	}
	text := fmt.Sprintf("The body is not valid JSON at line %d, column %d (byte %d): %s", e.Line, e.Column, e.Offset,
		e.Reason)
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// Reasons that are sentences of their own for a client.
const (
	reasonEmpty    = "the document is empty"
	reasonNoObject = "the document must be an object"
)

// ErrType is the error of a getter for a value of another type or out of range. It is
// wrapped with the name of the field.
var ErrType = errors.New("wrong type or out of range")

// Span is a part of a document, the bytes from Start up to End.
type Span struct{ Start, End int }

// Value is the kind and the span of a value.
type Value struct {
	Span
	Kind    Kind
	Escaped bool // a string that contains escapes
}

// Set is the result of Read. It refers to the document, which must not change.
type Set struct {
	body  []byte
	names []string
	vals  [maxFields]Value
}

// Read validates the document, which must be an object, and finds its fields with the
// names: at most 16 different ones.
//
// The error is an *Error; its Field is set if a wanted field is duplicate or has half
// a surrogate pair.
func Read(body []byte, names ...string) (Set, error) { return read(body, nil, names) }

// ReadMarked is Read, which also looks for marks.
func ReadMarked(body []byte, marks *Marks, m *Marked, names ...string) (Set, error) {
	m.reset(marks)
	return read(body, m, names)
}

func read(body []byte, m *Marked, names []string) (Set, error) {
	s := Set{body: body, names: names}
	if len(names) > maxFields {
		return s, &Error{Reason: "too many fields asked for"}
	}
	var c Cursor
	c.Reset(body)
	c.marked = m
	if c.Kind() != Object {
		c.Skip()
		if err := c.End(); err != nil {
			return s, err
		}
		return s, &Error{Reason: reasonNoObject}
	}
	c.Object()
	strict := slices.Contains(names, "model")
	for c.Key() {
		if m != nil {
			m.member(&c)
		}
		i := s.index(&c)
		if i < 0 {
			if strict {
				if name := c.Folded(); name != "" {
					return s, &Error{Offset: c.i, Field: name, Reason: "must be written in lower case"}
				}
			}
			c.Skip()
			continue
		}
		if s.vals[i].Kind != Absent {
			return s, &Error{Offset: c.i, Field: names[i], Reason: "is given more than once"}
		}
		c.Lone()
		if s.vals[i] = c.Value(); c.Lone() {
			return s, &Error{Offset: c.i, Field: names[i], Reason: "has half a surrogate pair"}
		}
	}
	return s, c.End()
}

func (s *Set) index(c *Cursor) int {
	for i, n := range s.names {
		if c.KeyIs(n) {
			return i
		}
	}
	return -1
}

// Get returns the value of a field. It is Absent for a name that Read was not asked
// for.
func (s *Set) Get(name string) Value {
	for i, n := range s.names {
		if n == name {
			return s.vals[i]
		}
	}
	return Value{}
}

// Has reports whether a field is present and not null.
func (s *Set) Has(name string) bool { return s.Get(name).Kind > Null }

// Raw returns the bytes of a field's value, nil if it is absent.
func (s *Set) Raw(name string) []byte {
	v := s.Get(name)
	if v.Kind == Absent {
		return nil
	}
	return s.body[v.Start:v.End]
}

// String returns a string field. ok is false if it is absent; null and other types are
// errors.
func (s *Set) String(name string) (value string, ok bool, err error) {
	v := s.Get(name)
	switch v.Kind {
	case Absent:
		return "", false, nil
	case String:
		return s.Text(v), true, nil
	}
	return "", true, fmt.Errorf("%s: %w", name, ErrType)
}

// Text returns the content of a string value, unescaped.
func (s *Set) Text(v Value) string { return Text(s.body, v) }

// Text returns the content of a string value of a document, unescaped. Half a surrogate
// pair becomes U+FFFD.
func Text(body []byte, v Value) string {
	raw := body[v.Start+1 : v.End-1]
	if !v.Escaped {
		return string(raw)
	}
	return string(unescape(make([]byte, 0, len(raw)), raw))
}

// Int returns an integer field between min and max. ok is false if it is absent or
// null. 1.0 and 1e3 are not integers.
func (s *Set) Int(name string, min, max int64) (value int64, ok bool, err error) {
	v := s.Get(name)
	switch v.Kind {
	case Absent, Null:
		return 0, false, nil
	case Number:
		if v.End-v.Start <= maxNumber {
			n, err := strconv.ParseInt(string(s.body[v.Start:v.End]), 10, 64)
			if err == nil && n >= min && n <= max {
				return n, true, nil
			}
		}
	}
	return 0, true, fmt.Errorf("%s: %w", name, ErrType)
}

// Bool returns a boolean field. ok is false if it is absent or null.
func (s *Set) Bool(name string) (value, ok bool, err error) {
	v := s.Get(name)
	switch v.Kind {
	case Absent, Null:
		return false, false, nil
	case Bool:
		return s.body[v.Start] == 't', true, nil
	}
	return false, true, fmt.Errorf("%s: %w", name, ErrType)
}

// Splice returns a copy of body with a span replaced.
func Splice(body []byte, at Span, with []byte) []byte {
	out := make([]byte, 0, len(body)-(at.End-at.Start)+len(with))
	out = append(out, body[:at.Start]...)
	out = append(out, with...)
	return append(out, body[at.End:]...)
}

// Replace is Splice into the bytes of body itself, if their capacity suffices. body
// must not be used afterwards.
func Replace(body []byte, at Span, with []byte) []byte {
	size := len(body) - (at.End - at.Start) + len(with)
	if size > cap(body) {
		return Splice(body, at, with)
	}
	out := body[:size]
	copy(out[at.Start+len(with):], body[at.End:])
	copy(out[at.Start:], with)
	return out
}

// Quote appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func Quote(dst []byte, s string) []byte {
	return append(Escape(append(dst, '"'), s), '"')
}

// Plain reports whether s can stand between the quotes of a JSON string as it is.
func Plain(s string) bool {
	ascii := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < 0x20 || c == '"' || c == '\\' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.ValidString(s)
}

// Escape appends s as it stands between the quotes of a JSON string.
func Escape(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				i++
				start = i
				continue
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(dst, s[start:]...)
}
