package web

import (
	"strings"
	"time"
	"unicode/utf8"

	"weir/pkg/endpoint"
	"weir/pkg/wire/htmlmd"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonvalue"
)

// The most of what a page says of itself, in characters: max_characters is for
// its text.
const (
	maxTitle    = 500
	maxAuthor   = 200
	maxLanguage = 35
)

// page is a fetched page. Unknown values are "".
type page struct {
	provider, url, title, text  string
	format                      string // of the text
	author, published, language string
	cost                        string // USD, a number in JSON
	latency                     time.Duration
	now                         time.Time
	header                      httpmsg.Header // of the provider's answer
}

// response shapes the answer (docs/reference/spec.md, 4.8):
//
//	{"provider","url","title","content":{"format","text","length"},"metadata":{"author","published_at","language"},
//	 "usage":{"fetch_cost_usd"},"metrics":{"response_time_ms","upstream_latency_ms"}}
//
// Unknown values are null, but for the text, which may be empty. Lengths are in
// characters.
func (p *page) response(req *request, took time.Duration) *httpmsg.Response {
	text, _ := htmlmd.Cut(p.text, req.max)
	if !strings.HasPrefix(p.url, "https://") && !strings.HasPrefix(p.url, "http://") || len(p.url) > maxURL {
		p.url = req.url // providers take theirs from what the page says of itself
	}
	title, _ := htmlmd.Cut(p.title, maxTitle)
	author, _ := htmlmd.Cut(p.author, maxAuthor)
	language, _ := htmlmd.Cut(p.language, maxLanguage)
	w := make(jsonvalue.Writer, 0, len(text)+len(text)/16+1024)
	w.Object("")
	w.Text("provider", p.provider)
	w.Text("url", p.url)
	w.Text("title", title)
	w.Object("content")
	w.Text("format", p.format)
	w.String("text", text)
	w.Int("length", utf8.RuneCountInString(text))
	w.End('}')
	w.Object("metadata")
	w.Text("author", author)
	w.Text("published_at", p.published)
	w.Text("language", language)
	w.End('}')
	w.Object("usage")
	w.Raw("fetch_cost_usd", p.cost)
	w.End('}')
	w.Object("metrics")
	w.Int("response_time_ms", int(took.Milliseconds()))
	w.Int("upstream_latency_ms", int(p.latency.Milliseconds()))
	w.End('}')
	w.End('}')
	return endpoint.JSONAnswer(p.header, w)
}
