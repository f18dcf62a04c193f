package search

import "github.com/tidwall/gjson"

// serper is POST /search and POST /news:
//
//	{q, num, page, gl, hl, tbs} → {organic|news[{title,link,snippet,date,position,imageUrl,source}], answerBox}
var serper = shape{
	providers: []string{"serper"}, max: 100, own: true,
	options: []string{"location", "autocorrect", "tbs"},
	build: func(a *ask) {
		if a.kind == kindNews {
			a.endpoint = "news"
		}
		b := a.body
		b["q"], b["num"] = a.sites(), a.want
		if page := a.page(); page > 0 {
			b["page"] = page + 1
		}
		a.places()
		if tbs := a.google(); tbs != "" {
			b["tbs"] = tbs
		}
		a.without("content_options.full_page")
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		name := "organic"
		if a.kind == kindNews {
			name = "news"
		}
		list := raw.Get(name)
		if !list.IsArray() {
			if raw.Get("searchParameters").IsObject() {
				return nil
			}
			return errShape
		}
		f.answer = oneOf(raw, "answerBox.answer", "answerBox.snippet")
		list.ForEach(func(_, v gjson.Result) bool {
			h := hit{title: v.Get("title").Str, url: v.Get("link").Str, snippet: v.Get("snippet").Str, published: v.Get("date").Str, image: v.Get("imageUrl").Str}
			if a.kind == kindNews {
				h.author = v.Get("source").Str
			}
			f.results = append(f.results, h)
			return true
		})
		return nil
	},
}

// places sets country and language under Google's names.
func (a *ask) places() {
	if a.country != "" {
		a.body["gl"] = lower(a.country)
	}
	if a.language != "" {
		a.body["hl"] = a.lang()
	}
}
