package ir

import (
	"bytes"
	"unicode/utf8"
)

// Pattern is an event that brought one piece of text and nothing else, with
// the text left out. Most events of a stream differ in that text alone: they
// are known by comparing the rest, without being parsed.
//
// A second string may differ without meaning anything: the padding that
// OpenAI puts in "obfuscation".
type Pattern struct {
	Kind        EventKind
	Block       int
	head, tail  []byte // up to and from the text, with the quotes
	pad         []byte // from the padding on; tail then ends where it begins
	Has, padded bool
}

var padName = []byte(`"obfuscation":"`)

// Learn takes an event whose text is at data[at:end].
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

// Match gives the text of an event of this pattern.
func (p *Pattern) Match(data []byte) (text []byte, ok bool) {
	if !p.Has || !bytes.HasPrefix(data, p.head) {
		return nil, false
	}
	rest := data[len(p.head):]
	n := closing(rest)
	if n <= 0 || !bytes.HasPrefix(rest[n:], p.tail) {
		return nil, false
	}
	text, rest = rest[:n], rest[n+len(p.tail):]
	if p.padded {
		if n = closing(rest); n < 0 {
			return nil, false
		}
		return text, bytes.Equal(rest[n:], p.pad)
	}
	return text, len(rest) == 0
}

// closing finds the quote that ends a string. -1 is for strings that are not
// well-formed, and for those with rare escapes, which the parser looks at.
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
