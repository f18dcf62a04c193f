package webpage

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// maxIndent is how deep lists and quotes are indented.
const maxIndent = 8

// writer makes text of tokens.
type writer struct {
	markdown bool
	base     *url.URL
	limit    int // bytes of out
	out      []byte
	full     bool // the limit was reached
	reader   reader

	newlines int  // wanted before the next text
	space    bool // a space is wanted before the next text
	fresh    bool // no space is wanted: the line or cell has just begun
	indents  []indent
	lastIn   int // how many of indents the last line shares with the next
	marks    []mark
	code     []byte // what a code or pre element holds, while one is open
	inCode   tag
	language string // of the pre element
	cell     bool   // within a cell of a table of data: everything is one line
	cells    int    // of the row
	header   bool   // the next row to end is the table's first
}

// indent is a list item or a quote that lines belong to.
type indent struct {
	marker string
	quote  bool
	used   bool // the marker has been written
}

// render writes the main content.
func (w *writer) render(doc string, f *findings) {
	r := &w.reader
	r.init(doc, w.close)
	w.fresh = true
	inside := f.region == 0
	depth := 0 // of the stack where the region begins
	for !w.full {
		switch r.z.Next() {
		case html.ErrorToken:
			r.endAll()
			w.endCode()
			return
		case html.TextToken:
			if inside && r.hidden == 0 && (r.aside == 0 || f.keepAsides) && r.open[tTitle] == 0 {
				w.text(r.z.Text())
			}
		case html.EndTagToken:
			name, _ := r.z.TagName()
			t := tagOf(name)
			if t == tP && r.open[tP] == 0 {
				w.block(2)
			}
			r.end(t)
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := r.z.TagName()
			t := tagOf(name)
			var a attributes
			if t != other || more {
				a = r.attributes(more)
			}
			e := r.begin(t, &a)
			if r.starts == f.region {
				inside, depth = true, len(r.stack)
			}
			if inside && r.hidden == 0 && (r.aside == 0 || f.keepAsides) {
				w.start(t, e, &a, f)
			}
		}
		if f.region > 0 && inside && len(r.stack) < depth {
			w.endCode()
			return
		}
	}
}

// start opens an element.
func (w *writer) start(t tag, e *element, a *attributes, f *findings) {
	switch t {
	case tBR:
		if w.inCode != other {
			w.code = append(w.code, '\n')
		} else {
			w.block(1)
		}
		return
	case tHR:
		w.block(2)
		if w.markdown && !w.cell && w.inCode == other {
			w.put("---")
			w.block(2)
		}
		return
	case tImg:
		w.image(a)
		return
	}
	if e == nil {
		return
	}
	if w.inCode != other {
		if w.inCode == tPre && t == tCode && w.language == "" {
			w.language = language(a.class)
		}
		return
	}
	switch t {
	case tP, tBlockquote, tPre, tTable, tDL:
		w.block(2)
	case tUL, tOL:
		if w.reader.open[tUL]+w.reader.open[tOL] > 1 {
			w.block(1)
		} else {
			w.block(2)
		}
	case tDiv, tSection, tForm, tArticle, tMain, tHeader, tFooter, tNav, tDT, tDD, tLI:
		w.block(1)
	}
	switch t {
	case tH1, tH2, tH3, tH4, tH5, tH6:
		w.block(2)
		if w.markdown && !w.cell && w.reader.open[tA] == 0 {
			w.mark(t, "######"[:int(t-tH1)+1]+" ", "")
		}
	case tB:
		w.mark(t, "**", "")
	case tEm:
		w.mark(t, "*", "")
	case tDel:
		w.mark(t, "~~", "")
	case tA:
		if w.markdown && linkable(a.href) {
			w.mark(t, "[", a.href)
		}
	case tBlockquote:
		if w.markdown {
			e.wraps = w.indent(indent{marker: "> ", quote: true})
		}
	case tOL:
		e.list = 1
		if n, err := strconv.Atoi(a.start); err == nil && n >= 0 && n < 1e6 {
			e.list = n
		}
	case tUL:
		e.list = -1
	case tLI:
		e.wraps = w.indent(indent{marker: w.marker()})
	case tDD:
		e.wraps = w.indent(indent{marker: "  ", used: true})
	case tCode, tPre:
		w.inCode, w.code = t, w.code[:0]
		w.language = language(a.class)
	case tTable:
		if f.table[e.opening] && !w.cell {
			e.list, w.header = 1, true
		} else {
			e.layout = true
		}
	case tTR:
		w.block(1)
		if w.dataTable() != nil {
			if w.header {
				w.block(2)
			}
			w.cells = 0
		}
	case tTD:
		if w.dataTable() == nil {
			w.block(1)
			return
		}
		w.cell = false
		if w.markdown || w.cells > 0 {
			if w.cells > 0 {
				w.space, w.fresh = false, true
			}
			w.put("| ")
			w.fresh = true
		}
		w.cell = true
		w.cells++
		e.list = 1
		if n, err := strconv.Atoi(a.colspan); err == nil && n > 1 && n <= 32 {
			e.list = n
		}
	}
}

