package web

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonvalue"
)

// POST r.jina.ai {url}, with its options in headers
// → {code, status, data{title,description,url,content|text|html,publishedTime?,usage{tokens}}}
var jina = service{
	provider: "jina-reader", body: bodyWithURL,
	header: func(r *request) httpmsg.Header {
		return httpmsg.Header{{Name: "x-return-format", Value: r.format}, {Name: "x-timeout", Value: "25"}}
	},
	find: func(answer gjson.Result) document {
		return document{object: answer.Get("data"), status: answer.Get("code").Int()}
	},
	fill: func(p *page, doc gjson.Result) {
		p.url, p.title = jsonvalue.Text(doc, "url"), jsonvalue.Text(doc, "title")
		p.author = jsonvalue.Text(doc, "metadata.author", "metadata.article:author")
		p.language = jsonvalue.Text(doc, "metadata.lang", "metadata.og:locale")
		p.published = jsonvalue.Text(doc, "publishedTime")
	},
	texts: func(format string) []string {
		switch format {
		case text:
			return []string{"text", "content"}
		case rawHTML:
			return []string{"html", "content"}
		}
		return []string{"content", "text"}
	},
}
