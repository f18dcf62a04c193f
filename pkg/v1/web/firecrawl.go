package web

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /v2/scrape {url, formats[], onlyMainContent, timeout}
// → {success, data{markdown?,html?,metadata{title,language,statusCode,sourceURL,…}}}
var firecrawl = service{
	provider: "firecrawl",
	body: func(r *request) string {
		return `{"url":` + jsonvalue.Quote(r.url) + `,"formats":["` + r.markdownOrHTML() +
			`"],"onlyMainContent":true,"timeout":25000}`
	},
	find: func(answer gjson.Result) document {
		return document{object: answer.Get("data"), status: answer.Get("data.metadata.statusCode").Int()}
	},
	fill: func(p *page, doc gjson.Result) {
		p.url = jsonvalue.Text(doc, "metadata.url", "metadata.sourceURL")
		p.title = jsonvalue.Text(doc, "metadata.title", "metadata.ogTitle")
		p.author = jsonvalue.Text(doc, "metadata.author", "metadata.article:author")
		p.language = jsonvalue.Text(doc, "metadata.language")
		p.published = jsonvalue.Text(doc, "metadata.publishedTime", "metadata.article:published_time")
	},
	texts: func(format string) []string {
		if format == text {
			return nil
		}
		return []string{format} // markdown, html
	},
}
