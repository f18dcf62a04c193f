package htmlmd

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

// blank returns the size of a white space character, or its size and 8 for one without
// any width: soft hyphens, zero-width spaces, byte order marks, invalid UTF-8.
func blank(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == 0xa0, r == 0x1680, r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f,
		r == 0x3000:
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
	also := ""
	if w.cell {
		also = "|"
	}
	if w.linked() {
		also += "[]"
	}
	w.escaped(s, also, start && risky(s))
}

// escaped writes text so that nothing in it is read as a link, HTML or code,
// also with the text or the markup that comes before or after it. also has
// more signs that mean something here; with first the first sign does.
func (w *writer) escaped(s, also string, first bool) {
	last := byte(0)
	if n := len(w.out); n > 0 {
		last = w.out[n-1]
	}
	if last == '<' && opens(s[0]) && len(w.out) < w.limit {
		w.out = append(w.out[:len(w.out)-1], `\<`...) // the text of two elements is one word
	}
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		sign := first && i == 0
		switch c {
		case '`':
			sign = true
		case '(':
			sign = sign || last == ']'
		case '<':
			sign = sign || i+1 < len(s) && opens(s[i+1])
		case '\\':
			sign = sign || i+1 == len(s) || s[i+1] < utf8.RuneSelf && !isWord(s[i+1])
		}
		if sign || also != "" && strings.IndexByte(also, c) >= 0 {
			w.raw(s[from:i])
			w.raw(`\`)
			from = i
		}
		last = c
	}
	w.raw(s[from:])
}

// opens reports whether a < before c would be read as that of a tag or of an
// address: what is text on the page must not become a link or HTML.
func opens(c byte) bool { return isLetter(c) || c == '/' || c == '!' || c == '?' }

// risky reports whether a word at the start of a line would be read as a sign.
func risky(s string) bool {
	switch s[0] {
	case '#', '>', '[': // the last begins the definition of a link
		return true
	case '-', '+', '=':
		return len(s) == 1 || strings.Trim(s, s[:1]) == ""
	case '*':
		return len(s) == 1
	case '|', '~':
		return len(s) > 2 && s[1] == s[0] && s[2] == s[0]
	}
	return false
}

// whole cuts off the code at the end of Markdown that was cut within it: what
// stands in code is not escaped.
func whole(s string) string {
	line := strings.LastIndexByte(s, '\n') + 1
	for i := line; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '`':
			n := 1
			for i+n < len(s) && s[i+n] == '`' {
				n++
			}
			end := i + n
			for run := 0; run != n; {
				at := strings.IndexByte(s[end:], '`')
				if at < 0 {
					return s[:i]
				}
				end += at
				for run = 0; end < len(s) && s[end] == '`'; run++ {
					end++
				}
			}
			i = end - 1
		}
	}
	return s
}

// put writes a piece of markup like a word.
func (w *writer) put(s string) {
	w.begin()
	w.raw(s)
}

// begin writes what is due before text: new lines with their indents, a space,
// the signs of open inline elements. It reports whether a line begins.
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
			m.written = true
			w.raw(m.sign)
			start = start && m.tag == tB
		}
	}
	return start
}

// prefix returns what stands before a line within n indents.
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

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isWord(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' }
