package web

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/htmlmd"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/words"
)

// shape is how a provider's fetch endpoint is spoken to
// (docs/reference/api-shapes.md, 12.2).
type shape struct {
	provider string
	// body gives the body of the call; header what goes with it besides. header
	// may be nil.
	body   func(r *request) string
	header func(r *request) httpmsg.Header
	drop   string // formats that are asked for in vain

	root string // path of the page in the answer, "" is the answer itself
	// failed is an object or a list that stands in an answer without a page;
	// status is the path of the page's own status, there or beside the page.
	failed, status string
	// fields and texts say where things are: "title=path|path"; texts by format.
	fields, texts string
	cost          string
}

// shapes are the providers with a fetch service.
var shapes = [...]shape{{
	// POST /extract {urls, format markdown|text} → {results[{url,title,raw_content}], failed_results[{url,error}]}
	provider: "tavily", drop: rawHTML,
	body: func(r *request) string {
		f := markdown
		if r.format == text {
			f = text
		}
		return `{"urls":[` + words.Quote(r.url) + `],"format":"` + f + `"}`
	},
	root: "results.0", failed: "failed_results", fields: "url=url title=title", texts: "markdown=raw_content text=raw_content",
}, {
	// POST /contents {urls[], text{maxCharacters,includeHtmlTags}}
	// → {results[{url,title,text,author,publishedDate}], statuses[{status,error}], costDollars{total}}
	provider: "exa",
	body: func(r *request) string {
		max := ""
		if r.max > 0 {
			max = `,"maxCharacters":` + itoa(r.max)
		}
		tags := "false"
		if r.format == rawHTML {
			tags = "true"
		}
		return `{"urls":[` + words.Quote(r.url) + `],"text":{"includeHtmlTags":` + tags + max + `}}`
	},
	root: "results.0", failed: "results|statuses", status: "statuses.0.error.httpStatusCode",
	fields: "url=url title=title author=author published=publishedDate", texts: "text=text html=text", cost: "costDollars.total",
}, {
	// POST /v2/scrape {url, formats[], onlyMainContent, timeout}
	// → {success, data{markdown?,html?,metadata{title,language,statusCode,sourceURL,…}}}
	provider: "firecrawl",
	body: func(r *request) string {
		return `{"url":` + words.Quote(r.url) + `,"formats":["` + r.markup() + `"],"onlyMainContent":true,"timeout":25000}`
	},
	root: "data", status: "data.metadata.statusCode",
	fields: "title=metadata.title|metadata.ogTitle language=metadata.language author=metadata.author|metadata.article:author " +
		"url=metadata.url|metadata.sourceURL published=metadata.publishedTime|metadata.article:published_time",
	texts: "markdown=markdown html=html",
}, {
	// POST r.jina.ai {url}, with its options in headers
	// → {code, status, data{title,description,url,content|text|html,publishedTime?,usage{tokens}}}
	provider: "jina-reader", body: onlyURL,
	header: func(r *request) httpmsg.Header {
		return httpmsg.Header{{Name: "x-return-format", Value: r.format}, {Name: "x-timeout", Value: "25"}}
	},
	root: "data", status: "code",
	fields: "title=title url=url language=metadata.lang|metadata.og:locale author=metadata.author|metadata.article:author published=publishedTime",
	texts:  "markdown=content|text text=text|content html=html|content",
}, {
	// POST /v1/fetch {url, renderJs, includeRawHtml} → {markdown, rawHtml?}
	provider: "linkup",
	body: func(r *request) string {
		raw := "false"
		if r.format != markdown {
			raw = "true"
		}
		return `{"url":` + words.Quote(r.url) + `,"renderJs":false,"includeRawHtml":` + raw + `}`
	},
	fields: "title=title|metadata.title", texts: "markdown=markdown html=rawHtml",
}, {
	// POST /v1/contents {urls[], formats[]} → [{url,title,html,markdown,metadata}]
	provider: "you",
	body: func(r *request) string {
		return `{"urls":[` + words.Quote(r.url) + `],"formats":["` + r.markup() + `"]}`
	},
	root: "0", failed: "@this",
	fields: "url=url title=title author=metadata.author language=metadata.language", texts: "markdown=markdown html=html",
}, {
	// POST /api/web_fetch {url} → {title, content, links[]}
	provider: "ollama-cloud", drop: "markdown html", body: onlyURL,
	fields: "title=title", texts: "text=content",
}, {
	// POST /reader {url, return_format markdown|text, timeout} → {reader_result{title,description,url,content}}
	provider: "zai", drop: rawHTML,
	body: func(r *request) string {
		f := markdown
		if r.format == text {
			f = text
		}
		return `{"url":` + words.Quote(r.url) + `,"return_format":"` + f + `","timeout":25}`
	},
	root: "reader_result", fields: "title=title url=url author=metadata.author language=metadata.lang|metadata.language",
	texts: "markdown=content text=content",
}, {
	// POST scrape.serper.dev {url, includeMarkdown} → {text, markdown?, metadata}
	provider: "serper", drop: rawHTML,
	body: func(r *request) string {
		md := "false"
		if r.format == markdown {
			md = "true"
		}
		return `{"url":` + words.Quote(r.url) + `,"includeMarkdown":` + md + `}`
	},
	fields: "title=metadata.title|metadata.og:title author=metadata.author|metadata.article:author language=metadata.language|metadata.og:locale",
	texts:  "markdown=markdown text=text",
}}

