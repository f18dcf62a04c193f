package web

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"weir/pkg/endpoint"
	"weir/pkg/wire/htmlmd"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/words"
)

// The most of what a page says of itself, in characters: max_characters is for
// its text.
const (
	maxTitle    = 500
	maxAuthor   = 200
	maxLanguage = 35
)

// page is what was fetched, whoever did it. What is not known is "".
type page struct {
	provider, url, title, text  string
	format                      string // of the text
	author, published, language string
	cost                        string // USD, a number in JSON
	latency                     time.Duration
	now                         time.Time
	header                      httpmsg.Header // of the provider's answer
}

// response shapes the answer (docs/reference/spec-gaps.md, 5):
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
	b := words.Fill(make([]byte, 0, len(text)+len(text)/16+1024), `{"provider":$,"url":$,"title":$,"content":{"format":$,"text":`, p.provider, p.url, title, p.format)
	b = words.Fill(jsonscan.Quote(b, text), `,"length":#},"metadata":{"author":$,"published_at":$,"language":$},"usage":{"fetch_cost_usd":#},"metrics":{"response_time_ms":#,"upstream_latency_ms":#}}`,
		itoa(utf8.RuneCountInString(text)), author, p.published, language, p.cost, itoa(int(took.Milliseconds())), itoa(int(p.latency.Milliseconds())))
	return endpoint.JSONAnswer(p.header, b)
}

func itoa(n int) string { return strconv.Itoa(n) }
