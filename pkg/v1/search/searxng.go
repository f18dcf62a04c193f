package search

import (
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// searxNGPage is about how many results a page of SearXNG has.
const searxNGPage = 20

// GET /search: q, format=json, categories, language, pageno, time_range day|month|year
// → {results[{title,url,content,publishedDate,score,author,thumbnail}], answers[],
// number_of_results, unresponsive_engines[[name,reason]]}
//
// SearXNG has no time range of a week: the call asks for a month, and older results
// with a date are left out of the answer.
var searxng = service{
	providers: []string{"searxng"}, get: true, paged: true, ignores: fieldFullPage,
	options: []string{"categories", "engines", "safesearch", "enabled_engines", "disabled_engines"},
	build: func(c *call) {
		c.set("q", c.siteQuery())
		c.set("format", "json")
		if c.kind == kindNews {
			c.set("categories", "news")
		}
		if l := c.language; l == "" {
			c.drop(fieldCountry)
		} else {
			if l == c.lang() && c.country != "" {
				l += "-" + c.country
			}
			c.set("language", l)
		}
		c.skip = c.offset % searxNGPage
		if page := c.offset / searxNGPage; page > 0 {
			c.setInt("pageno", page+1)
		}
		if since := c.timeRange(); since == "week" {
			c.set("time_range", "month")
		} else {
			c.set("time_range", since)
		}
	},
	read: func(_ *call, r *response, answer gjson.Result) bool {
		jsonvalue.Each(answer.Get("unresponsive_engines"), func(_, v gjson.Result) bool {
			r.problems = append(r.problems, problem{truncate(v.Get("0").Str, 60), truncate(v.Get("1").Str, 200)})
			return len(r.problems) < 20
		})
		r.answer = jsonvalue.Text(answer, "answers.0", "answers.0.answer")
		if n := answer.Get("number_of_results"); n.Num > 0 {
			r.total = strconv.FormatInt(n.Int(), 10)
		}
		return r.readFirst(answer, func(v gjson.Result) result {
			return result{
				title: jsonvalue.Text(v, "title"), url: jsonvalue.Text(v, "url"), snippet: jsonvalue.Text(v, "content"),
				score: jsonvalue.Number(v, "score"), published: jsonvalue.Text(v, "publishedDate"),
				image: jsonvalue.Text(v, "thumbnail", "img_src"), author: jsonvalue.Text(v, "author"),
			}
		}, "results")
	},
}
