package web

import (
	"github.com/tidwall/gjson"

	"weir/pkg/apierr"
	"weir/pkg/edge"
)

func notFound() *apierr.Error {
	return apierr.New(404, pageNotFound, "there is no page at this address")
}

// firecrawl is POST /v2/scrape:
//
//	{url, formats[], onlyMainContent} → {success, data{markdown?,html?,metadata{title,language,statusCode,sourceURL,…}}}
var firecrawl = shape{providers: []string{"firecrawl"}, build: func(r *request) part {
	format := "markdown"
	if r.format != markdown {
		format = "html"
	}
	return send(map[string]any{"url": r.url, "formats": []string{format}, "onlyMainContent": true, "timeout": 25000})
}, read: func(p *page, raw []byte, r *request) error {
	all := gjson.ParseBytes(raw)
	if ok := all.Get("success"); ok.Exists() && !ok.Bool() {
		return unavailable("the provider could not fetch the page")
	}
	v := all.Get("data")
	if !v.IsObject() {
		return errShape
	}
	m := v.Get("metadata")
	switch s := m.Get("statusCode").Int(); {
	case s == 404, s == 410:
		return notFound()
	case s >= 400:
		return unavailable("the page answered with status %d", s)
	}
	p.title, p.language = oneOf(m, "title", "ogTitle"), oneOf(m, "language")
	p.author = oneOf(m, "author", "article:author")
	p.url = oneOf(m, "url", "sourceURL")
	p.date(m.Get("publishedTime"))
	if p.published == "" {
		p.date(m.Get("article:published_time"))
	}
	p.either(v.Get("markdown").Str, v.Get("html").Str, r)
	return p.must()
}}

// jina is POST r.jina.ai, with its options in headers:
//
//	{url} → {code, status, data{title,description,url,content|text|html,publishedTime?,usage{tokens}}}
var jina = shape{providers: []string{"jina-reader"}, build: func(r *request) part {
	p := send(map[string]any{"url": r.url})
	p.header = edge.Header{{Name: "x-return-format", Value: r.format}, {Name: "x-timeout", Value: "25"}}
	return p
}, read: func(p *page, raw []byte, r *request) error {
	all := gjson.ParseBytes(raw)
	if c := all.Get("code").Int(); c >= 400 {
		if c == 404 {
			return notFound()
		}
		return unavailable("the provider could not fetch the page")
	}
	v := all.Get("data")
	if !v.IsObject() {
		return errShape
	}
	p.title, p.url = v.Get("title").Str, v.Get("url").Str
	p.language = oneOf(v, "metadata.lang", "metadata.og:locale")
	p.author = oneOf(v, "metadata.author", "metadata.article:author")
	p.date(v.Get("publishedTime"))
	switch r.format {
	case text:
		p.text = oneOf(v, "text", "content")
	case rawHTML:
		p.text = oneOf(v, "html", "content")
	default:
		p.text = oneOf(v, "content", "text")
	}
	return p.must()
}}

// zai is POST /reader:
//
//	{url, return_format markdown|text, timeout} → {reader_result{title,description,url,content}}
var zai = shape{providers: []string{"zai"}, build: func(r *request) part {
	body := map[string]any{"url": r.url, "return_format": r.format, "timeout": 25}
	if r.format == rawHTML {
		body["return_format"] = markdown
		return send(body, "format")
	}
	return send(body)
}, read: func(p *page, raw []byte, r *request) error {
	v := gjson.GetBytes(raw, "reader_result")
	if !v.IsObject() {
		return errShape
	}
	if p.format == rawHTML {
		p.format = markdown
	}
	p.title, p.url, p.text = v.Get("title").Str, v.Get("url").Str, v.Get("content").Str
	p.author, p.language = oneOf(v, "metadata.author"), oneOf(v, "metadata.lang", "metadata.language")
	return p.must()
}}
