package htmlmd

import "strings"

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

// tagNames are the elements that matter, by name.
var tagNames = [...]struct {
	name string
	tag  tag
}{
	{"a", tA}, {"address", tDiv}, {"article", tArticle}, {"aside", tNav}, {"audio", tDrop}, {"b", tB}, {"base", tBase},
	{"blockquote", tBlockquote}, {"body", tDiv}, {"br", tBR}, {"button", tDrop}, {"canvas", tDrop}, {"caption", tDiv},
	{"center", tDiv},
	{"code", tCode}, {"datalist", tDrop}, {"dd", tDD}, {"del", tDel}, {"details", tDiv}, {"dialog", tDrop}, {"div", tDiv},
	{"dl", tDL},
	{"dt", tDT}, {"em", tEm}, {"fieldset", tDiv}, {"figcaption", tDiv}, {"figure", tDiv}, {"footer", tFooter},
	{"form", tForm}, {"h1", tH1},
	{"h2", tH2}, {"h3", tH3}, {"h4", tH4}, {"h5", tH5}, {"h6", tH6}, {"head", tHead}, {"header", tHeader},
	{"hgroup", tDiv}, {"hr", tHR},
	{"html", tHTML}, {"i", tEm}, {"iframe", tDrop}, {"img", tImg}, {"kbd", tCode}, {"legend", tDiv}, {"li", tLI},
	{"listing", tPre},
	{"main", tMain}, {"map", tDrop}, {"math", tDrop}, {"menu", tDrop}, {"meta", tMeta}, {"nav", tNav}, {"noembed", tDrop},
	{"noframes", tDrop}, {"noscript", tDrop}, {"object", tDrop}, {"ol", tOL}, {"p", tP}, {"plaintext", tPre},
	{"pre", tPre}, {"s", tDel},
	{"samp", tCode}, {"script", tDrop}, {"section", tSection}, {"select", tDrop}, {"span", tSpan}, {"strike", tDel},
	{"strong", tB},
	{"style", tDrop}, {"summary", tDiv}, {"svg", tDrop}, {"table", tTable}, {"td", tTD}, {"template", tDrop},
	{"textarea", tDrop},
	{"th", tTD}, {"title", tTitle}, {"tr", tTR}, {"tt", tCode}, {"ul", tUL}, {"video", tDrop}, {"xmp", tPre},
}

// tagOf finds the tag of a name, which is in lower case.
func tagOf(name string) tag {
	lo, hi := 0, len(tagNames)
	for lo < hi {
		switch mid := (lo + hi) / 2; {
		case tagNames[mid].name == name:
			return tagNames[mid].tag
		case tagNames[mid].name < name:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return other
}

// block reports whether an element starts on a new line, and so ends a
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
	z      tokens
	stack  []element
	open   [numTags]int
	starts int  // start tags so far
	cut    bool // the document had more than maxTags
	hidden int  // open elements that are hidden
	aside  int
	// closing receives each element that ends, the innermost first.
	closing func(*element)
}

// maxTags is how many start tags are read; a page of more ends there. It bounds
// the time that a page of nothing but tags takes.
const maxTags = 400_000

// next moves on to the next token.
func (r *reader) next() token {
	if r.starts >= maxTags {
		r.cut = true
		return noToken
	}
	return r.z.next()
}

func (r *reader) init(doc string, closing func(*element)) {
	r.z = newTokens(doc)
	r.stack = make([]element, 0, 32)
	r.closing = closing
}

// attributes reads those of the tag.
func (r *reader) attributes() (a attributes) {
	for _, at := range r.z.attributes {
		v := at.value
		switch at.name {
		case "href":
			a.href = v
		case "src":
			a.src = v
		case "data-src":
			a.dataSrc = v
		case "alt":
			a.alt = v
		case "class", "id":
			a.class += " " + strings.ToLower(v)
		case "lang":
			a.lang = v
		case "role":
			a.role = strings.ToLower(strings.TrimSpace(v))
		case "itemprop":
			a.itemprop = v
		case "name":
			a.name = strings.ToLower(v)
		case "property":
			a.property = strings.ToLower(v)
		case "content":
			a.content = v
		case "start":
			a.start = v
		case "colspan":
			a.colspan = v
		case "hidden":
			a.hidden = true
		case "aria-hidden":
			a.hidden = a.hidden || v == "true"
		case "style":
			s := strings.ReplaceAll(strings.ToLower(v), " ", "")
			a.hidden = a.hidden || strings.Contains(s, "display:none") || strings.Contains(s, "visibility:hidden")
		}
	}
	return a
}

// boilerplate are the classes and ids of what is not content.
var boilerplate = [...]string{
	"nav", "navbar", "navigation", "sidebar", "breadcrumb", "breadcrumbs", "cookie-banner", "cookie-consent",
	"cookie-notice",
	"advertisement", "advert", "ads", "social-share", "share-buttons", "skip-link", "site-header", "site-footer",
	"newsletter-signup",
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
		case "navigation", "banner", "contentinfo", "search", "complementary", "dialog", "alertdialog", "menu", "menubar",
			"toolbar":
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
