package search

import (
	"strings"

	"github.com/tidwall/gjson"
)

// geminiGrounding is POST /models/{model}:generateContent with the tool
// googleSearch:
//
//	{contents, tools[{googleSearch{}}]}
//	→ {candidates[{content{parts[{text}]}, groundingMetadata{webSearchQueries[], groundingChunks[{web{uri,title}}], groundingSupports[{segment{text}, groundingChunkIndices[]}]}}]}
//
// The addresses are Google's redirects; the title names the site.
var geminiGrounding = shape{
	providers: []string{"gemini", "vertex"}, max: 20, chat: true, model: "gemini-2.5-flash", endpoint: "chat",
	build: func(a *ask) {
		text := a.prompt()
		if len(a.include)+len(a.exclude) > 0 {
			text += a.sites()[len(a.query):]
		}
		a.body["contents"] = []any{map[string]any{"role": "user", "parts": []any{map[string]any{"text": text}}}}
		a.body["tools"] = []any{map[string]any{"googleSearch": map[string]any{}}}
		a.body["generationConfig"] = map[string]any{"maxOutputTokens": 2 * maxChatTokens}
		a.without("country", "content_options.full_page")
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		c := raw.Get("candidates.0")
		if !c.IsObject() {
			return errShape
		}
		var text strings.Builder
		c.Get("content.parts").ForEach(func(_, p gjson.Result) bool {
			if !p.Get("thought").Bool() {
				text.WriteString(p.Get("text").Str)
			}
			return true
		})
		f.answer = text.String()
		m := c.Get("groundingMetadata")
		f.queries = len(m.Get("webSearchQueries").Array())
		m.Get("groundingChunks").ForEach(func(_, v gjson.Result) bool {
			h := hit{title: v.Get("web.title").Str, url: v.Get("web.uri").Str}
			if strings.HasPrefix(h.url, "https://vertexaisearch.cloud.google.com/") && isDomain(strings.ToLower(h.title)) {
				h.host = strings.ToLower(h.title)
			}
			f.results = append(f.results, h)
			return true
		})
		m.Get("groundingSupports").ForEach(func(_, s gjson.Result) bool {
			s.Get("groundingChunkIndices").ForEach(func(_, i gjson.Result) bool {
				if n := i.Int(); n >= 0 && n < int64(len(f.results)) && f.results[n].snippet == "" {
					f.results[n].snippet = s.Get("segment.text").Str
				}
				return true
			})
			return true
		})
		return nil
	},
}
