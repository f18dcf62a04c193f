// Package htmlmd converts a web page into text that a model can read: Markdown or plain
// text.
//
// It builds no tree. It scans the document twice: the first scan finds its metadata and
// its main content, the second one writes that. So the memory depends on the sizes of
// the document and the output, not on the nesting.
//
// The tokenizer is that of x/net/html, whose table of named characters costs 0.65 ms of
// each start on the edge.
package htmlmd

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

// Format is how the content is written.
type Format uint8

// The formats.
const (
	Markdown Format = iota
	Text
)

// maxOutput is the largest output in bytes: short links below a long base URL must not
// turn a small page into a large text.
const maxOutput = 4 << 20

// Page is the content of a document. Unknown values are "".
type Page struct {
	Title       string
	Author      string
	PublishedAt string // as written in the page
	Language    string // BCP 47, as written in the page
	Text        string
	Truncated   bool
}

// Read reads the HTML document of a URL, in UTF-8. It returns at most max characters of
// text; 0 means no limit.
//
// Scripts, styles, navigation, page headers and footers, asides, hidden parts and
// controls are left out. If the page marks its main content (main, or one article that
// has most of the text), only that is returned. Links become absolute.
func Read(doc, address string, format Format, max int) Page {
	s := survey(doc)
	base := address
	if s.base != "" {
		if b := Resolve(address, s.base); strings.HasPrefix(b, "https://") || strings.HasPrefix(b, "http://") {
			base = b
		}
	}
	limit := maxOutput
	if max > 0 && max < limit/utf8.UTFMax {
		limit = max*utf8.UTFMax + 64
	}
	w := writer{markdown: format == Markdown, base: base, limit: limit}
	w.render(doc, s)
	p := Page{Title: s.title, Author: s.author, PublishedAt: s.published, Language: s.language}
	p.Title = cmp.Or(p.Title, s.ogTitle, s.heading)
	p.Text = strings.TrimSpace(string(w.out))
	p.Truncated = w.full || w.reader.cut || w.reader.z.cut
	if text, cut := Cut(p.Text, max); cut {
		p.Text, p.Truncated = text, true
	}
	if p.Truncated && format == Markdown {
		p.Text = whole(p.Text)
	}
	return p
}

// Cut returns at most max characters of s, and whether it left any out; 0 means
// no limit.
func Cut(s string, max int) (string, bool) {
	if max <= 0 || len(s) <= max {
		return s, false
	}
	n := 0
	for i := range s {
		if n == max {
			return s[:i], true
		}
		n++
	}
	return s, false
}

// Plain returns the text of a snippet that may have tags and entities in it, on
// one line.
func Plain(s string) string {
	if strings.IndexByte(s, '<') < 0 && strings.IndexByte(s, '&') < 0 {
		return oneLine(s)
	}
	w := writer{limit: maxOutput}
	w.render(s, &findings{table: map[int]bool{}})
	return oneLine(string(w.out))
}

// oneLine makes every run of white space one space and drops control
// characters.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == 0xa0 || r == 0x2028 || r == 0x2029 || r == 0x85
	}), " ")
}
