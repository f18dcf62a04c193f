package search

import "github.com/tidwall/gjson"

// ollama is POST /api/web_search of Ollama Cloud:
//
//	{query, max_results ≤ 10} → {results[{title,url,content}]}
var ollama = shape{
	providers: []string{"ollama-cloud"}, max: 10,
	build: func(a *ask) {
		a.body["query"], a.body["max_results"] = a.sites(), a.want
		a.without("search_type", "country", "language", "time_range")
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		list := raw.Get("results")
		if !list.IsArray() {
			return errShape
		}
		list.ForEach(func(_, v gjson.Result) bool {
			f.results = append(f.results, hit{
				title: v.Get("title").Str, url: v.Get("url").Str, snippet: v.Get("content").Str, content: v.Get("content").Str, format: "text",
			})
			return true
		})
		return nil
	},
}
