package web

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /reader {url, return_format markdown|text, timeout} → {reader_result{title,description,url,content}}
var zai = service{
	provider: "zai", lacks: []string{rawHTML},
	body: func(r *request) string {
		return `{"url":` + jsonvalue.Quote(r.url) + `,"return_format":"` + r.markdownOrText() + `","timeout":25}`
	},
	find: func(answer gjson.Result) document { return document{object: answer.Get("reader_result")} },
	fill: func(p *page, doc gjson.Result) {
		p.url, p.title = jsonvalue.Text(doc, "url"), jsonvalue.Text(doc, "title")
		p.author, p.language = jsonvalue.Text(doc, "metadata.author"),
			jsonvalue.Text(doc, "metadata.lang", "metadata.language")
	},
	texts: func(format string) []string {
		if format == rawHTML {
			return nil
		}
		return []string{"content"}
	},
}
