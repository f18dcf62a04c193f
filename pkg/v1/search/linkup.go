package search

import (
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /v1/search {q, depth, outputType, maxResults, includeDomains[], excludeDomains[], fromDate, toDate}
// → {results[{type,name,url,content,favicon}]}
var linkup = service{
	providers: []string{"linkup"}, ignores: fieldCountry | fieldLanguage, formats: []string{"text"},
	options: []string{"depth", "includeImages", "toDate"},
	build: func(c *call) {
		c.set("q", c.query)
		c.set("depth", "standard")
		c.set("outputType", "searchResults")
		c.setInt("maxResults", c.want)
		c.setList("includeDomains", c.include)
		c.setList("excludeDomains", c.exclude)
		c.set("fromDate", c.fromFormat(time.DateOnly))
		if c.since != anyTime {
			c.set("toDate", c.now.UTC().Format(time.DateOnly))
		}
	},
	read: func(_ *call, r *response, answer gjson.Result) bool {
		list := answer.Get("results")
		jsonvalue.Each(list, func(_, v gjson.Result) bool {
			if t := v.Get("type").Str; t != "" && t != "text" { // an image
				return true
			}
			content := jsonvalue.Text(v, "content")
			r.results = append(r.results, result{
				title: jsonvalue.Text(v, "name"), url: jsonvalue.Text(v, "url"), snippet: content,
				favicon: jsonvalue.Text(v, "favicon"), content: content,
			})
			return len(r.results) < maxResultsRead
		})
		return list.IsArray()
	},
}
