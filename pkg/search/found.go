package search

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/edge"
	"weir/pkg/webpage"
)

const maxSnippet = 1000 // characters

// found is what a provider answered. What it did not say is "".
type found struct {
	provider string
	results  []hit
	answer   string
	queries  int
	cost     *float64 // USD
	total    *int64
	problems []problem
	latency  time.Duration
	header   edge.Header
}

// hit is one result as it was read. Texts may have tags in them.
type hit struct {
	title, url, snippet string
	host                string // where the address does not tell the site
	score               *float64
	published           string
	favicon, image      string
	author, language    string
	content, format     string // of the whole page
}

// The answer. Spec-gaps, Search and fetch; unknown values are null.
type answer struct {
	Provider string    `json:"provider"`
	Query    string    `json:"query"`
	Results  []result  `json:"results"`
	Answer   *string   `json:"answer"`
	Usage    usage     `json:"usage"`
	Metrics  metrics   `json:"metrics"`
	Errors   []problem `json:"errors"`
}

type result struct {
	Title       *string  `json:"title"`
	URL         string   `json:"url"`
	DisplayURL  string   `json:"display_url"`
	Snippet     *string  `json:"snippet"`
	Position    int      `json:"position"`
	Score       *float64 `json:"score"`
	PublishedAt *string  `json:"published_at"`
	FaviconURL  *string  `json:"favicon_url"`
	Content     *content `json:"content"`
	Metadata    metadata `json:"metadata"`
	Citation    citation `json:"citation"`
}

type content struct {
	Format string `json:"format"`
	Text   string `json:"text"`
	Length int    `json:"length"` // characters
}

type metadata struct {
	Author     *string `json:"author"`
	Language   *string `json:"language"`
	SourceType *string `json:"source_type"`
	ImageURL   *string `json:"image_url"`
}

type citation struct {
	Provider    string `json:"provider"`
	RetrievedAt string `json:"retrieved_at"`
	Rank        int    `json:"rank"`
}

type usage struct {
	QueriesUsed int      `json:"queries_used"`
	SearchCost  *float64 `json:"search_cost_usd"`
}

type metrics struct {
	ResponseTime    int64  `json:"response_time_ms"`
	UpstreamLatency int64  `json:"upstream_latency_ms"`
	TotalResults    *int64 `json:"total_results_available"`
}

// problem is a part of a search that failed while the rest did not.
type problem struct {
	Provider string `json:"provider"`
	Message  string `json:"message"`
}

// write shapes the answer. Results outside of the domain filter are left out
// whatever the provider made of it, and so are those without an address.
func (f *found) write(a *ask, took time.Duration) []byte {
	out := answer{
		Provider: f.provider, Query: a.query, Results: []result{}, Answer: known(strings.TrimSpace(f.answer)),
		Usage:   usage{QueriesUsed: max(1, f.queries), SearchCost: f.cost},
		Metrics: metrics{ResponseTime: took.Milliseconds(), UpstreamLatency: f.latency.Milliseconds(), TotalResults: f.total},
		Errors:  f.problems,
	}
	if out.Errors == nil {
		out.Errors = []problem{}
	}
	since, timed := a.from()
	skip := a.skip
	for i := range f.results {
		h := &f.results[i]
		site := h.site()
		published := webpage.Date(h.published, a.now)
		switch {
		case site == "" || !a.wanted(site):
			continue
		case timed && published != "" && published[:10] < since.Format(time.DateOnly):
			continue
		case skip > 0:
			skip--
			continue
		case len(out.Results) == a.max:
		default:
			out.Results = append(out.Results, h.result(f, a, len(out.Results)+1, published))
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return []byte("{}") // no number out of range gets here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (h *hit) result(f *found, a *ask, n int, published string) result {
	r := result{
		Title: known(cut(webpage.Plain(h.title), 500)), URL: h.url, DisplayURL: display(h.url), Position: a.offset + n,
		Score: finite(h.score), PublishedAt: known(published), FaviconURL: address(h.favicon),
		Metadata: metadata{Author: known(webpage.Plain(h.author)), Language: known(h.language), SourceType: known(a.kind), ImageURL: address(h.image)},
		Citation: citation{Provider: f.provider, RetrievedAt: a.now.UTC().Format("2006-01-02T15:04:05Z"), Rank: a.offset + n},
	}
	if h.host != "" {
		r.DisplayURL = h.host
	}
	if a.snippet {
		r.Snippet = known(cut(webpage.Plain(h.snippet), maxSnippet))
	}
	if a.full && h.content != "" {
		text, _ := webpage.Cut(h.content, a.maxChars)
		r.Content = &content{Format: h.format, Text: text, Length: utf8.RuneCountInString(text)}
	}
	return r
}

// site gives the host of a result, "" when its address is none of the web.
func (h *hit) site() string {
	rest, ok := strings.CutPrefix(h.url, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(h.url, "http://"); !ok {
			return ""
		}
	}
	if h.host != "" {
		return strings.ToLower(h.host)
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	rest, _, _ = strings.Cut(rest, ":")
	return strings.ToLower(rest)
}

// wanted applies the domain filter to a host.
func (r *request) wanted(host string) bool {
	of := func(list []string) bool {
		for _, d := range list {
			if host == d || strings.HasSuffix(host, d) && host[len(host)-len(d)-1] == '.' {
				return true
			}
		}
		return false
	}
	return !of(r.exclude) && (len(r.include) == 0 || of(r.include))
}

// display gives an address as people read it.
func display(u string) string {
	u = strings.TrimPrefix(strings.TrimPrefix(u, "https://"), "http://")
	u, _, _ = strings.Cut(u, "?")
	u, _, _ = strings.Cut(u, "#")
	return cut(strings.TrimSuffix(strings.TrimPrefix(u, "www."), "/"), 120)
}

func cut(s string, max int) string {
	if short, more := webpage.Cut(s, max); more {
		return short + "…"
	}
	return s
}

func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// address gives an address of the web, or nil.
func address(s string) *string {
	if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") || len(s) > 4096 {
		return nil
	}
	return &s
}

func finite(f *float64) *float64 {
	if f == nil || math.IsNaN(*f) || math.IsInf(*f, 0) {
		return nil
	}
	return f
}

// number gives a number, or nil.
func number(v gjson.Result) *float64 {
	if v.Type != gjson.Number {
		return nil
	}
	return finite(&v.Num)
}

// oneOf gives the first non-empty string among fields of an object.
func oneOf(v gjson.Result, paths ...string) string {
	for _, path := range paths {
		if s := v.Get(path); s.Type == gjson.String && strings.TrimSpace(s.Str) != "" {
			return s.Str
		}
	}
	return ""
}
