package web

import (
	"strconv"
	"time"
	"unicode/utf8"

	"weir/pkg/edge"
	"weir/pkg/fields"
	"weir/pkg/media"
	"weir/pkg/webpage"
	"weir/pkg/words"
)

// page is what was fetched, whoever did it. What is not known is "".
type page struct {
	provider, url, title, text  string
	format                      string // of the text
	author, published, language string
	cost                        string // USD, a number in JSON
	latency                     time.Duration
	now                         time.Time
	header                      edge.Header // of the provider's answer
}

// response shapes the answer (spec-gaps, Search and fetch):
//
//	{"provider","url","title","content":{"format","text","length"},"metadata":{"author","published_at","language"},
//	 "usage":{"fetch_cost_usd"},"metrics":{"response_time_ms","upstream_latency_ms"}}
//
// Unknown values are null, but for the text, which may be empty. Lengths are in
// characters.
func (p *page) response(req *request, took time.Duration) *edge.Response {
	text, _ := webpage.Cut(p.text, req.max)
	if p.url == "" {
		p.url = req.url
	}
	b := words.Fill(make([]byte, 0, len(text)+len(text)/16+1024), `{"provider":$,"url":$,"title":$,"content":{"format":$,"text":`, p.provider, p.url, p.title, p.format)
	b = words.Fill(fields.Quote(b, text), `,"length":#},"metadata":{"author":$,"published_at":$,"language":$},"usage":{"fetch_cost_usd":#},"metrics":{"response_time_ms":#,"upstream_latency_ms":#}}`,
		itoa(utf8.RuneCountInString(text)), p.author, p.published, p.language, p.cost, itoa(int(took.Milliseconds())), itoa(int(p.latency.Milliseconds())))
	return media.JSONAnswer(p.header, b)
}

func itoa(n int) string { return strconv.Itoa(n) }
