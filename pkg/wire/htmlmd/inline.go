package htmlmd

import (
	"strings"
	"unicode/utf8"
)

// mark is an inline element that is open. Its sign goes out with the first
// text in it, so an empty one leaves nothing.
type mark struct {
	tag     tag
	sign    string
	to      string // the address of a link
	written bool
}

func (w *writer) linked() bool {
	for i := range w.marks {
		if w.marks[i].tag == tA && w.marks[i].written {
			return true
		}
	}
	return false
}

// mark opens an inline element.
func (w *writer) mark(t tag, sign, to string) {
	if w.markdown && len(w.marks) < 32 {
		w.marks = append(w.marks, mark{tag: t, sign: sign, to: to})
	}
}

// unmark ends the innermost inline element of a tag.
func (w *writer) unmark(t tag) {
	for i := len(w.marks) - 1; i >= 0; i-- {
		if w.marks[i].tag == t {
			for j := len(w.marks) - 1; j >= i; j-- {
				if w.marks[j].written {
					w.finish(&w.marks[j])
				}
				w.marks[j].written = false
			}
			w.marks = append(w.marks[:i], w.marks[i+1:]...)
			return
		}
	}
}

func (w *writer) unmarkAll() {
	for len(w.marks) > 0 {
		w.unmark(w.marks[len(w.marks)-1].tag)
	}
}

// finish writes the end of an inline element.
func (w *writer) finish(m *mark) {
	switch m.tag {
	case tB, tEm, tDel:
		w.raw(m.sign)
	case tA:
		w.raw("](" + m.to + ")")
	}
}

// image writes an image that has a description.
func (w *writer) image(a *attributes) {
	src := a.src
	if a.dataSrc != "" && (src == "" || strings.HasPrefix(src, "data:")) {
		src = a.dataSrc
	}
	alt := oneLine(a.alt)
	if !w.markdown || alt == "" || w.inCode != other || !linkable(src) || strings.HasPrefix(src, "mailto:") {
		return
	}
	if to := w.resolve(src); to != "" {
		w.put("![")
		w.escaped(alt, "[]|", false)
		w.raw("](" + to + ")")
	}
}

// linkable reports whether an address is worth a link.
func linkable(href string) bool {
	href = strings.TrimSpace(href)
	if href == "" || href[0] == '#' || len(href) > 4096 {
		return false
	}
	switch scheme(href) {
	case "", "http", "https", "mailto":
		return true
	}
	return false
}

// resolve makes an address absolute, and safe between the signs of Markdown; "" for one
// that is not http or https.
func (w *writer) resolve(href string) string {
	s := Resolve(w.base, href)
	switch scheme(s) {
	case "http", "https":
		if !strings.Contains(s, "://") {
			return ""
		}
	case "mailto":
	default:
		return ""
	}
	unsafe := func(c byte) bool { return c <= ' ' || c == 0x7f || strings.IndexByte("()<>\"`\\|", c) >= 0 }
	valid := utf8.ValidString(s)
	var b []byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		if unsafe(c) || c >= utf8.RuneSelf && !valid {
			if b == nil {
				b = append(make([]byte, 0, len(s)+16), s[:i]...)
			}
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else if b != nil {
			b = append(b, c)
		}
	}
	if b != nil {
		return string(b)
	}
	return s
}

const hex = "0123456789ABCDEF"
