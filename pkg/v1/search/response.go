package search

import (
	"strconv"
	"strings"
	"time"

	"weir/pkg/accounts"
	"weir/pkg/llm"
	"weir/pkg/wire/htmlmd"
	"weir/pkg/wire/jsonvalue"
)

// response is a provider's answer; unknown values are "".
type response struct {
	provider string
	results  []result
	answer   string
	queries  int
	cost     string // USD, a number in JSON
	total    string // a number in JSON
	problems []problem
	latency  time.Duration
	tokens   llm.Usage // of a chat model
}

// used returns what the search used. The price of a chat model's search is not part
// of the price of its tokens, so the cost is known only if the answer states it.
func (r *response) used() accounts.Used {
	usd, err := strconv.ParseFloat(r.cost, 64)
	u := accounts.StatedCost(usd, err == nil)
	u.Tokens = r.tokens
	return u
}

// problem is a failure of one part of a search that otherwise succeeded.
type problem struct{ provider, message string }

// write returns the client's answer (docs/reference/spec.md, 4.8):
//
//	{"provider","query","results":[{"title","url","display_url","snippet","position","score","published_at","favicon_url",
//	 "content":{"format","text","length"},"metadata":{"author","language","source_type","image_url"},
//	 "citation":{"provider","retrieved_at","rank"}}],"answer","usage":{"queries_used","search_cost_usd"},
//	 "metrics":{"response_time_ms","upstream_latency_ms","total_results_available"},"errors":[{"provider","message"}]}
//
// Unknown values are null. Results outside the domain filter or the time range, and
// results without a URL, are left out, however the provider applied the filters.
func (r *response) write(c *call, took time.Duration) []byte {
	w := make(jsonvalue.Writer, 0, 1024+1024*min(len(r.results), c.max))
	w.Object("")
	w.Text("provider", r.provider)
	w.Text("query", c.query)
	w.Array("results")
	first := c.from().Format(time.DateOnly)
	skip, n := c.skip, 0
	for i := range r.results {
		h := &r.results[i]
		site := h.site()
		published := htmlmd.Date(h.published, c.now)
		switch {
		case site == "" || !c.allows(site) || published != "" && published[:len(time.DateOnly)] < first:
			continue
		case skip > 0:
			skip--
			continue
		case n == c.max:
			continue
		}
		n++
		h.write(&w, r, c, n, published)
	}
	w.End(']')
	w.Text("answer", strings.TrimSpace(r.answer))
	w.Object("usage")
	w.Int("queries_used", max(1, r.queries))
	w.Raw("search_cost_usd", r.cost)
	w.End('}')
	w.Object("metrics")
	w.Int("response_time_ms", int(took.Milliseconds()))
	w.Int("upstream_latency_ms", int(r.latency.Milliseconds()))
	w.Raw("total_results_available", r.total)
	w.End('}')
	w.Array("errors")
	for i := range r.problems {
		w.Object("")
		w.Text("provider", r.problems[i].provider)
		w.Text("message", r.problems[i].message)
		w.End('}')
	}
	w.End(']')
	w.End('}')
	return w
}
