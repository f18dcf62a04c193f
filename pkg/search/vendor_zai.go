package search

import "github.com/tidwall/gjson"

// zai is POST /web_search of Z.ai:
//
//	{search_engine, search_query, count ≤ 50, search_domain_filter, search_recency_filter, content_size}
//	→ {search_result[{title,link,content,media,icon,publish_date}]}
var zai = shape{
	providers: []string{"zai"}, max: 50,
	options: []string{"search_engine", "search_intent", "content_size"},
	build: func(a *ask) {
		b := a.body
		b["search_engine"], b["search_query"], b["count"] = "search-prime", a.query, a.want
		if len(a.include) == 1 && len(a.exclude) == 0 {
			b["search_domain_filter"] = a.include[0]
		} else {
			b["search_query"] = a.sites()
		}
		if t, ok := map[string]string{"day": "oneDay", "week": "oneWeek", "month": "oneMonth", "year": "oneYear"}[a.since]; ok {
			b["search_recency_filter"] = t
		}
		if a.full {
			b["content_size"] = "high"
		}
		a.without("search_type", "country", "language")
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		list := raw.Get("search_result")
		if !list.IsArray() {
			return errShape
		}
		list.ForEach(func(_, v gjson.Result) bool {
			f.results = append(f.results, hit{
				title: v.Get("title").Str, url: v.Get("link").Str, snippet: v.Get("content").Str, published: v.Get("publish_date").Str,
				favicon: v.Get("icon").Str, author: v.Get("media").Str, content: v.Get("content").Str, format: "text",
			})
			return true
		})
		return nil
	},
}