// shapeOf gives the shape of a provider, or nil.
func shapeOf(d *provider.Descriptor) *shape {
	for i := range shapes {
		if shapes[i].provider == d.ID {
			return &shapes[i]
		}
	}
	return nil
}

func onlyURL(r *request) string { return `{"url":` + words.Quote(r.url) + `}` }

// markup gives the format to ask for where there is no plain text.
func (r *request) markup() string {
	if r.format == markdown {
		return markdown
	}
	return rawHTML
}

// read fills a page from an answer. false: it has another shape. An
// *apierr.Error: the page could not be had.
func (s *shape) read(p *page, all gjson.Result, r *request) (bool, error) {
	v := all
	if s.root != "" {
		v = all.Get(s.root)
	}
	switch n := all.Get(s.status).Int(); {
	case s.status == "":
	case n == 404, n == 410:
		return false, notFound()
	case n >= 400 && v.IsObject():
		return false, unavailable("the page answered with status %d", n)
	case n >= 400:
		return false, refused()
	}
	if ok := all.Get("success"); ok.Type == gjson.False {
		return false, refused()
	}
	if !v.IsObject() {
		for paths := s.failed; paths != ""; {
			var path string
			path, paths, _ = strings.Cut(paths, "|")
			if all.Get(path).IsArray() {
				return false, refused()
			}
		}
		return false, nil
	}
	for _, f := range [...]struct {
		name string
		to   *string
	}{{"url", &p.url}, {"title", &p.title}, {"author", &p.author}, {"language", &p.language}, {"published", &p.published}} {
		*f.to = words.OneOf(v, words.Value(s.fields, f.name))
	}
	p.published = htmlmd.Date(p.published, p.now)
	p.cost = words.Number(all, s.cost)
	return s.content(p, v, r), nil
}

// content takes the text in the format asked for, or what it can be made of,
// or what there is. false: no text stands where the shape says.
func (s *shape) content(p *page, v gjson.Result, r *request) bool {
	found := false
	order := [...]string{r.format, text, rawHTML, markdown}
	if r.format == rawHTML {
		order[1], order[2], order[3] = markdown, text, text
	}
	for _, f := range order {
		paths := words.Value(s.texts, f)
		for rest := paths; rest != ""; {
			var path string
			path, rest, _ = strings.Cut(rest, "|")
			found = found || v.Get(path).Exists()
		}
		doc := words.OneOf(v, paths)
		if doc == "" {
			continue
		}
		if p.text, p.format = doc, f; f == rawHTML && r.format != rawHTML {
			to := htmlmd.Markdown
			if r.format == text {
				to = htmlmd.Text
			}
			p.text, p.format = htmlmd.Read(doc, r.url, to, r.max).Text, r.format
		}
		break
	}
	return found
}

func refused() *apierr.Error { return unavailable("the provider could not fetch the page") }

func notFound() *apierr.Error {
	return apierr.New(404, pageNotFound, "there is no page at this address")
}
