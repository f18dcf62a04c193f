package search

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonvalue"
)

// POST s.jina.ai {q, num, gl, hl, page}, headers X-Site and X-Respond-With
// → {code, status, data[{title,url,description,content,date,favicon}]}
var jina = service{
	providers: []string{"jina-reader"}, paged: true, ignores: fieldTimeRange,
	formats: []string{"markdown", "text", "html"},
	options: []string{"location"},
	build: func(c *call) {
		c.set("q", c.siteQuery())
		c.setInt("num", c.want)
		c.setPage("page")
		c.set("gl", strings.ToLower(c.country))
		c.set("hl", c.lang())
		if len(c.include) == 1 && len(c.exclude) == 0 {
			c.set("q", c.query)
			c.header.Add("x-site", "https://"+c.include[0])
		}
		content := httpmsg.Field{Name: "x-respond-with", Value: "no-content"}
		if c.full {
			content = httpmsg.Field{Name: "x-return-format", Value: c.content}
		}
		c.header = append(c.header, content)
	},
	read: func(_ *call, r *response, answer gjson.Result) bool {
		return r.readFirst(answer, func(v gjson.Result) result {
			return result{
				title: jsonvalue.Text(v, "title"), url: jsonvalue.Text(v, "url"),
				snippet:   jsonvalue.Text(v, "description", "content"),
				published: jsonvalue.Text(v, "date", "publishedTime"), favicon: jsonvalue.Text(v, "favicon"),
				content: jsonvalue.Text(v, "content", "text", "html"),
			}
		}, "data")
	},
}
