package search

import (
	"strconv"
	"strings"
	"time"

	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/usage"
	"weir/pkg/wire/htmlmd"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/words"
)

// found is what a provider answered. What it did not say is "".
type found struct {
	provider string
	results  []hit
	answer   string
	queries  int
	cost     string // USD, a number in JSON
	total    string // a number in JSON
	problems []problem
	latency  time.Duration
	header   httpmsg.Header
	tokens   llm.Usage // of a chat model
}

// count completes a row of usage. What a chat model takes for a search is no
// part of its tokens' price, so the cost is known only where the answer has it.
func (f *found) count(row *usage.Row) {
	row.InputTokens, row.OutputTokens, row.ReasoningTokens = f.tokens.Input, f.tokens.Output, f.tokens.Reasoning
	row.CacheReadTokens, row.CacheWriteTokens = f.tokens.CacheRead, f.tokens.CacheWrite
	usd, err := strconv.ParseFloat(f.cost, 64)
	endpoint.Costs(usd, err == nil)(row)
}

// problem is a part of a search that failed while the rest did not.
type problem struct{ provider, message string }

// write shapes the answer (docs/reference/spec-gaps.md, 5):
//
//	{"provider","query","results":[{"title","url","display_url","snippet","position","score","published_at","favicon_url",
//	 "content":{"format","text","length"},"metadata":{"author","language","source_type","image_url"},
//	 "citation":{"provider","retrieved_at","rank"}}],"answer","usage":{"queries_used","search_cost_usd"},
//	 "metrics":{"response_time_ms","upstream_latency_ms","total_results_available"},"errors":[{"provider","message"}]}
//
// Unknown values are null. Results outside of the domain filter and of the time
// range are left out whatever the provider made of it, and so are those without
// an address.
func (f *found) write(a *ask, took time.Duration) []byte {
	b := make([]byte, 0, 1024+1024*min(len(f.results), a.request.max))
	b = words.Fill(b, `{"provider":$,"query":$,"results":[`, f.provider, a.query)
	first := a.from().Format(time.DateOnly)
	skip, n := a.skip, 0
	for i := range f.results {
		h := &f.results[i]
		site := h.site()
		published := htmlmd.Date(h.published, a.now)
		switch {
		case site == "" || !a.wanted(site) || published != "" && published[:len(time.DateOnly)] < first:
			continue
		case skip > 0:
			skip--
			continue
		case n == a.request.max:
			continue
		}
		if n++; n > 1 {
			b = append(b, ',')
		}
		b = h.write(b, f, a, n, published)
	}
	b = words.Fill(b, `],"answer":$,"usage":{"queries_used":#,"search_cost_usd":#},"metrics":{"response_time_ms":#,"upstream_latency_ms":#,"total_results_available":#},"errors":[`,
		strings.TrimSpace(f.answer), itoa(max(1, f.queries)), f.cost, itoa(int(took.Milliseconds())), itoa(int(f.latency.Milliseconds())), f.total)
	for i := range f.problems {
		if i > 0 {
			b = append(b, ',')
		}
		b = words.Fill(b, `{"provider":$,"message":$}`, f.problems[i].provider, f.problems[i].message)
	}
	return append(b, "]}"...)
}
