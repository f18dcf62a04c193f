package htmlmd

import "strconv"

// writer makes text of tokens.
type writer struct {
	markdown bool
	base     string // links are relative to it
	limit    int    // bytes of out
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

// render writes the main content.
func (w *writer) render(doc string, f *findings) {
	r := &w.reader
	r.init(doc, w.close)
	w.fresh = true
	inside := f.region == 0
	depth := 0 // of the stack where the region begins
	for !w.full {
		switch r.next() {
		case noToken:
			r.endAll()
			w.endCode()
			return
		case textToken:
			if inside && r.hidden == 0 && (r.aside == 0 || f.keepAsides) && r.open[tTitle] == 0 {
				w.text(r.z.text())
			}
		case endToken:
			t := tagOf(r.z.name)
			if t == tP && r.open[tP] == 0 {
				w.block(2)
			}
			r.end(t)
		case startToken:
			t := tagOf(r.z.name)
			a := r.attributes()
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
			if to := w.resolve(a.href); to != "" {
				w.mark(t, "[", to)
			}
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
