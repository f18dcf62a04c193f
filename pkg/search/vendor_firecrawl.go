package search

import (
	"github.com/tidwall/gjson"

	"weir/pkg/apierr"
)

// firecrawl is POST /v2/search:
//
//	{query, limit ≤ 100, sources[], tbs, country, timeout, scrapeOptions} → {success, data{web[{title,url,description,position,markdown}], news[{…,snippet,date,imageUrl}]}}
var firecrawl = shape{
	providers: []string{"firecrawl"}, max: 100,
	options: []string{"location", "categories", "ignoreInvalidURLs", "tbs"},
	build: func(a *ask) {
		b := a.body
		b["query"], b["limit"], b["sources"], b["timeout"] = a.sites(), a.want, []string{a.kind}, 9000
		if a.country != "" {
			b["country"] = a.country
		}
		if tbs := a.google(); tbs != "" {
			b["tbs"] = tbs
		}
		if a.full {
			b["scrapeOptions"] = map[string]any{"formats": []string{a.pageFormat()}, "onlyMainContent": true}
		}
		a.without("language")
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		if ok := raw.Get("success"); ok.Exists() && !ok.Bool() {
			return apierr.New(502, "upstream_failed", "the provider could not search")
		}
		data := raw.Get("data")
		list := data.Get(a.kind)
		if data.IsArray() { // the first version of the interface
			list = data
		} else if !data.IsObject() {
			return errShape
		}
		list.ForEach(func(_, v gjson.Result) bool {
			format := a.pageFormat()
			f.results = append(f.results, hit{
				title: oneOf(v, "title", "metadata.title"), url: oneOf(v, "url", "metadata.sourceURL"), snippet: oneOf(v, "description", "snippet", "metadata.description"),
				published: v.Get("date").Str, image: v.Get("imageUrl").Str, language: v.Get("metadata.language").Str,
				content: v.Get(format).Str, format: format,
			})
			return true
		})
		return nil
	},
}
