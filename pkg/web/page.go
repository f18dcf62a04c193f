package web

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"weir/pkg/edge"
	"weir/pkg/media"
	"weir/pkg/webpage"
)

// page is what was fetched, whoever did it. What is not known is "".
type page struct {
	provider, url, title, text  string
	format                      string // of the text
	author, published, language string
	cost                        *float64 // USD
	latency                     time.Duration
	now                         time.Time
	header                      edge.Header // of the provider's answer
}

// The answer. Spec-gaps, Search and fetch; unknown values are null.
type answer struct {
	Provider string   `json:"provider"`
	URL      string   `json:"url"`
	Title    *string  `json:"title"`
	Content  content  `json:"content"`
	Metadata metadata `json:"metadata"`
	Usage    usage    `json:"usage"`
	Metrics  metrics  `json:"metrics"`
}

type content struct {
	Format string `json:"format"`
	Text   string `json:"text"`
	Length int    `json:"length"` // characters
}

type metadata struct {
	Author      *string `json:"author"`
	PublishedAt *string `json:"published_at"`
	Language    *string `json:"language"`
}

type usage struct {
	FetchCost *float64 `json:"fetch_cost_usd"`
}

type metrics struct {
	ResponseTime    int64 `json:"response_time_ms"`
	UpstreamLatency int64 `json:"upstream_latency_ms"`
}

// response shapes the answer.
func (p *page) response(req *request, took time.Duration) *edge.Response {
	text, _ := webpage.Cut(p.text, req.max)
	a := answer{
		Provider: p.provider, URL: p.url, Title: known(p.title),
		Content:  content{Format: p.format, Text: text, Length: utf8.RuneCountInString(text)},
		Metadata: metadata{Author: known(p.author), PublishedAt: known(p.published), Language: known(p.language)},
		Usage:    usage{FetchCost: p.cost},
		Metrics:  metrics{ResponseTime: took.Milliseconds(), UpstreamLatency: p.latency.Milliseconds()},
	}
	if a.URL == "" {
		a.URL = req.url
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a); err != nil {
		return media.JSONAnswer(p.header, []byte("{}")) // only numbers out of range can fail
	}
	return media.JSONAnswer(p.header, bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
