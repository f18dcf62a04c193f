package search

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/wire/jsonvalue"
)

// POST /models/{model}:generateContent with the tool googleSearch: {contents, tools[{googleSearch{}}]}
// → {candidates[{content{parts[{text}]}, groundingMetadata{webSearchQueries[], groundingChunks[{web{uri,title}}],
//
//	groundingSupports[{segment{text}, groundingChunkIndices[]}]}}]}
//
// The URLs are Google's redirects; the title names the site.
var gemini = service{
	providers: []string{"gemini", "vertex"}, ignores: fieldCountry | fieldFullPage,
	chat: &chatModel{model: "gemini-2.5-flash", max: 20, dialect: llm.Gemini},
	build: func(c *call) {
		c.setJSON("contents", `[{"role":"user","parts":[{"text":`+jsonvalue.Quote(c.prompt()+c.siteOperators())+`}]}]`)
		c.setJSON("tools", `[{"googleSearch":{}}]`)
		c.setJSON("generationConfig", `{"maxOutputTokens":4096}`)
	},
	read: func(_ *call, r *response, answer gjson.Result) bool {
		candidate := answer.Get("candidates.0")
		if !candidate.IsObject() {
			return false
		}
		var text []byte
		jsonvalue.Each(candidate.Get("content.parts"), func(_, p gjson.Result) bool {
			if !p.Get("thought").Bool() {
				text = append(text, p.Get("text").Str...)
			}
			return true
		})
		r.answer = string(text)
		grounding := candidate.Get("groundingMetadata")
		r.queries = len(grounding.Get("webSearchQueries").Array())
		jsonvalue.Each(grounding.Get("groundingChunks"), func(_, v gjson.Result) bool {
			h := result{title: v.Get("web.title").Str, url: v.Get("web.uri").Str}
			if site := strings.ToLower(h.title); strings.HasPrefix(h.url, "https://vertexaisearch.cloud.google.com/") &&
				isDomain(site) {
				h.host = site
			}
			r.results = append(r.results, h)
			return len(r.results) < maxCited
		})
		jsonvalue.Each(grounding.Get("groundingSupports"), func(_, s gjson.Result) bool {
			jsonvalue.Each(s.Get("groundingChunkIndices"), func(_, i gjson.Result) bool {
				if n := i.Int(); n >= 0 && n < int64(len(r.results)) && r.results[n].snippet == "" {
					r.results[n].snippet = s.Get("segment.text").Str
				}
				return true
			})
			return true
		})
		return true
	},
}
