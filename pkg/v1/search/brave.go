package search

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// GET /web/search and /news/search: q, count ≤ 20, offset ≤ 9 (pages), country, search_lang, freshness
// → {web{results[{title,url,description,page_age,age,language,meta_url,profile,thumbnail}]}} and {results[…]}
var brave = service{
	providers: []string{"brave"}, get: true, paged: true, ignores: fieldFullPage,
	options: []string{"safesearch", "extra_snippets", "ui_lang", "units", "goggles_id", "spellcheck", "freshness"},
	build: func(c *call) {
		c.set("q", c.siteQuery())
		c.setInt("count", c.want)
		c.setPageIndex("offset")
		c.setJSON("text_decorations", "false")
		c.set("country", c.country)
		c.set("search_lang", braveLanguage(c.lang(), strings.ToLower(c.language)))
		c.set("freshness", c.timeRangeLetter("p"))
	},
	read: func(c *call, r *response, answer gjson.Result) bool {
		ok := r.readFirst(answer, func(v gjson.Result) result {
			return result{
				title: jsonvalue.Text(v, "title"), url: jsonvalue.Text(v, "url"),
				snippet:   jsonvalue.Text(v, "description", "extra_snippets.0"),
				published: jsonvalue.Text(v, "page_age", "age"), favicon: jsonvalue.Text(v, "meta_url.favicon", "profile.img"),
				image:  jsonvalue.Text(v, "thumbnail.original", "thumbnail.src"),
				author: jsonvalue.Text(v, "article.author.0.name"), language: jsonvalue.Text(v, "language"),
			}
		}, c.kind+".results", "results")
		return ok || answer.Get("query").IsObject() // no results
	},
}

// braveLanguage returns Brave's code of a language; tag is the whole language tag in
// lower case.
func braveLanguage(lang, tag string) string {
	switch {
	case lang == "ja":
		return "jp"
	case lang == "zh":
		if strings.HasPrefix(tag, "zh-hant") || tag == "zh-tw" || tag == "zh-hk" {
			return "zh-hant"
		}
		return "zh-hans"
	case lang == "pt" && tag != "pt-pt":
		return "pt-br"
	case tag == "pt-pt", tag == "en-gb":
		return tag
	}
	return lang
}
