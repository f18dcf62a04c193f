// Package htmlmd turns a page of the web into text that a model can read:
// Markdown, or plain text. It makes no call.
//
// No tree is built. The document is passed over twice: once to find what it
// says of itself and where its main content lies, once to write that. So the
// memory is bounded by the document and the output, whatever the nesting.
package htmlmd

import (
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

// maxOutput is the most that is written, in bytes: short links to a long base
// address must not make a large text of a small page.
const maxOutput = 4 << 20

// Page is the content of a document. A missing part is "".
type Page struct {
	Title       string
	Author      string
	PublishedAt string // as the page writes it
	Language    string // BCP 47, as the page writes it
	Text        string
	Truncated   bool
}

// Read reads an HTML document, in UTF-8, that was found at address. At most
// max characters of text are given; 0 is no limit of that kind.
//
// Scripts, styles, navigation, page headers and footers, asides, hidden parts
// and controls are left out. Where the page marks its main content (main, or
// one article that has most of the text) only that is written. Addresses
// become absolute.
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
	if p.Title == "" {
		p.Title = s.ogTitle
	}
	if p.Title == "" {
		p.Title = s.heading
	}
	p.Text = strings.TrimSpace(string(w.out))
	p.Truncated = w.full || w.reader.cut
	if text, cut := Cut(p.Text, max); cut {
		p.Text, p.Truncated = text, true
	}
	if p.Truncated && format == Markdown {
		p.Text = whole(p.Text)
	}
	return p
}

// Cut returns at most max characters of s, and whether any were left out; 0 is
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
