package htmlmd

import (
	"cmp"
	"strconv"
)

// maxIndent is how deep lists and quotes are indented.
const maxIndent = 8

// indent is a list item or a quote that lines belong to.
type indent struct {
	marker string
	quote  bool
	used   bool // the marker has been written
}

// marker returns the sign of the next item of the innermost list.
func (w *writer) marker() string {
	for i := len(w.reader.stack) - 2; i >= 0; i-- {
		switch e := &w.reader.stack[i]; e.tag {
		case tUL:
			return "- "
		case tOL:
			e.list = cmp.Or(e.list, 1)
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
