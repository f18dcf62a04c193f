package search

import "github.com/tidwall/gjson"

// exa is POST /search:
//
//	{query, numResults ≤ 100, category, includeDomains[], excludeDomains[], startPublishedDate, userLocation, contents{highlights,text}}
//	→ {results[{title,url,publishedDate,score,author,image,favicon,text,highlights[],summary}], costDollars{total}}
var exa = shape{
	providers: []string{"exa"}, max: 100,
	options: []string{"type", "category", "endPublishedDate", "startCrawlDate", "endCrawlDate", "includeText", "excludeText", "moderation"},
	build: func(a *ask) {
		b := a.body
		b["query"], b["numResults"], b["type"] = a.query, a.want, "auto"
		if a.kind == kindNews {
			b["category"] = "news"
		}
		if a.country != "" {
			b["userLocation"] = a.country
		}
		if t, ok := a.from(); ok {
			b["startPublishedDate"] = t.Format("2006-01-02T15:04:05.000Z")
		}
		a.lists("includeDomains", "excludeDomains")
		contents := map[string]any{"highlights": true}
		if a.full {
			text := map[string]any{"includeHtmlTags": a.format == "html"}
			if a.maxChars > 0 {
				text["maxCharacters"] = a.maxChars
			}
			contents["text"] = text
		}
		b["contents"] = contents
		a.without("language")
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		list := raw.Get("results")
		if !list.IsArray() {
			return errShape
		}
		f.cost = number(raw.Get("costDollars.total"))
		list.ForEach(func(_, v gjson.Result) bool {
			h := hit{
				title: v.Get("title").Str, url: v.Get("url").Str, snippet: oneOf(v, "highlights.0", "summary", "text"), score: number(v.Get("score")),
				published: v.Get("publishedDate").Str, favicon: v.Get("favicon").Str, image: v.Get("image").Str, author: v.Get("author").Str,
				content: v.Get("text").Str, format: "text",
			}
			if a.format == "html" {
				h.format = "html"
			}
			f.results = append(f.results, h)
			return true
		})
		return nil
	},
}
