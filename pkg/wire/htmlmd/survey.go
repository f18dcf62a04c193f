package htmlmd

import (
	"cmp"
	"strings"
)

// findings are what the first pass found.
type findings struct {
	title, ogTitle, heading, author, published, language, base string
	// region is the number of the start tag that the main content begins with;
	// 0 is the whole document.
	region int
	// keepAsides: the page has no text but in what looks like navigation.
	keepAsides bool
	// table has the numbers of the tables that hold data.
	table map[int]bool
}

// Shares of the text that make a region the main content.
const (
	minMain    = 200 // characters that are enough for main
	mainShare  = 4   // or a quarter of the text
	articleOwn = 2   // half of the text for an article
)

// Kinds of regions.
const (
	inMain uint8 = iota + 1
	inArticle
)

type region struct{ start, size int }

// survey passes over a document once.
func survey(doc string) *findings {
	f := &findings{table: map[int]bool{}}
	var r reader
	total, all := 0, 0
	var main, article, bestMain, bestArticle region
	type table struct {
		start, cells, most int
		nested             bool
	}
	var tables []table
	var heading []byte
	r.init(doc, func(e *element) {
		switch {
		case e.region == inArticle:
			if article.size > bestArticle.size {
				bestArticle = article
			}
			article = region{}
		case e.region == inMain:
			if main.size > bestMain.size {
				bestMain = main
			}
			main = region{}
		case e.tag == tTable:
			if n := len(tables); n > 0 && tables[n-1].start == e.opening {
				t := tables[n-1]
				f.table[t.start] = !t.nested && t.most > 1 && !e.layout
				tables = tables[:n-1]
			}
		}
	})
	for {
		switch r.next() {
		case noToken:
			r.endAll()
			f.heading = oneLine(string(heading))
			f.keepAsides = total < 20 && all > 4*total
			switch {
			case bestMain.size >= minMain, bestMain.size > 0 && bestMain.size*mainShare >= total:
				f.region = bestMain.start
			case bestArticle.size > 0 && bestArticle.size*articleOwn >= total:
				f.region = bestArticle.start
			}
			return f
		case textToken:
			if r.open[tTitle] > 0 && f.title == "" && r.hidden <= 1 {
				f.title = oneLine(r.z.text())
				continue
			}
			if r.hidden > 0 {
				continue
			}
			text := r.z.text()
			n := letters(text)
			all += n
			if r.aside > 0 {
				continue
			}
			total += n
			main.size += n
			article.size += n
			if r.open[tH1] > 0 && len(heading) < 300 && f.heading == "" {
				heading = append(heading, text...)
			}
		case endToken:
			t := tagOf(r.z.name)
			if t == tH1 && len(heading) > 0 {
				f.heading = string(heading)
			}
			r.end(t)
		case startToken:
			t := tagOf(r.z.name)
			a := r.attributes()
			f.note(t, &a)
			e := r.begin(t, &a)
			switch {
			case e == nil || r.hidden > 0 || r.aside > 0:
			case t == tMain || a.role == "main":
				if main.start == 0 {
					e.region, main = inMain, region{start: e.opening}
				}
			case t == tArticle || a.itemprop == "articleBody":
				if article.start == 0 {
					e.region, article = inArticle, region{start: e.opening}
				}
			}
			switch {
			case e == nil:
			case t == tTable:
				for i := range tables {
					tables[i].nested = true
				}
				e.layout = a.role == "presentation" || a.role == "none"
				if len(tables) < 64 {
					tables = append(tables, table{start: e.opening})
				}
			case t == tTR && len(tables) > 0:
				tables[len(tables)-1].cells = 0
			case t == tTD && len(tables) > 0:
				last := &tables[len(tables)-1]
				last.cells++
				last.most = max(last.most, last.cells)
			}
		}
	}
}

// note reads what the head of a page says.
func (f *findings) note(t tag, a *attributes) {
	set := func(to *string, v string) {
		if v = oneLine(v); *to == "" && len(v) <= 512 {
			*to = v
		}
	}
	switch t {
	case tHTML:
		set(&f.language, a.lang)
	case tBase:
		if f.base == "" && len(a.href) <= 2048 {
			f.base = strings.TrimSpace(a.href)
		}
	case tMeta:
		key := cmp.Or(a.property, a.name, strings.ToLower(a.itemprop))
		switch key {
		case "og:title", "twitter:title":
			set(&f.ogTitle, a.content)
		case "author", "article:author", "dc.creator", "parsely-author":
			if !strings.HasPrefix(a.content, "http") {
				set(&f.author, a.content)
			}
		case "article:published_time", "datepublished", "date", "dc.date", "parsely-pub-date", "pubdate", "publish-date":
			set(&f.published, a.content)
		}
	}
}

// letters counts the bytes that are no white space.
func letters(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] > ' ' {
			n++
		}
	}
	return n
}
