package search

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /web_search {search_engine, search_query, count ≤ 50, search_domain_filter, search_recency_filter, content_size}
// → {search_result[{title,link,content,media,icon,publish_date}]}
var zai = service{
	providers: []string{"zai"}, ignores: fieldCountry | fieldLanguage, formats: []string{"text"},
	options: []string{"search_engine", "search_intent", "content_size"},
	build: func(c *call) {
		c.set("search_engine", "search-prime")
		c.set("search_query", c.siteQuery())
		c.setInt("count", c.want)
		if c.full {
			c.set("content_size", "high")
		}
		if len(c.include) == 1 && len(c.exclude) == 0 {
			c.set("search_query", c.query)
			c.set("search_domain_filter", c.include[0])
		}
		if c.since != anyTime { // "oneDay"
			c.set("search_recency_filter", "one"+strings.ToUpper(c.since[:1])+c.since[1:])
		}
	},
	read: func(_ *call, r *response, answer gjson.Result) bool {
		return r.readFirst(answer, func(v gjson.Result) result {
			content := jsonvalue.Text(v, "content")
			return result{
				title: jsonvalue.Text(v, "title"), url: jsonvalue.Text(v, "link"), snippet: content,
				published: jsonvalue.Text(v, "publish_date"),
				favicon:   jsonvalue.Text(v, "icon"), author: jsonvalue.Text(v, "media"), content: content,
			}
		}, "search_result")
	},
}
