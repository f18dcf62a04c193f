package search

import "github.com/tidwall/gjson"

// searxPage is about how many results a page of SearXNG has.
const searxPage = 20

// searxng is GET /search:
//
//	q, format=json, categories, language, pageno, time_range day|month|year
//	→ {results[{title,url,content,publishedDate,score,author,thumbnail}], answers[], number_of_results, unresponsive_engines[[name,reason]]}
//
// It has no week: a month is asked for, and what is known to be older left out.
var searxng = shape{
	providers: []string{"searxng"}, max: maxResults, own: true,
	options: []string{"categories", "engines", "safesearch", "enabled_engines", "disabled_engines"},
	build: func(a *ask) {
		a.param("q", a.sites())
		a.param("format", "json")
		if a.kind == kindNews {
			a.param("categories", "news")
		}
		if a.language != "" {
			l := a.language
			if l == a.lang() && a.country != "" {
				l += "-" + a.country
			}
			a.param("language", l)
		} else {
			a.without("country")
		}
		page := a.offset / searxPage
		a.skip = a.offset % searxPage
		if page > 0 {
			a.param("pageno", itoa(page+1))
		}
		switch a.since {
		case "day", "month", "year":
			a.param("time_range", a.since)
		case "week":
			a.param("time_range", "month")
		}
		a.without("content_options.full_page")
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		list := raw.Get("results")
		if !list.IsArray() {
			return errShape
		}
		if n := raw.Get("number_of_results").Int(); n > 0 {
			f.total = &n
		}
		f.answer = oneOf(raw, "answers.0", "answers.0.answer")
		raw.Get("unresponsive_engines").ForEach(func(_, v gjson.Result) bool {
			f.problems = append(f.problems, problem{Provider: cut(v.Get("0").Str, 60), Message: cut(v.Get("1").Str, 200)})
			return len(f.problems) < 20
		})
		list.ForEach(func(_, v gjson.Result) bool {
			f.results = append(f.results, hit{
				title: v.Get("title").Str, url: v.Get("url").Str, snippet: v.Get("content").Str, score: number(v.Get("score")),
				published: v.Get("publishedDate").Str, image: oneOf(v, "thumbnail", "img_src"), author: v.Get("author").Str,
			})
			return true
		})
		return nil
	},
}
