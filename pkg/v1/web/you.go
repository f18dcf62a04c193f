package web

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /v1/contents {urls[], formats[]} → [{url,title,html,markdown,metadata}]
var you = service{
	provider: "you",
	body: func(r *request) string {
		return `{"urls":[` + jsonvalue.Quote(r.url) + `],"formats":["` + r.markdownOrHTML() + `"]}`
	},
	find: func(answer gjson.Result) document {
		return document{object: answer.Get("0"), failed: answer.IsArray()}
	},
	fill: func(p *page, doc gjson.Result) {
		p.url, p.title = jsonvalue.Text(doc, "url"), jsonvalue.Text(doc, "title")
		p.author, p.language = jsonvalue.Text(doc, "metadata.author"), jsonvalue.Text(doc, "metadata.language")
	},
	texts: func(format string) []string {
		if format == text {
			return nil
		}
		return []string{format} // markdown, html
	},
}
