package web

import (
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /contents {urls[], text{maxCharacters,includeHtmlTags}}
// → {results[{url,title,text,author,publishedDate}], statuses[{status,error}], costDollars{total}}
var exa = service{
	provider: "exa", cost: "costDollars.total",
	body: func(r *request) string {
		limit := ""
		if r.max > 0 {
			limit = `,"maxCharacters":` + strconv.Itoa(r.max)
		}
		return `{"urls":[` + jsonvalue.Quote(r.url) + `],"text":{"includeHtmlTags":` +
			strconv.FormatBool(r.format == rawHTML) + limit + `}}`
	},
	find: func(answer gjson.Result) document {
		return document{
			object: answer.Get("results.0"), status: answer.Get("statuses.0.error.httpStatusCode").Int(),
			failed: answer.Get("results").IsArray() || answer.Get("statuses").IsArray(),
		}
	},
	fill: func(p *page, doc gjson.Result) {
		p.url, p.title = jsonvalue.Text(doc, "url"), jsonvalue.Text(doc, "title")
		p.author, p.published = jsonvalue.Text(doc, "author"), jsonvalue.Text(doc, "publishedDate")
	},
	texts: func(format string) []string {
		if format == markdown {
			return nil
		}
		return []string{"text"}
	},
}
