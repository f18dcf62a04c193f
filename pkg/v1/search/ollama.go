package search

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /api/web_search {query, max_results ≤ 10} → {results[{title,url,content}]}
var ollama = service{
	providers: []string{"ollama-cloud"}, ignores: fieldCountry | fieldLanguage | fieldTimeRange, formats: []string{"text"},
	build: func(c *call) {
		c.set("query", c.siteQuery())
		c.setInt("max_results", c.want)
	},
	read: func(_ *call, r *response, answer gjson.Result) bool {
		return r.readFirst(answer, func(v gjson.Result) result {
			content := jsonvalue.Text(v, "content")
			return result{title: jsonvalue.Text(v, "title"), url: jsonvalue.Text(v, "url"), snippet: content, content: content}
		}, "results")
	},
}
