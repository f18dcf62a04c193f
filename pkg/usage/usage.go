// Package usage is what calls have used, and what that cost.
package usage

import (
	"weir/pkg/catalog"
	"weir/pkg/llm"
	"weir/pkg/wire/httpmsg"
)

// Row is what calls of one kind have used. The JSON is that of the rows that
// the object of a machine adds up.
type Row struct {
	KeyID            string  `json:"keyId,omitempty"`
	ConnectionID     string  `json:"connectionId,omitempty"`
	Provider         string  `json:"provider,omitempty"`
	Model            string  `json:"model,omitempty"` // public id
	Endpoint         string  `json:"endpoint,omitempty"`
	Requests         int64   `json:"requests"`
	Errors           int64   `json:"errors,omitempty"`
	InputTokens      int64   `json:"inputTokens,omitempty"` // with what was read from and written to the cache
	OutputTokens     int64   `json:"outputTokens,omitempty"`
	ReasoningTokens  int64   `json:"reasoningTokens,omitempty"` // part of the output
	CacheReadTokens  int64   `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int64   `json:"cacheWriteTokens,omitempty"`
	CostUSD          float64 `json:"costUsd,omitempty"`
	// LatencyMs is the sum over Calls, from their arrival to the end of their
	// answers. Calls are clients' requests; Requests counts each attempt.
	LatencyMs int64 `json:"latencyMs,omitempty"`
	Calls     int64 `json:"calls,omitempty"`
	// FailedCalls are those of Calls that were answered with an error, or whose
	// stream ended in one; Errors counts each attempt that failed.
	FailedCalls int64 `json:"failedCalls,omitempty"`
	// Unpriced counts the requests whose cost is not known and not in CostUSD.
	Unpriced int64 `json:"unpriced,omitempty"`
}

// Price fills in the tokens, and the cost by the catalogue's prices of the
// model id under a provider's own alias. A cost that is not known for every
// part of the usage is not guessed: the request counts as unpriced.
func (r *Row) Price(alias, model string, u llm.Usage) {
	r.InputTokens, r.OutputTokens, r.ReasoningTokens = u.Input, u.Output, u.Reasoning
	r.CacheReadTokens, r.CacheWriteTokens = u.CacheRead, u.CacheWrite
	cost, known := Cost(alias, model, u)
	if !known {
		r.Unpriced = r.Requests
		return
	}
	r.CostUSD = cost
}

// Used is what the row says of one request.
func (r *Row) Used() httpmsg.Used {
	return httpmsg.Used{
		Input: r.InputTokens, Output: r.OutputTokens, Reasoning: r.ReasoningTokens, CacheRead: r.CacheReadTokens,
		CostUSD: r.CostUSD, Priced: r.Unpriced == 0,
	}
}

// Cost gives the price of an answer in USD; known is false where the usage or
// a price that it needs is not known.
func Cost(alias, model string, u llm.Usage) (usd float64, known bool) {
	if !u.Known {
		return 0, false
	}
	var price catalog.Price
	for _, m := range catalog.Lookup(alias, model) {
		if price = m.Price; price != "" {
			break
		}
	}
	rates, ok := price.Rates()
	if !ok {
		return 0, false
	}
	fresh := max(u.Input-u.CacheRead-u.CacheWrite, 0)
	for _, part := range [...]struct {
		tokens int64
		rate   float64
	}{{fresh, rates.Input}, {u.Output, rates.Output}, {u.CacheRead, rates.CacheRead}, {u.CacheWrite, rates.CacheWrite}} {
		if part.tokens == 0 {
			continue
		}
		if part.rate < 0 {
			return 0, false
		}
		usd += float64(part.tokens) * part.rate / 1e6
	}
	return usd, true
}

// maxRows is how many kinds of calls are kept apart in a list.
const maxRows = 256

// Add adds a row to a list: to the row of its kind, or as a new one. Once the
// list is long the model is left out.
func Add(list []Row, r Row) []Row {
	for i := range list {
		if list[i].alike(&r) {
			list[i].add(&r)
			return list
		}
	}
	if len(list) >= maxRows && r.Model != "" {
		r.Model, r.ConnectionID, r.Provider = "", "", ""
		return Add(list, r)
	}
	return append(list, r)
}

func (r *Row) alike(o *Row) bool {
	return r.Model == o.Model && r.ConnectionID == o.ConnectionID && r.KeyID == o.KeyID && r.Endpoint == o.Endpoint && r.Provider == o.Provider
}

func (r *Row) add(o *Row) {
	r.Requests += o.Requests
	r.Errors += o.Errors
	r.InputTokens += o.InputTokens
	r.OutputTokens += o.OutputTokens
	r.ReasoningTokens += o.ReasoningTokens
	r.CacheReadTokens += o.CacheReadTokens
	r.CacheWriteTokens += o.CacheWriteTokens
	r.CostUSD += o.CostUSD
	r.Unpriced += o.Unpriced
	r.LatencyMs += o.LatencyMs
	r.Calls += o.Calls
	r.FailedCalls += o.FailedCalls
}
