package search

import (
	"github.com/tidwall/gjson"

	"weir/pkg/apierr"
	"weir/pkg/edge"
)

// jina is POST s.jina.ai:
//
//	{q, num, gl, hl, page}, headers X-Site and X-Respond-With → {code, status, data[{title,url,description,content,date,favicon}]}
var jina = shape{
	providers: []string{"jina-reader"}, max: 20, own: true,
	options: []string{"location"},
	build: func(a *ask) {
		b := a.body
		b["q"], b["num"] = a.sites(), a.want
		if len(a.include) == 1 && len(a.exclude) == 0 {
			b["q"] = a.query
			a.header = append(a.header, edge.Field{Name: "x-site", Value: "https://" + a.include[0]})
		}
		if page := a.page(); page > 0 {
			b["page"] = page + 1
		}
		a.places()
		if a.full {
			a.header = append(a.header, edge.Field{Name: "x-return-format", Value: a.format})
		} else {
			a.header = append(a.header, edge.Field{Name: "x-respond-with", Value: "no-content"})
		}
		a.without("search_type", "time_range")
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		if c := raw.Get("code").Int(); c >= 400 {
			return apierr.New(502, "upstream_failed", "the provider could not search")
		}
		list := raw.Get("data")
		if !list.IsArray() {
			return errShape
		}
		list.ForEach(func(_, v gjson.Result) bool {
			h := hit{
				title: v.Get("title").Str, url: v.Get("url").Str, snippet: oneOf(v, "description", "content"), published: oneOf(v, "date", "publishedTime"),
				favicon: v.Get("favicon").Str, content: oneOf(v, "content", "text", "html"), format: a.format,
			}
			f.results = append(f.results, h)
			return true
		})
		return nil
	},
}
