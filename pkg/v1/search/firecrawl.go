package search

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /v2/search {query, limit ≤ 100, sources[], tbs, country, timeout, scrapeOptions}
// → {success, data{web[{title,url,description,position,markdown}],
// news[{…,snippet,date,imageUrl}]}}; data[] in version 1
var firecrawl = service{
	providers: []string{"firecrawl"}, ignores: fieldLanguage, formats: []string{"markdown", "html"},
	options: []string{"location", "categories", "ignoreInvalidURLs", "tbs"},
	build: func(c *call) {
		c.set("query", c.siteQuery())
		c.setInt("limit", c.want)
		c.setInt("timeout", 9000) // milliseconds
		c.set("country", c.country)
		c.set("tbs", c.timeRangeLetter("qdr:"))
		c.setList("sources", []string{c.kind})
		if c.full {
			c.setJSON("scrapeOptions", `{"formats":["`+c.content+`"],"onlyMainContent":true}`)
		}
	},
	read: func(c *call, r *response, answer gjson.Result) bool {
		ok := r.readFirst(answer, func(v gjson.Result) result {
			return result{
				title: jsonvalue.Text(v, "title", "metadata.title"), url: jsonvalue.Text(v, "url", "metadata.sourceURL"),
				snippet:   jsonvalue.Text(v, "description", "snippet", "metadata.description"),
				published: jsonvalue.Text(v, "date"), image: jsonvalue.Text(v, "imageUrl"),
				language: jsonvalue.Text(v, "metadata.language"),
				content:  jsonvalue.Text(v, c.content),
			}
		}, "data."+c.kind, "data")
		return ok || answer.Get("data").IsObject() // no results
	},
}
