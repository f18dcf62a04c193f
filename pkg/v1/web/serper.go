package web

import (
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST scrape.serper.dev {url, includeMarkdown} → {text, markdown?, metadata}
var serper = service{
	provider: "serper", lacks: []string{rawHTML},
	body: func(r *request) string {
		return `{"url":` + jsonvalue.Quote(r.url) + `,"includeMarkdown":` + strconv.FormatBool(r.format == markdown) + `}`
	},
	find: func(answer gjson.Result) document { return document{object: answer} },
	fill: func(p *page, doc gjson.Result) {
		p.title = jsonvalue.Text(doc, "metadata.title", "metadata.og:title")
		p.author = jsonvalue.Text(doc, "metadata.author", "metadata.article:author")
		p.language = jsonvalue.Text(doc, "metadata.language", "metadata.og:locale")
	},
	texts: func(format string) []string {
		if format == rawHTML {
			return nil
		}
		return []string{format} // markdown, text
	},
}
