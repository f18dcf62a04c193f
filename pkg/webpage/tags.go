package webpage

import (
	"strings"

	"golang.org/x/net/html"
)

// tag is an element that matters for the text; all others are transparent.
type tag uint8

const (
	other tag = iota
	tA
	tArticle
	tB
	tBlockquote
	tCode
	tDD
	tDL
	tDT
	tDel
	tDiv
	tDrop // an element that is never text: script, style, …
	tEm
	tFooter
	tForm
	tH1
	tH2
	tH3
	tH4
	tH5
	tH6
	tHead
	tHeader
	tLI
	tMain
	tNav // navigation and asides
	tOL
	tP
	tPre
	tSection
	tSpan
	tTD
	tTable
	tTitle
	tTR
	tUL
	// Without content.
	tBR
	tBase
	tHR
	tHTML
	tImg
	tMeta
	numTags
)

// tagOf finds the tag of a name, which is in lower case.
func tagOf(name []byte) tag {
	switch string(name) {
	case "a":
		return tA
	case "article":
		return tArticle
	case "b", "strong":
		return tB
	case "blockquote":
		return tBlockquote
	case "code", "kbd", "samp", "tt":
		return tCode
	case "dd":
		return tDD
	case "dl":
		return tDL
	case "dt":
		return tDT
	case "del", "s", "strike":
		return tDel
	case "div", "center", "address", "figure", "figcaption", "details", "summary", "fieldset", "legend", "caption", "hgroup", "body":
		return tDiv
	case "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "canvas", "video", "audio",
		"select", "button", "textarea", "datalist", "dialog", "map", "noembed", "noframes", "menu":
		return tDrop
	case "head":
		return tHead
	case "em", "i":
		return tEm
	case "footer":
		return tFooter
	case "form":
		return tForm
	case "h1":
		return tH1
	case "h2":
		return tH2
	case "h3":
		return tH3
	case "h4":
		return tH4
	case "h5":
		return tH5
	case "h6":
		return tH6
	case "header":
		return tHeader
	case "li":
		return tLI
	case "main":
		return tMain
	case "nav", "aside":
		return tNav
	case "ol":
		return tOL
	case "p":
		return tP
	case "pre", "listing", "xmp", "plaintext":
		return tPre
	case "section":
		return tSection
	case "span":
		return tSpan
	case "td", "th":
		return tTD
	case "table":
		return tTable
	case "title":
		return tTitle
	case "tr":
		return tTR
	case "ul":
		return tUL
	case "br":
		return tBR
	case "base":
		return tBase
	case "hr":
		return tHR
	case "html":
		return tHTML
	case "img":
		return tImg
	case "meta":
		return tMeta
	}
	return other
}

// block tells whether an element starts on a new line, and so ends a
// paragraph.
func (t tag) block() bool {
	switch t {
	case tArticle, tBlockquote, tDD, tDL, tDT, tDiv, tFooter, tForm, tH1, tH2, tH3, tH4, tH5, tH6, tHeader,
		tLI, tMain, tNav, tOL, tP, tPre, tSection, tTable, tTD, tTR, tUL, tHR:
		return true
	}
	return false
}

// maxDepth is how many open elements are told apart; what is nested deeper
// counts as text of the last one.
const maxDepth = 512

// element is an open one.
type element struct {
	tag    tag
	hidden bool  // never shown: script, hidden parts, and head
	aside  bool  // not part of the content: navigation, page header and footer
	region uint8 // start of a candidate for the main content
	// For tables, lists and quotes.
	list    int  // number of the next item; -1 for bullets
	layout  bool // a table that only arranges
	wraps   bool // an item or quote was opened with it
	opening int  // number of the start tag
}

// attributes are those that decide what becomes of an element.
type attributes struct {
	href, src, dataSrc, alt, class, lang string
	role, itemprop, name, property       string
	content, start, colspan              string
	hidden                               bool
}

// reader walks through the tokens of a document and keeps the open elements.
type reader struct {
	z      *html.Tokenizer
	stack  []element
	open   [numTags]int
	starts int // start tags so far
	hidden int // open elements that are hidden
	aside  int
	// closing is told each element that ends, the innermost first.
	closing func(*element)
}

func (r *reader) init(doc string, closing func(*element)) {
	r.z = html.NewTokenizer(strings.NewReader(doc))
	r.stack = make([]element, 0, 32)
	r.closing = closing
}

