package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// Document is the bodies of a call as they are stored: a line of JSON with two parts,
// then the texts of both, one after the other.
type Document struct {
	Request Part `json:"request"`
	Answer  Part `json:"answer"`
}

// Part is a stored body.
type Part struct {
	Type    string `json:"type,omitempty"` // media type
	Bytes   int64  `json:"bytes"`          // that have passed
	Cut     bool   `json:"cut,omitempty"`  // Text is the beginning of it
	Omitted bool   `json:"omitted,omitempty"`
	Length  int    `json:"length"` // of Text, in bytes
	Text    string `json:"-"`
}

// Document returns the document of the collected bodies, which are released. mask
// removes credentials from a text.
func (b *Bodies) Document(mask func(string) string) []byte {
	d := Document{b.request.part(mask), b.answer.part(mask)}
	b.request.data, b.answer.data = nil, nil
	head, err := json.Marshal(&d)
	if err != nil {
		panic("capture: a part that has no JSON form") // its fields are plain
	}
	out := make([]byte, 0, len(head)+1+d.Request.Length+d.Answer.Length)
	out = append(append(out, head...), '\n')
	return append(append(out, d.Request.Text...), d.Answer.Text...)
}

// part masks a body. Of one that was not collected to its end, the overlap may have a
// part of a credential, so it is dropped.
func (b *body) part(mask func(string) string) Part {
	p := Part{Type: b.mediaType, Bytes: b.size, Omitted: b.omitted}
	p.Cut = !b.omitted && b.size > int64(len(b.data))
	text := strings.ToValidUTF8(string(b.data), "\uFFFD")
	keep, most := len(text), MaxBody
	if p.Cut {
		keep -= overlap
	}
	p.Text = maskEvents(text, keep, mask)
	if p.Cut {
		most = max(0, min(most, len(p.Text)-overlap))
	}
	if len(p.Text) > most {
		for most > 0 && !utf8.RuneStart(p.Text[most]) {
			most--
		}
		p.Text, p.Cut = p.Text[:most], true
	}
	p.Length = len(p.Text)
	return p
}

var errDocument = errors.New("capture: the document is not readable")

// Read reads what Bodies.Document has returned.
func Read(raw []byte) (d Document, err error) {
	head, rest, _ := bytes.Cut(raw, []byte("\n"))
	if json.Unmarshal(head, &d) != nil || d.Request.Length < 0 || d.Answer.Length < 0 || d.Request.Length > len(rest) ||
		d.Answer.Length != len(rest)-d.Request.Length {
		return Document{}, errDocument
	}
	d.Request.Text, d.Answer.Text = string(rest[:d.Request.Length]), string(rest[d.Request.Length:])
	return d, nil
}
