package search

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// GET /v1/search: query, count ≤ 100, offset 0–9 (pages), freshness, country, language,
// include_domains, exclude_domains, livecrawl, livecrawl_formats
// →
// {results{web[{title,url,description,snippets[],page_age,thumbnail_url,favicon_url,authors[],
// contents{markdown,html}}],
// news[]}}
var you = service{
	providers: []string{"you"}, get: true, paged: true, formats: []string{"markdown", "html"},
	options: []string{"safesearch", "freshness"},
	build: func(c *call) {
		c.set("query", c.query)
		c.setInt("count", c.want)
		c.setPageIndex("offset")
		c.set("freshness", c.timeRange())
		c.set("country", c.country)
		c.set("language", strings.ToUpper(c.language))
		c.set("include_domains", strings.Join(c.include, ","))
		c.set("exclude_domains", strings.Join(c.exclude, ","))
		if c.full {
			c.set("livecrawl", c.kind)
			c.set("livecrawl_formats", c.content)
		}
	},
	read: func(c *call, r *response, answer gjson.Result) bool {
		ok := r.readFirst(answer, func(v gjson.Result) result {
			return result{
				title: jsonvalue.Text(v, "title"), url: jsonvalue.Text(v, "url"),
				snippet:   jsonvalue.Text(v, "snippets.0", "description"),
				published: jsonvalue.Text(v, "page_age"), favicon: jsonvalue.Text(v, "favicon_url"),
				image:  jsonvalue.Text(v, "thumbnail_url"),
				author: jsonvalue.Text(v, "authors.0"), content: jsonvalue.Text(v, "contents."+c.content),
			}
		}, "results."+c.kind)
		return ok || answer.Get("results").IsObject() // no results
	},
}
