package web

import (
	"strconv"
	"time"
	"unicode/utf8"

	"weir/pkg/edge"
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
	b := make([]byte, 0, len(text)+len(text)/16+1024)
	b = words.Text(b, `{"provider":`, p.provider)
	b = words.Text(b, `,"url":`, p.url)
	b = words.Text(b, `,"title":`, p.title)
	b = words.Text(b, `,"content":{"format":`, p.format)
	if b = append(b, `,"text":`...); text == "" {
		b = append(b, `""`...)
	} else {
		b = words.Text(b, "", text)
	}
	b = words.JSON(b, `,"length":`, itoa(utf8.RuneCountInString(text)))
	b = words.Text(b, `},"metadata":{"author":`, p.author)
	b = words.Text(b, `,"published_at":`, p.published)
	b = words.Text(b, `,"language":`, p.language)
	b = words.JSON(b, `},"usage":{"fetch_cost_usd":`, p.cost)
	b = words.JSON(b, `},"metrics":{"response_time_ms":`, itoa(int(took.Milliseconds())))
	b = words.JSON(b, `,"upstream_latency_ms":`, itoa(int(p.latency.Milliseconds())))
	return media.JSONAnswer(p.header, append(b, "}}"...))
}

func itoa(n int) string { return strconv.Itoa(n) }