// attributes reads what follows a tag's name.
func (r *reader) attributes(more bool) (a attributes) {
	for n := 0; more && n < 64; n++ {
		var k, v []byte
		k, v, more = r.z.TagAttr()
		switch string(k) {
		case "href":
			a.href = string(v)
		case "src":
			a.src = string(v)
		case "data-src":
			a.dataSrc = string(v)
		case "alt":
			a.alt = string(v)
		case "class", "id":
			a.class += " " + strings.ToLower(string(v))
		case "lang":
			a.lang = string(v)
		case "role":
			a.role = strings.ToLower(strings.TrimSpace(string(v)))
		case "itemprop":
			a.itemprop = string(v)
		case "name":
			a.name = strings.ToLower(string(v))
		case "property":
			a.property = strings.ToLower(string(v))
		case "content":
			a.content = string(v)
		case "start":
			a.start = string(v)
		case "colspan":
			a.colspan = string(v)
		case "hidden":
			a.hidden = true
		case "aria-hidden":
			a.hidden = a.hidden || string(v) == "true"
		case "style":
			s := strings.ReplaceAll(strings.ToLower(string(v)), " ", "")
			a.hidden = a.hidden || strings.Contains(s, "display:none") || strings.Contains(s, "visibility:hidden")
		}
	}
	return a
}

// boilerplate are the classes and ids of what is not content.
var boilerplate = [...]string{
	"nav", "navbar", "navigation", "sidebar", "breadcrumb", "breadcrumbs", "cookie-banner", "cookie-consent", "cookie-notice",
	"advertisement", "advert", "ads", "social-share", "share-buttons", "skip-link", "site-header", "site-footer", "newsletter-signup",
	"mw-editsection", "navbox", "toc",
}

// begin opens an element. It ends those that a parser of HTML ends by it.
func (r *reader) begin(t tag, a *attributes) *element {
	r.starts++
	switch t {
	case tLI:
		r.endWithin(tLI, tUL, tOL)
	case tDT, tDD:
		r.endWithin(tDT, tDL, tDL)
		r.endWithin(tDD, tDL, tDL)
	case tTD:
		r.endWithin(tTD, tTR, tTable)
	case tTR:
		r.endWithin(tTR, tTable, tTable)
	case tA:
		r.end(tA)
	case tHTML, tMeta, tBase, tBR, tHR, tImg:
		if t == tHR {
			r.end(tP)
		}
		return nil
	case other:
		return nil
	}
	if t.block() {
		r.end(tP)
		r.end(tHead)
	}
	if len(r.stack) >= maxDepth {
		return nil
	}
	e := element{tag: t, opening: r.starts}
	content := r.open[tMain]+r.open[tArticle] > 0
	switch {
	case t == tDrop, t == tHead, t != tMain && a.hidden:
		e.hidden = true
	case t == tNav, t == tHeader && !content, t == tFooter && !content:
		e.aside = true
	case t != tMain && t != tArticle:
		switch a.role {
		case "navigation", "banner", "contentinfo", "search", "complementary", "dialog", "alertdialog", "menu", "menubar", "toolbar":
			e.aside = true
		}
		if a.class != "" && !e.aside {
			e.aside = isBoilerplate(a.class)
		}
	}
	r.stack = append(r.stack, e)
	r.open[t]++
	if e.hidden {
		r.hidden++
	}
	if e.aside {
		r.aside++
	}
	return &r.stack[len(r.stack)-1]
}

func isBoilerplate(class string) bool {
	for _, c := range strings.Fields(class) {
		for _, b := range &boilerplate {
			if c == b {
				return true
			}
		}
	}
	return false
}

// end ends the innermost element of a tag and all within it.
func (r *reader) end(t tag) {
	if r.open[t] == 0 {
		return
	}
	for {
		last := r.stack[len(r.stack)-1].tag
		r.pop()
		if last == t {
			return
		}
	}
}

// endWithin ends the innermost element of a tag if it lies within the
// innermost of one of two others.
func (r *reader) endWithin(t, wall, wall2 tag) {
	if r.open[t] == 0 {
		return
	}
	for i := len(r.stack) - 1; i >= 0; i-- {
		switch r.stack[i].tag {
		case t:
			r.end(t)
			return
		case wall, wall2:
			return
		}
	}
}

func (r *reader) pop() {
	e := &r.stack[len(r.stack)-1]
	r.closing(e)
	r.open[e.tag]--
	if e.hidden {
		r.hidden--
	}
	if e.aside {
		r.aside--
	}
	r.stack = r.stack[:len(r.stack)-1]
}

func (r *reader) endAll() {
	for len(r.stack) > 0 {
		r.pop()
	}
}
