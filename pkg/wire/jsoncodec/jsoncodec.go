// Package jsoncodec reads and writes JSON by the code that easyjson generates for a
// type (docs/decisions/0140-generated-codecs.md).
package jsoncodec

//go:generate go run weir/internal/codecgen ../../usage ../../store ../../machine/rpc ../../machine/storage

import (
	"github.com/mailru/easyjson/jlexer"
	"github.com/mailru/easyjson/jwriter"
)

// Marshaler is a type with generated code.
type Marshaler interface {
	MarshalEasyJSON(w *jwriter.Writer)
}

// Unmarshaler is a pointer to a type with generated code.
type Unmarshaler interface {
	UnmarshalEasyJSON(l *jlexer.Lexer)
}

// Marshal returns the JSON of v. Characters of HTML are written as they are.
func Marshal(v Marshaler) ([]byte, error) {
	w := jwriter.Writer{NoEscapeHTML: true}
	v.MarshalEasyJSON(&w)
	return w.BuildBytes()
}

// Unmarshal reads JSON into v. Unknown fields are ignored.
func Unmarshal(raw []byte, v Unmarshaler) error {
	l := jlexer.Lexer{Data: raw}
	v.UnmarshalEasyJSON(&l)
	return l.Error()
}
