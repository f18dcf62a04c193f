package webpage

import (
	"strings"
	"unicode/utf8"
)

// block asks for n new lines before the next text. Within a link and a cell a
// space has to do.
func (w *writer) block(n int) {
	if w.cell || w.linked() {
		w.space = true
		return
	}
	if w.inCode == tCode {
		return
	}
	for i := range w.marks {
		if m := &w.marks[i]; m.written && (m.tag == tB || m.tag == tEm || m.tag == tDel) {
			w.finish(m)
			m.written = false
		}
	}
	w.newlines = max(w.newlines, n)
	w.space = false
}

// text writes running text: runs of white space are one space.
func (w *writer) text(s string) {
	if w.inCode != other {
		if len(w.code)+len(s) > w.limit {
			w.full = true
			return
		}
		w.code = append(w.code, s...)
		return
	}
	for i := 0; i < len(s) && !w.full; {
		c := s[i]
		if c <= ' ' || c == 0x7f {
			w.space = true
			i++
			continue
		}
		j, skip := i, 0
		for j < len(s) && skip == 0 {
			switch c := s[j]; {
			case c <= ' ' || c == 0x7f:
				skip = -1
			case c < utf8.RuneSelf:
				j++
			default:
				if n := blank(s[j:]); n != 0 {
					skip = n
				} else {
					_, size := utf8.DecodeRuneInString(s[j:])
					j += size
				}
			}
		}
		if j > i {
			w.word(s[i:j])
		}
		switch i = j; {
		case skip > 0 && skip < 8: // a space that is not ASCII
			w.space = true
			i += skip
		case skip >= 8: // nothing to see
			i += skip - 8
		}
	}
}

// blank tells of a character that is white space (its size), or nothing at all
// (its size and 8): soft hyphens, zero-width spaces, byte order marks, bytes
// that are not UTF-8.
func blank(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == 0xa0, r == 0x1680, r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return n
	case r == 0xad, r == 0x200b, r == 0x2060, r == 0xfeff, r >= 0x80 && r < 0xa0, r == utf8.RuneError && n == 1:
		return n + 8
	}
	return 0
}

// word writes text without white space in it.
func (w *writer) word(s string) {
	start := w.begin()
	if !w.markdown {
		w.raw(s)
		return
	}
	if start && risky(s) {
		w.raw(`\`)
	}
	escape := ""
	if w.cell {
		escape = "|"
	}
	if w.linked() {
		escape += "[]"
	}
	if escape == "" {
		w.raw(s)
		return
	}
	for _, c := range s {
		if strings.ContainsRune(escape, c) {
			w.raw(`\`)
		}
		w.raw(string(c))
	}
}

// risky tells whether a word at the start of a line would be read as a sign.
func risky(s string) bool {
	switch s[0] {
	case '#', '>':
		return true
	case '-', '+', '=':
		return len(s) == 1 || strings.Trim(s, s[:1]) == ""
	case '*':
		return len(s) == 1
	case '|', '~', '`':
		return len(s) > 2 && s[1] == s[0] && s[2] == s[0]
	}
	return false
}

// put writes a piece of markup like a word.
func (w *writer) put(s string) {
	w.begin()
	w.raw(s)
}

// begin writes what is due before text: new lines with their indents, a space,
// the signs of open inline elements. It tells whether a line begins.
func (w *writer) begin() (start bool) {
	if w.newlines > 0 || len(w.out) == 0 {
		if len(w.out) > 0 {
			w.raw("\n")
			if w.newlines > 1 {
				w.raw(strings.TrimRight(w.prefix(w.lastIn, true), " "))
				w.raw("\n")
			}
		}
		w.raw(w.prefix(len(w.indents), false))
		w.lastIn = len(w.indents)
		w.newlines, w.space, start = 0, false, true
	} else if w.space {
		if !w.fresh {
			w.raw(" ")
		}
		w.space = false
	}
	w.fresh = false
	for i := range w.marks {
		if m := &w.marks[i]; !m.written {
			m.written, m.at = true, len(w.out)
			w.raw(m.sign)
			start = start && m.tag == tB
		}
	}
	return start
}

// prefix gives what stands before a line within n indents.
func (w *writer) prefix(n int, empty bool) string {
	if n == 0 {
		return ""
	}
	var b strings.Builder
	for i := range w.indents[:n] {
		in := &w.indents[i]
		switch {
		case in.quote:
			b.WriteString(in.marker)
		case empty || in.used:
			b.WriteString("        "[:min(len(in.marker), 8)])
		default:
			b.WriteString(in.marker)
			in.used = true
		}
	}
	return b.String()
}

// raw appends within the limit.
func (w *writer) raw(s string) {
	if w.full {
		return
	}
	if room := w.limit - len(w.out); len(s) > room {
		for room > 0 && !utf8.RuneStart(s[room]) {
			room--
		}
		s, w.full = s[:room], true
	}
	w.out = append(w.out, s...)
}
