package search

import "github.com/tidwall/gjson"

// perplexity is POST /search:
//
//	{query, max_results ≤ 20, country, search_domain_filter[], search_recency_filter, search_language_filter[]}
//	→ {id, results[{title,url,snippet,date,last_updated}]}
//
// The domain filter is either of wanted or of unwanted domains.
var perplexity = shape{
	providers: []string{"perplexity"}, max: 20,
	options: []string{"max_tokens_per_page", "search_mode", "search_after_date_filter", "search_before_date_filter"},
	build: func(a *ask) {
		a.body["query"], a.body["max_results"] = a.query, a.want
		a.perplexed()
		if a.country != "" {
			a.body["country"] = a.country
		}
		if a.language != "" {
			a.body["search_language_filter"] = []string{a.lang()}
		}
		a.without("search_type", "content_options.full_page")
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		list := raw.Get("results")
		if !list.IsArray() {
			return errShape
		}
		f.perplexed(list)
		return nil
	},
}

// perplexed sets the filters that Perplexity's search and chat share.
func (a *ask) perplexed() {
	if a.since != anyTime {
		a.body["search_recency_filter"] = a.since
	}
	filter := a.include
	if len(filter) == 0 {
		for _, d := range a.exclude {
			filter = append(filter, "-"+d)
		}
	}
	if len(filter) > 0 {
		a.body["search_domain_filter"] = filter
	}
}

func (f *found) perplexed(list gjson.Result) {
	list.ForEach(func(_, v gjson.Result) bool {
		f.results = append(f.results, hit{
			title: v.Get("title").Str, url: v.Get("url").Str, snippet: v.Get("snippet").Str, published: oneOf(v, "date", "last_updated"),
		})
		return true
	})
}
