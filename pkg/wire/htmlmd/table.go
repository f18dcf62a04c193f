package htmlmd

import "strings"

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

// dataTable returns the innermost table if it is one of data.
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
