package web

import (
	"github.com/tidwall/gjson"

	"weir/pkg/webpage"
)

// tavily is POST /extract:
//
//	{urls, format markdown|text} → {results[{url,title,raw_content}], failed_results[{url,error}]}
var tavily = shape{providers: []string{"tavily"}, build: func(r *request) part {
	body := map[string]any{"urls": []string{r.url}, "format": r.format}
	if r.format == rawHTML {
		body["format"] = markdown
		return send(body, "format")
	}
	return send(body)
}, read: func(p *page, raw []byte, r *request) error {
	if p.format == rawHTML {
		p.format = markdown
	}
	v := gjson.GetBytes(raw, "results.0")
	if !v.IsObject() {
		if gjson.GetBytes(raw, "failed_results").IsArray() {
			return unavailable("the provider could not fetch the page")
		}
		return errShape
	}
	p.url, p.title, p.text = v.Get("url").Str, v.Get("title").Str, v.Get("raw_content").Str
	return p.must()
}}

// exa is POST /contents:
//
//	{urls[], text{maxCharacters,includeHtmlTags}} → {results[{url,title,text,author,publishedDate}], statuses[{status,error}], costDollars{total}}
var exa = shape{providers: []string{"exa"}, build: func(r *request) part {
	options := map[string]any{"includeHtmlTags": r.format == rawHTML}
	if r.max > 0 {
		options["maxCharacters"] = r.max
	}
	return send(map[string]any{"urls": []string{r.url}, "text": options})
}, read: func(p *page, raw []byte, r *request) error {
	all := gjson.ParseBytes(raw)
	v := all.Get("results.0")
	if !v.IsObject() {
		if all.Get("results").IsArray() || all.Get("statuses").IsArray() {
			if s := all.Get("statuses.0.error.httpStatusCode").Int(); s == 404 || s == 410 {
				return notFound()
			}
			return unavailable("the provider could not fetch the page")
		}
		return errShape
	}
	p.url, p.title, p.text, p.author = v.Get("url").Str, v.Get("title").Str, v.Get("text").Str, v.Get("author").Str
	p.date(v.Get("publishedDate"))
	p.cost = number(all.Get("costDollars.total"))
	if p.format == markdown {
		p.format = text
	}
	return p.must()
}}

// linkup is POST /v1/fetch:
//
//	{url, renderJs, includeRawHtml} → {markdown, rawHtml?}
var linkup = shape{providers: []string{"linkup"}, build: func(r *request) part {
	return send(map[string]any{"url": r.url, "renderJs": false, "includeRawHtml": r.format != markdown})
}, read: func(p *page, raw []byte, r *request) error {
	v := gjson.ParseBytes(raw)
	if !v.Get("markdown").Exists() && !v.Get("rawHtml").Exists() {
		return errShape
	}
	p.either(v.Get("markdown").Str, v.Get("rawHtml").Str, r)
	p.title = oneOf(v, "title", "metadata.title")
	return p.must()
}}

// you is POST /v1/contents:
//
//	{urls[], formats[]} → [{url,title,html,markdown,metadata}]
var you = shape{providers: []string{"you"}, build: func(r *request) part {
	format := "markdown"
	if r.format != markdown {
		format = "html"
	}
	return send(map[string]any{"urls": []string{r.url}, "formats": []string{format}})
}, read: func(p *page, raw []byte, r *request) error {
	all := gjson.ParseBytes(raw)
	if !all.IsArray() {
		return errShape
	}
	v := all.Get("0")
	p.url, p.title = v.Get("url").Str, v.Get("title").Str
	p.author, p.language = oneOf(v, "metadata.author"), oneOf(v, "metadata.language")
	p.either(v.Get("markdown").Str, v.Get("html").Str, r)
	return p.must()
}}

// ollama is POST /api/web_fetch:
//
//	{url} → {title, content, links[]}
var ollama = shape{providers: []string{"ollama-cloud"}, build: func(r *request) part {
	return send(map[string]any{"url": r.url}, dropFormat(r, text)...)
}, read: func(p *page, raw []byte, r *request) error {
	v := gjson.ParseBytes(raw)
	if !v.Get("content").Exists() {
		return errShape
	}
	p.title, p.text, p.format = v.Get("title").Str, v.Get("content").Str, text
	return p.must()
}}

// serper is POST scrape.serper.dev:
//
//	{url, includeMarkdown} → {text, markdown?, metadata}
var serper = shape{providers: []string{"serper"}, build: func(r *request) part {
	var dropped []string
	if r.format == rawHTML {
		dropped = []string{"format"}
	}
	return send(map[string]any{"url": r.url, "includeMarkdown": r.format == markdown}, dropped...)
}, read: func(p *page, raw []byte, r *request) error {
	v := gjson.ParseBytes(raw)
	if !v.Get("text").Exists() && !v.Get("markdown").Exists() {
		return errShape
	}
	p.text, p.format = v.Get("text").Str, text
	if m := v.Get("markdown").Str; m != "" && r.format == markdown {
		p.text, p.format = m, markdown
	}
	p.title = oneOf(v, "metadata.title", "metadata.og:title")
	p.author = oneOf(v, "metadata.author", "metadata.article:author")
	p.language = oneOf(v, "metadata.language", "metadata.og:locale")
	return p.must()
}}

// dropFormat lists format unless it is the one that the provider gives.
func dropFormat(r *request, given string) []string {
	if r.format == given {
		return nil
	}
	return []string{"format"}
}

// either takes the Markdown, or what can be made of the HTML.
func (p *page) either(md, html string, r *request) {
	if r.format == markdown && md != "" || html == "" {
		p.text, p.format = md, markdown
		return
	}
	p.viaHTML(html, r)
}

// date takes a provider's date.
func (p *page) date(v interface{ String() string }) { p.published = webpage.Date(v.String(), p.now) }

// must refuses an answer without any content.
func (p *page) must() error {
	if p.text == "" {
		return unavailable("the provider found no content on the page")
	}
	return nil
}
