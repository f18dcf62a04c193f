package web

import (
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /v1/fetch {url, renderJs, includeRawHtml} → {markdown, rawHtml?}
var linkup = service{
	provider: "linkup",
	body: func(r *request) string {
		return `{"url":` + jsonvalue.Quote(r.url) + `,"renderJs":false,"includeRawHtml":` +
			strconv.FormatBool(r.format != markdown) + `}`
	},
	find: func(answer gjson.Result) document { return document{object: answer} },
	fill: func(p *page, doc gjson.Result) { p.title = jsonvalue.Text(doc, "title", "metadata.title") },
	texts: func(format string) []string {
		switch format {
		case markdown:
			return []string{"markdown"}
		case rawHTML:
			return []string{"rawHtml"}
		}
		return nil
	},
}
