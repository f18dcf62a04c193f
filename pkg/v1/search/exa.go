package search

import (
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /search {query, numResults ≤ 100, category, includeDomains[], excludeDomains[],
// startPublishedDate, userLocation, contents{highlights,text}}
// → {results[{title,url,publishedDate,score,author,image,favicon,text,highlights[],summary}], costDollars{total}}
var exa = service{
	providers: []string{"exa"}, ignores: fieldLanguage, formats: []string{"text", "html"},
	options: []string{"type", "category", "endPublishedDate", "startCrawlDate", "endCrawlDate", "includeText",
		"excludeText", "moderation"},
	build: func(c *call) {
		c.set("query", c.query)
		c.setInt("numResults", c.want)
		c.set("type", "auto")
		c.set("userLocation", c.country)
		c.set("startPublishedDate", c.fromFormat("2006-01-02T15:04:05.000Z"))
		c.setList("includeDomains", c.include)
		c.setList("excludeDomains", c.exclude)
		c.setJSON("contents", exaContents(c))
		if c.kind == kindNews {
			c.set("category", "news")
		}
	},
	read: func(_ *call, r *response, answer gjson.Result) bool {
		r.cost = jsonvalue.Number(answer, "costDollars.total")
		return r.readFirst(answer, func(v gjson.Result) result {
			return result{
				title: jsonvalue.Text(v, "title"), url: jsonvalue.Text(v, "url"),
				snippet: jsonvalue.Text(v, "highlights.0", "summary", "text"),
				score:   jsonvalue.Number(v, "score"), published: jsonvalue.Text(v, "publishedDate"),
				favicon: jsonvalue.Text(v, "favicon"),
				image:   jsonvalue.Text(v, "image"), author: jsonvalue.Text(v, "author"), content: jsonvalue.Text(v, "text"),
			}
		}, "results")
	},
}

// exaContents returns the contents to ask for with each result.
func exaContents(c *call) string {
	if !c.full {
		return `{"highlights":true}`
	}
	text := `{"highlights":true,"text":{"includeHtmlTags":` + strconv.FormatBool(c.content == "html")
	if c.maxChars > 0 {
		text += `,"maxCharacters":` + strconv.Itoa(c.maxChars)
	}
	return text + "}}"
}
