package search

import (
	"strings"

	"github.com/tidwall/gjson"
)

// brave is GET /web/search and GET /news/search:
//
//	q, count ≤ 20, offset ≤ 9 (pages), country, search_lang, freshness
//	→ {web{results[{title,url,description,page_age,age,language,meta_url,profile,thumbnail}]}} and {results[…]}
var brave = shape{
	providers: []string{"brave"}, max: 20, own: true,
	options: []string{"safesearch", "extra_snippets", "ui_lang", "units", "goggles_id", "spellcheck", "freshness"},
	build: func(a *ask) {
		if a.kind == kindNews {
			a.endpoint = "news"
		}
		a.param("q", a.sites())
		a.param("count", itoa(a.want))
		if page := a.page(); page > 0 {
			a.param("offset", itoa(min(page, 9)))
			if page > 9 {
				a.drop("offset")
			}
		}
		a.param("text_decorations", "false")
		if a.country != "" {
			a.param("country", a.country)
		}
		if a.language != "" {
			a.param("search_lang", braveLanguage(a.request))
		}
		if a.since != anyTime {
			a.param("freshness", "p"+a.since[:1])
		}
		a.without("content_options.full_page")
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		list := raw.Get("web.results")
		if a.kind == kindNews {
			list = raw.Get("results")
		}
		if !list.IsArray() {
			if raw.Get("query").IsObject() || raw.Get("type").Str == "search" || raw.Get("type").Str == "news" {
				return nil // a search without results has no list
			}
			return errShape
		}
		list.ForEach(func(_, v gjson.Result) bool {
			f.results = append(f.results, hit{
				title: v.Get("title").Str, url: v.Get("url").Str, snippet: oneOf(v, "description", "extra_snippets.0"),
				published: oneOf(v, "page_age", "age"), favicon: oneOf(v, "meta_url.favicon", "profile.img"), image: oneOf(v, "thumbnail.original", "thumbnail.src"),
				author: v.Get("article.author.0.name").Str, language: v.Get("language").Str,
			})
			return true
		})
		return nil
	},
}

// braveLanguage gives Brave's code of a language.
func braveLanguage(r *request) string {
	tag := strings.ToLower(r.language)
	switch r.lang() {
	case "ja":
		return "jp"
	case "zh":
		if strings.HasPrefix(tag, "zh-hant") || tag == "zh-tw" || tag == "zh-hk" {
			return "zh-hant"
		}
		return "zh-hans"
	case "pt":
		if tag == "pt-pt" {
			return "pt-pt"
		}
		return "pt-br"
	case "en":
		if tag == "en-gb" {
			return "en-gb"
		}
	}
	return r.lang()
}
