package search

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /search and /news {q, num, page, gl, hl, tbs}
// → {organic|news[{title,link,snippet,date,position,imageUrl,source}], answerBox}
var serper = service{
	providers: []string{"serper"}, paged: true, ignores: fieldFullPage,
	options: []string{"location", "autocorrect", "tbs"},
	build: func(c *call) {
		c.set("q", c.siteQuery())
		c.setInt("num", c.want)
		c.setPage("page")
		c.set("gl", strings.ToLower(c.country))
		c.set("hl", c.lang())
		c.set("tbs", c.timeRangeLetter("qdr:"))
	},
	read: func(_ *call, r *response, answer gjson.Result) bool {
		r.answer = jsonvalue.Text(answer, "answerBox.answer", "answerBox.snippet")
		ok := r.readFirst(answer, func(v gjson.Result) result {
			return result{
				title: jsonvalue.Text(v, "title"), url: jsonvalue.Text(v, "link"), snippet: jsonvalue.Text(v, "snippet"),
				published: jsonvalue.Text(v, "date"), image: jsonvalue.Text(v, "imageUrl"), author: jsonvalue.Text(v, "source"),
			}
		}, "organic", "news")
		return ok || answer.Get("searchParameters").IsObject() // no results
	},
}
