package web

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /extract {urls, format markdown|text} → {results[{url,title,raw_content}], failed_results[{url,error}]}
var tavily = service{
	provider: "tavily", lacks: []string{rawHTML},
	body: func(r *request) string {
		return `{"urls":[` + jsonvalue.Quote(r.url) + `],"format":"` + r.markdownOrText() + `"}`
	},
	find: func(answer gjson.Result) document {
		return document{object: answer.Get("results.0"), failed: answer.Get("failed_results").IsArray()}
	},
	fill: func(p *page, doc gjson.Result) {
		p.url, p.title = jsonvalue.Text(doc, "url"), jsonvalue.Text(doc, "title")
	},
	texts: func(format string) []string {
		if format == rawHTML {
			return nil
		}
		return []string{"raw_content"}
	},
}
