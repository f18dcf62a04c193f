package ir

import (
	"unicode"
	"unicode/utf16"

	"github.com/tidwall/gjson"
)

// freeform extracts the text from the arguments of a function that replaces a
// custom tool, {"input":"…"}, which arrive in deltas. It accepts what models
// write instead: another member, the bare text, or a string.
type freeform struct {
	state       uint8
	out         []byte
	seen        []byte // all of the arguments, until the text begins
	name        []byte
	escapeBytes []byte // an incomplete escape
	depth       int    // of a value that is skipped
	quote       bool   // within a string of it
	slash       bool
	done        bool // end was called
}

const (
	ffStart uint8 = iota
	ffKey
	ffName
	ffColon
	ffValue
	ffSkip
	ffText
	ffBare // the arguments are not JSON
	ffWhole
)

// whole reports whether the text is complete.
func (f *freeform) whole() bool { return f.state == ffWhole }

// add reads the next part of the arguments and returns the text in it, escaped.
// The result is valid until the next call.
func (f *freeform) add(piece string) []byte {
	f.out = f.out[:0]
	if f.state < ffText {
		f.seen = append(f.seen, piece...)
	}
	for i := 0; i < len(piece) && f.state != ffWhole; i++ {
		if f.state != ffBare {
			f.byte(piece[i])
		}
		if f.state == ffBare {
			f.out = append(f.out, Escape(piece[i:])...)
			break
		}
	}
	if f.state >= ffText {
		f.seen = nil
	}
	return f.out
}

func (f *freeform) byte(c byte) {
	blank := c == ' ' || c == '\t' || c == '\r' || c == '\n'
	switch f.state {
	case ffStart:
		switch {
		case blank:
		case c == '{':
			f.state = ffKey
		case c == '"':
			f.state = ffText
		default:
			f.state = ffBare
		}
	case ffKey:
		if c == '"' {
			f.state, f.name = ffName, f.name[:0]
		}
	case ffName:
		if c == '"' && !f.slash {
			f.state = ffColon
			return
		}
		f.slash = c == '\\' && !f.slash
		if len(f.name) < 16 {
			f.name = append(f.name, c)
		}
	case ffColon:
		if c == ':' {
			f.state = ffValue
		}
	case ffValue:
		switch {
		case blank:
		case c == '"' && string(f.name) == "input":
			f.state = ffText
		default:
			f.state, f.depth, f.quote, f.slash = ffSkip, 0, false, false
			f.byte(c)
		}
	case ffSkip:
		switch {
		case f.quote:
			f.quote = c != '"' || f.slash
			f.slash = c == '\\' && !f.slash
		case c == '"':
			f.quote = true
		case c == '{' || c == '[':
			f.depth++
		case c == ']' || c == '}':
			f.depth--
		}
		if !f.quote && (f.depth < 0 || f.depth == 0 && c == ',') {
			f.state, f.slash = ffKey, false
		}
	case ffText:
		f.text(c)
	}
}

// text reads a byte of the text's JSON string, which is escaped already.
func (f *freeform) text(c byte) {
	switch n := len(f.escapeBytes); {
	case n == 0 && c == '"':
		f.state = ffWhole
	case n == 0 && c == '\\':
		f.escapeBytes = append(f.escapeBytes, c)
	case n == 0 && c < ' ':
		f.out = append(f.out, Escape(string(rune(c)))...)
	case n == 0:
		f.out = append(f.out, c)
	case n == 6 && c == '\\': // the second half of a pair may follow
		f.escapeBytes = append(f.escapeBytes, c)
	case n%6 == 1:
		f.escape(c)
	case n != 6 && isHex(c):
		if f.escapeBytes = append(f.escapeBytes, c); len(f.escapeBytes)%6 == 0 {
			f.unit()
		}
	default:
		f.lone()
		f.text(c)
	}
}

// escape reads the byte after a backslash.
func (f *freeform) escape(c byte) {
	if c == 'u' {
		f.escapeBytes = append(f.escapeBytes, c)
		return
	}
	if len(f.escapeBytes) > 6 {
		f.out = append(f.out, `\ufffd`...) // the surrogate before it is unpaired
	}
	f.escapeBytes = f.escapeBytes[:0]
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		f.out = append(f.out, '\\', c)
	default:
		f.out = append(f.out, `\\`...) // not an escape: a literal backslash
		f.text(c)
	}
}

// unit reads a complete \uXXXX, or the second of a pair.
func (f *freeform) unit() {
	r := func(at int) (n rune) {
		for _, c := range f.escapeBytes[at+2 : at+6] {
			switch {
			case c <= '9':
				n = n<<4 | rune(c-'0')
			default:
				n = n<<4 | rune(c|0x20-'a'+10)
			}
		}
		return n
	}
	last := r(len(f.escapeBytes) - 6)
	if len(f.escapeBytes) == 12 {
		if utf16.DecodeRune(r(0), last) != unicode.ReplacementChar {
			f.out = append(f.out, f.escapeBytes...)
			f.escapeBytes = f.escapeBytes[:0]
			return
		}
		f.out = append(f.out, `\ufffd`...)
		f.escapeBytes = append(f.escapeBytes[:0], f.escapeBytes[6:]...)
	}
	switch {
	case !utf16.IsSurrogate(last):
		f.out = append(f.out, f.escapeBytes...)
		f.escapeBytes = f.escapeBytes[:0]
	case last >= 0xdc00:
		f.lone()
	}
}

// lone replaces an unpaired surrogate, or an invalid escape, with U+FFFD.
func (f *freeform) lone() {
	f.out = append(f.out, `\ufffd`...)
	f.escapeBytes = f.escapeBytes[:0]
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// end returns the text of arguments without a string member "input".
func (f *freeform) end() []byte {
	f.out = f.out[:0]
	if f.done || f.state >= ffText {
		f.done = true
		return nil
	}
	f.done = true
	return append(f.out, Escape(otherInput(string(f.seen)))...)
}

// otherInput returns the text of arguments without a string "input", "" if they
// were cut off before it.
func otherInput(args string) string {
	args, ok := Object(args)
	if !ok {
		return ""
	}
	v := gjson.Parse(args)
	if in := v.Get("input"); in.Exists() {
		return Raw(in)
	}
	members, text := 0, ""
	Each(v, func(_, x gjson.Result) bool {
		members++
		text = Str(x)
		return true
	})
	if members > 1 || members == 1 && text == "" {
		return args
	}
	return text
}
