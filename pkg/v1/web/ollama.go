package web

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /api/web_fetch {url} → {title, content, links[]}
var ollama = service{
	provider: "ollama-cloud", lacks: []string{markdown, rawHTML}, body: bodyWithURL,
	find: func(answer gjson.Result) document { return document{object: answer} },
	fill: func(p *page, doc gjson.Result) { p.title = jsonvalue.Text(doc, "title") },
	texts: func(format string) []string {
		if format != text {
			return nil
		}
		return []string{"content"}
	},
}
