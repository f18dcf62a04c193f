package search

import (
	"time"

	"github.com/tidwall/gjson"
)

// linkup is POST /v1/search:
//
//	{q, depth, outputType, maxResults, includeDomains[], excludeDomains[], fromDate, toDate} → {results[{type,name,url,content,favicon}]}
var linkup = shape{
	providers: []string{"linkup"}, max: 100,
	options: []string{"depth", "includeImages", "toDate"},
	build: func(a *ask) {
		b := a.body
		b["q"], b["depth"], b["outputType"], b["maxResults"] = a.query, "standard", "searchResults", a.want
		a.lists("includeDomains", "excludeDomains")
		if t, ok := a.from(); ok {
			b["fromDate"], b["toDate"] = t.Format(time.DateOnly), a.now.UTC().Format(time.DateOnly)
		}
		a.without("search_type", "country", "language")
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		list := raw.Get("results")
		if !list.IsArray() {
			return errShape
		}
		list.ForEach(func(_, v gjson.Result) bool {
			if t := v.Get("type").Str; t == "" || t == "text" {
				f.results = append(f.results, hit{
					title: v.Get("name").Str, url: v.Get("url").Str, snippet: v.Get("content").Str, favicon: v.Get("favicon").Str,
					content: v.Get("content").Str, format: "text",
				})
			}
			return true
		})
		return nil
	},
}
