package search

import (
	"strings"

	"github.com/tidwall/gjson"
)

// you is GET /v1/search of You.com:
//
//	query, count ≤ 100, offset 0–9 (pages), freshness, country, language, include_domains, exclude_domains, livecrawl, livecrawl_formats
//	→ {results{web[{title,url,description,snippets[],page_age,thumbnail_url,favicon_url,authors[],contents{markdown,html}}], news[]}}
var you = shape{
	providers: []string{"you"}, max: 100, own: true,
	options: []string{"safesearch", "freshness"},
	build: func(a *ask) {
		a.param("query", a.query)
		a.param("count", itoa(a.want))
		if page := a.page(); page > 0 {
			a.param("offset", itoa(min(page, 9)))
			if page > 9 {
				a.drop("offset")
			}
		}
		if a.since != anyTime {
			a.param("freshness", a.since)
		}
		if a.country != "" {
			a.param("country", a.country)
		}
		if a.language != "" {
			a.param("language", strings.ToUpper(a.language))
		}
		if len(a.include) > 0 {
			a.param("include_domains", strings.Join(a.include, ","))
		}
		if len(a.exclude) > 0 {
			a.param("exclude_domains", strings.Join(a.exclude, ","))
		}
		if a.full {
			a.param("livecrawl", a.kind)
			a.param("livecrawl_formats", a.pageFormat())
		}
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		all := raw.Get("results")
		if !all.IsObject() {
			return errShape
		}
		all.Get(a.kind).ForEach(func(_, v gjson.Result) bool {
			format := a.pageFormat()
			f.results = append(f.results, hit{
				title: v.Get("title").Str, url: v.Get("url").Str, snippet: oneOf(v, "snippets.0", "description"), published: v.Get("page_age").Str,
				favicon: v.Get("favicon_url").Str, image: v.Get("thumbnail_url").Str, author: v.Get("authors.0").Str,
				content: v.Get("contents." + format).Str, format: format,
			})
			return true
		})
		return nil
	},
}

// pageFormat is the format of whole pages where there are two of them.
func (a *ask) pageFormat() string {
	if a.format == "html" {
		return "html"
	}
	return "markdown"
}

func lower(s string) string { return strings.ToLower(s) }