// close ends an element, also one whose start was left out.
func (w *writer) close(e *element) {
	if e.hidden {
		return
	}
	if w.inCode != other && e.tag != w.inCode {
		return
	}
	switch e.tag {
	case tB, tEm, tDel, tA:
		w.unmark(e.tag)
	case tH1, tH2, tH3, tH4, tH5, tH6:
		w.unmark(e.tag)
		w.block(2)
	case tCode, tPre:
		if w.inCode == e.tag {
			w.endCode()
		}
	case tP, tBlockquote, tUL, tOL, tDL:
		w.outdent(e)
		if e.tag != tUL && e.tag != tOL || w.reader.open[tUL]+w.reader.open[tOL] == 1 {
			w.block(2)
		} else {
			w.block(1)
		}
	case tTable:
		w.block(2)
	case tDiv, tSection, tForm, tArticle, tMain, tHeader, tFooter, tNav, tDT:
		w.block(1)
	case tLI, tDD:
		w.block(1)
		w.outdent(e)
	case tTD:
		if e.list > 0 && w.cell {
			w.cell = false
			w.unmarkAll()
			w.space, w.fresh = false, false
			if w.newlines == 0 {
				w.raw(" ")
			}
			for i := 1; i < e.list && w.markdown; i++ {
				w.raw("|  ")
				w.cells++
			}
			w.fresh = true
		}
	case tTR:
		if w.cells > 0 && w.dataTable() != nil {
			w.row()
		}
	}
}

// row ends a row of a table of data.
func (w *writer) row() {
	w.space = false
	if n := len(w.out); !w.markdown && n > 0 && w.out[n-1] == ' ' {
		w.out = w.out[:n-1]
	}
	if w.markdown {
		w.raw("|")
		if w.header {
			w.header = false
			w.block(1)
			w.put("|")
			w.raw(strings.Repeat(" --- |", w.cells))
		}
	}
	w.cells = 0
	w.block(1)
}

// dataTable gives the innermost table if it is one of data.
func (w *writer) dataTable() *element {
	for i := len(w.reader.stack) - 1; i >= 0; i-- {
		if e := &w.reader.stack[i]; e.tag == tTable {
			if e.layout || e.list == 0 {
				return nil
			}
			return e
		}
	}
	return nil
}

// marker gives the sign of the next item of the innermost list.
func (w *writer) marker() string {
	for i := len(w.reader.stack) - 2; i >= 0; i-- {
		switch e := &w.reader.stack[i]; e.tag {
		case tUL:
			return "- "
		case tOL:
			if e.list == 0 {
				e.list = 1
			}
			e.list++
			return strconv.Itoa(e.list-1) + ". "
		}
	}
	return "- "
}

func (w *writer) indent(in indent) bool {
	if len(w.indents) >= maxIndent || w.cell || w.reader.open[tA] > 0 && w.markdown {
		return false
	}
	w.indents = append(w.indents, in)
	return true
}

func (w *writer) outdent(e *element) {
	if e.wraps && len(w.indents) > 0 {
		w.indents = w.indents[:len(w.indents)-1]
		w.lastIn = min(w.lastIn, len(w.indents))
	}
}

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
func (w *writer) text(s []byte) {
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
					_, size := utf8.DecodeRune(s[j:])
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
func blank(s []byte) int {
	r, n := utf8.DecodeRune(s)
	switch {
	case r == 0xa0, r == 0x1680, r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return n
	case r == 0xad, r == 0x200b, r == 0x2060, r == 0xfeff, r >= 0x80 && r < 0xa0, r == utf8.RuneError && n == 1:
		return n + 8
	}
	return 0
}

// word writes text without white space in it.
func (w *writer) word(s []byte) {
	start := w.begin()
	if !w.markdown {
		w.raw(string(s))
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
		w.raw(string(s))
		return
	}
	for _, c := range string(s) {
		if strings.ContainsRune(escape, c) {
			w.raw(`\`)
		}
		w.raw(string(c))
	}
}

// risky tells whether a word at the start of a line would be read as a sign.
func risky(s []byte) bool {
	switch s[0] {
	case '#', '>':
		return true
	case '-', '+', '=':
		return len(s) == 1 || strings.Trim(string(s), string(s[:1])) == ""
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
