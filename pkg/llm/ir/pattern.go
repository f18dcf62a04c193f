package ir

import (
	"bytes"
	"unicode/utf8"
)

// Pattern is an event with one text and nothing else of interest, without that
// text. Most events of a stream differ in that text only: they are recognized
// by comparing the rest, without parsing.
//
// A second string may differ without a meaning: the padding that OpenAI writes
// in "obfuscation".
type Pattern struct {
	Kind        EventKind
	Block       int
	head, tail  []byte // up to and from the text, with the quotes
	pad         []byte // from the padding on; tail then ends where it begins
	Has, padded bool
}

var padName = []byte(`"obfuscation":"`)

// Learn learns from an event whose text is data[at:end].
func (p *Pattern) Learn(kind EventKind, block int, data []byte, at, end int) {
	p.Has, p.padded = false, false
	if at <= 0 || end >= len(data) || data[at-1] != '"' || data[end] != '"' {
		return
	}
	tail := data[end:]
	if i := bytes.Index(tail, padName); i >= 0 {
		i += len(padName)
		n := closing(tail[i:])
		if n < 0 {
			return
		}
		p.pad = append(p.pad[:0], tail[i+n:]...)
		p.padded = true
		tail = tail[:i]
	}
	p.Kind, p.Block, p.Has = kind, block, true
	p.head = append(p.head[:0], data[:at]...)
	p.tail = append(p.tail[:0], tail...)
}

// Match returns the text of an event of this pattern.
func (p *Pattern) Match(data []byte) (text []byte, ok bool) {
	text, n := p.Prefix(data)
	return text, n > 0 && n == len(data)
}

// Prefix returns the text and the length of an event of this pattern at the start
// of b, or 0 if b does not begin with one.
func (p *Pattern) Prefix(b []byte) (text []byte, length int) {
	if !p.Has || !bytes.HasPrefix(b, p.head) {
		return nil, 0
	}
	rest := b[len(p.head):]
	n := closing(rest)
	if n <= 0 || !bytes.HasPrefix(rest[n:], p.tail) {
		return nil, 0
	}
	text, rest = rest[:n], rest[n+len(p.tail):]
	if p.padded {
		if n = closing(rest); n < 0 || !bytes.HasPrefix(rest[n:], p.pad) {
			return nil, 0
		}
		rest = rest[n+len(p.pad):]
	}
	return text, len(b) - len(rest)
}

// closing returns the index of the quote that ends a string, or -1 for invalid
// strings and for those with rare escapes, which the parser reads.
func closing(b []byte) int {
	var high byte
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			if high >= utf8.RuneSelf && !utf8.Valid(b[:i]) {
				return -1
			}
			return i
		case c == '\\':
			i++
			if i == len(b) || b[i] != 'n' && b[i] != '"' && b[i] != '\\' && b[i] != 't' && b[i] != '/' && b[i] != 'r' {
				return -1
			}
		case c < ' ':
			return -1
		default:
			high |= c
		}
	}
	return -1
}
