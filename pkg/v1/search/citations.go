package search

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// maxCited is how many cited pages of one answer are read.
const maxCited = 200

// cite adds a page that an answer cites. A page that is cited again completes the
// first entry.
func (r *response) cite(h result) {
	h.url = strings.TrimSuffix(strings.TrimSuffix(h.url, "?utm_source=openai"), "&utm_source=openai")
	for i := range r.results {
		first := &r.results[i]
		if first.url != h.url {
			continue
		}
		first.title = cmp.Or(first.title, h.title)
		first.snippet = cmp.Or(first.snippet, h.snippet)
		first.published = cmp.Or(first.published, h.published)
		return
	}
	if len(r.results) < maxCited {
		r.results = append(r.results, h)
	}
}

// textBefore returns the paragraph of text that ends where a citation begins; at
// counts characters.
func textBefore(text string, at int64) string {
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
	// The text before another citation belongs to that citation.
	if i := strings.LastIndex(before, "))"); i >= 0 {
		before = before[i+2:]
	}
	return strings.TrimLeft(strings.TrimSpace(before), "-*• .,;")
}

// readAnnotations reads url_citation entries: flat as in Responses, or under
// "url_citation" as in chat completions.
func (r *response) readAnnotations(text string, list gjson.Result) {
	jsonvalue.Each(list, func(_, v gjson.Result) bool {
		if v.Get("type").Str != "url_citation" {
			return true
		}
		if inner := v.Get("url_citation"); inner.IsObject() {
			v = inner
		}
		h := result{title: v.Get("title").Str, url: v.Get("url").Str, snippet: v.Get("content").Str}
		if at := v.Get("start_index"); h.snippet == "" && at.Type == gjson.Number {
			h.snippet = textBefore(text, at.Int())
		}
		r.cite(h)
		return true
	})
}
