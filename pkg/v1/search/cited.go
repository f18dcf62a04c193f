package search

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/words"
)

// maxCited is how many pages of one answer are looked at.
const maxCited = 200

// cite notes a page that an answer cites, once.
func (f *found) cite(h hit) {
	h.url = strings.TrimSuffix(strings.TrimSuffix(h.url, "?utm_source=openai"), "&utm_source=openai")
	for i := range f.results {
		r := &f.results[i]
		if r.url != h.url {
			continue
		}
		if r.title == "" {
			r.title = h.title
		}
		if r.snippet == "" {
			r.snippet = h.snippet
		}
		if r.published == "" {
			r.published = h.published
		}
		return
	}
	if len(f.results) < maxCited {
		f.results = append(f.results, h)
	}
}

// around gives the paragraph of text that ends where a citation begins; at
// counts characters.
func around(text string, at int64) string {
	runes := 0
	end := len(text)
	for i := range text {
		if int64(runes) == at {
			end = i
			break
		}
		runes++
	}
	before := strings.TrimRight(text[:end], " ([\n")
	if i := strings.LastIndexByte(before, '\n'); i >= 0 {
		before = before[i+1:]
	}
	// What was said before another citation is that one's.
	if i := strings.LastIndex(before, "))"); i >= 0 {
		before = before[i+2:]
	}
	return strings.TrimLeft(strings.TrimSpace(before), "-*• .,;")
}

// annotations reads url_citation entries: flat as in Responses, or under their
// own name as in chat completions.
func (f *found) annotations(text string, list gjson.Result) {
	words.Each(list, func(_, v gjson.Result) bool {
		if v.Get("type").Str != "url_citation" {
			return true
		}
		if inner := v.Get("url_citation"); inner.IsObject() {
			v = inner
		}
		h := hit{title: v.Get("title").Str, url: v.Get("url").Str, snippet: v.Get("content").Str}
		if at := v.Get("start_index"); h.snippet == "" && at.Type == gjson.Number {
			h.snippet = around(text, at.Int())
		}
		f.cite(h)
		return true
	})
}

// readResponses reads an answer of Responses.
func readResponses(f *found, raw gjson.Result, _ *ask) bool {
	out := raw.Get("output")
	if !out.IsArray() {
		return false
	}
	var sources []string
	var text []byte
	words.Each(out, func(_, item gjson.Result) bool {
		switch item.Get("type").Str {
		case "web_search_call":
			f.queries++
			words.Each(item.Get("action.sources"), func(_, s gjson.Result) bool {
				sources = append(sources, s.Get("url").Str)
				return true
			})
		case "message":
			words.Each(item.Get("content"), func(_, c gjson.Result) bool {
				if c.Get("type").Str == "output_text" {
					if text != nil {
						text = append(text, '\n')
					}
					text = append(text, c.Get("text").Str...)
					f.annotations(c.Get("text").Str, c.Get("annotations"))
				}
				return true
			})
		}
		return true
	})
	words.Each(raw.Get("citations"), func(_, c gjson.Result) bool {
		sources = append(sources, c.Str)
		return true
	})
	for _, s := range sources {
		f.cite(hit{url: s})
	}
	f.answer = string(text)
	return true
}

// readMessages reads an answer of Anthropic's.
func readMessages(f *found, raw gjson.Result, _ *ask) bool {
	blocks := raw.Get("content")
	if !blocks.IsArray() {
		return false
	}
	f.queries = int(raw.Get("usage.server_tool_use.web_search_requests").Int())
	var text []byte
	words.Each(blocks, func(_, b gjson.Result) bool {
		switch b.Get("type").Str {
		case "web_search_tool_result":
			text = nil // what was written before the search is no answer
			list := b.Get("content")
			if code := list.Get("error_code").Str; code != "" {
				f.problems = append(f.problems, problem{f.provider, cut(code, 100)})
			}
			if list.IsArray() {
				words.Each(list, func(_, v gjson.Result) bool {
					f.cite(hit{title: v.Get("title").Str, url: v.Get("url").Str, published: v.Get("page_age").Str})
					return true
				})
			}
		case "text":
			text = append(text, b.Get("text").Str...)
			words.Each(b.Get("citations"), func(_, c gjson.Result) bool {
				f.cite(hit{title: c.Get("title").Str, url: c.Get("url").Str, snippet: c.Get("cited_text").Str})
				return true
			})
		}
		return true
	})
	f.answer = string(text)
	return true
}

// readGrounding reads an answer of Gemini.
func readGrounding(f *found, raw gjson.Result, _ *ask) bool {
	c := raw.Get("candidates.0")
	if !c.IsObject() {
		return false
	}
	var text []byte
	words.Each(c.Get("content.parts"), func(_, p gjson.Result) bool {
		if !p.Get("thought").Bool() {
			text = append(text, p.Get("text").Str...)
		}
		return true
	})
	f.answer = string(text)
	m := c.Get("groundingMetadata")
	f.queries = len(m.Get("webSearchQueries").Array())
	words.Each(m.Get("groundingChunks"), func(_, v gjson.Result) bool {
		h := hit{title: v.Get("web.title").Str, url: v.Get("web.uri").Str}
		if site := strings.ToLower(h.title); strings.HasPrefix(h.url, "https://vertexaisearch.cloud.google.com/") && isDomain(site) {
			h.host = site
		}
		f.results = append(f.results, h)
		return len(f.results) < maxCited
	})
	words.Each(m.Get("groundingSupports"), func(_, s gjson.Result) bool {
		words.Each(s.Get("groundingChunkIndices"), func(_, i gjson.Result) bool {
			if n := i.Int(); n >= 0 && n < int64(len(f.results)) && f.results[n].snippet == "" {
				f.results[n].snippet = s.Get("segment.text").Str
			}
			return true
		})
		return true
	})
	return true
}
