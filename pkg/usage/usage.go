// Package usage has the rows that count what calls have used, and their cost.
//
// A column is declared in this file alone: in Row, in counts, in View and in
// Row.View. The test of this package names the place that was forgotten. The
// dashboard shows the columns of one array in worker/dashboard/src/pages/usage/columns.ts.
package usage

import (
	"slices"
	"strings"

	"weir/pkg/catalog"
	"weir/pkg/llm"
	"weir/pkg/store"
)

// Row counts the calls of one kind. The isolates send rows to the object of a
// machine, which adds them up by hour and day.
//
//easyjson:json
type Row struct {
	KeyID        string `json:"keyId,omitempty"`
	ConnectionID string `json:"connectionId,omitempty"`
	Provider     string `json:"provider,omitempty"`
	Model        string `json:"model,omitempty"` // public id
	Endpoint     string `json:"endpoint,omitempty"`

	Requests         int64   `json:"requests"` // attempts with providers
	Errors           int64   `json:"errors,omitempty"`
	InputTokens      int64   `json:"inputTokens,omitempty"` // with those read from and written to the cache
	OutputTokens     int64   `json:"outputTokens,omitempty"`
	ReasoningTokens  int64   `json:"reasoningTokens,omitempty"` // part of the output
	CacheReadTokens  int64   `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int64   `json:"cacheWriteTokens,omitempty"`
	CostUSD          float64 `json:"costUsd,omitempty"`
	// LatencyMs is the sum over Calls without NoAccount and the refused ones, from their arrival to the
	// end of their answers. Calls counts the requests of clients; Requests counts each attempt.
	LatencyMs int64 `json:"latencyMs,omitempty"`
	Calls     int64 `json:"calls,omitempty"`
	// FailedCalls are those of Calls that were refused, answered with an error, or whose
	// stream ended in one; Errors counts each attempt that failed.
	FailedCalls int64 `json:"failedCalls,omitempty"`
	// LeftCalls are those of Calls whose client closed the connection.
	LeftCalls int64 `json:"leftCalls,omitempty"`
	// NoAccount are those of FailedCalls for which no account could be tried. Their durations
	// are not counted.
	NoAccount int64 `json:"noAccount,omitempty"`
	// Those of FailedCalls that the gateway refused, by the reasons of store.Request. Their
	// durations are not counted.
	RefusedKeyLimit    int64 `json:"refusedKeyLimit,omitempty"`
	RefusedBudget      int64 `json:"refusedBudget,omitempty"`
	RefusedConcurrency int64 `json:"refusedConcurrency,omitempty"`
	RefusedKey         int64 `json:"refusedKey,omitempty"`
	RefusedModel       int64 `json:"refusedModel,omitempty"`
	RefusedRequest     int64 `json:"refusedRequest,omitempty"`
	// Unpriced counts the attempts whose cost is not known and not in CostUSD.
	Unpriced int64 `json:"unpriced,omitempty"`
	// Estimated counts the attempts with tokens that the provider did not state.
	Estimated int64 `json:"estimated,omitempty"`
	// Latency has the durations that LatencyMs sums up. FirstToken has those from the
	// arrival of a call to the first event of its stream.
	Latency    Histogram `json:"latency,omitzero"`
	FirstToken Histogram `json:"firstToken,omitzero"`
	// FirstTokenMs is the sum of the durations of FirstToken.
	FirstTokenMs int64 `json:"firstTokenMs,omitempty"`
	// Sizes counts the answers with tokens by their input, in the first half of the buckets, and
	// by their output, in the second. Rows of earlier versions have none.
	Sizes Histogram `json:"sizes,omitzero"`
	// Causes counts the attempts of Errors by their causes. It never has more attempts than
	// Requests has at the same time. Rows of earlier versions have none.
	Causes Causes `json:"causes,omitzero"`
}

// counts returns the integers that are added up, without those of Causes.
func (r *Row) counts() [21]*int64 {
	return [...]*int64{
		&r.Requests, &r.Errors, &r.InputTokens, &r.OutputTokens, &r.ReasoningTokens, &r.CacheReadTokens, &r.CacheWriteTokens,
		&r.LatencyMs, &r.Calls, &r.FailedCalls, &r.LeftCalls, &r.NoAccount, &r.Unpriced, &r.Estimated,
		&r.RefusedKeyLimit, &r.RefusedBudget, &r.RefusedConcurrency, &r.RefusedKey, &r.RefusedModel, &r.RefusedRequest,
		&r.FirstTokenMs,
	}
}

// Refused returns the number of Calls that the gateway refused.
func (r *Row) Refused() int64 {
	return r.RefusedKeyLimit + r.RefusedBudget + r.RefusedConcurrency + r.RefusedKey + r.RefusedModel + r.RefusedRequest
}

// View is a row as GET /api/usage returns it. It counts the requests of clients
// and, separately, the attempts with providers.
type View struct {
	Month        string `json:"month,omitempty"` // "2026-11"
	Day          string `json:"day,omitempty"`
	Hour         string `json:"hour,omitempty"` // "2026-11-22T19", UTC
	KeyID        string `json:"keyId,omitempty"`
	ConnectionID string `json:"connectionId,omitempty"`
	Provider     string `json:"provider,omitempty"`
	Model        string `json:"model,omitempty"`
	Endpoint     string `json:"endpoint,omitempty"`
	// Tool or Tag is the value of the label that rows are grouped by: "claude-code",
	// "project=atlas".
	Tool string `json:"tool,omitempty"`
	Tag  string `json:"tag,omitempty"`

	// Requests is the sum of Succeeded, ProviderFailed, NoAccount, Refused and Left,
	// FailedRequests that of ProviderFailed, NoAccount and Refused. Rows of earlier versions
	// have refused requests and those of NoAccount in ProviderFailed, and those that clients
	// left in Succeeded.
	Requests       int64 `json:"requests"`
	FailedRequests int64 `json:"failedRequests"`
	Succeeded      int64 `json:"succeeded"`
	ProviderFailed int64 `json:"providerFailed"`
	NoAccount      int64 `json:"noAccount"`
	Left           int64 `json:"left"`
	// Refused is the sum of the reasons below.
	Refused            int64 `json:"refused"`
	RefusedKeyLimit    int64 `json:"refusedKeyLimit,omitempty"`
	RefusedBudget      int64 `json:"refusedBudget,omitempty"`
	RefusedConcurrency int64 `json:"refusedConcurrency,omitempty"`
	RefusedKey         int64 `json:"refusedKey,omitempty"`
	RefusedModel       int64 `json:"refusedModel,omitempty"`
	RefusedRequest     int64 `json:"refusedRequest,omitempty"`

	Attempts         int64   `json:"attempts"`
	FailedAttempts   int64   `json:"failedAttempts"`
	InputTokens      int64   `json:"inputTokens"`
	OutputTokens     int64   `json:"outputTokens"`
	ReasoningTokens  int64   `json:"reasoningTokens,omitempty"`
	CacheReadTokens  int64   `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int64   `json:"cacheWriteTokens,omitempty"`
	CostUSD          float64 `json:"costUsd,omitempty"`
	UnpricedAttempts int64   `json:"unpricedAttempts,omitempty"` // not in CostUSD
	// EstimatedAttempts are those with tokens that the provider did not state, with their cost.
	EstimatedAttempts int64 `json:"estimatedAttempts,omitempty"`
	LatencyMs         int64 `json:"latencyMs,omitempty"` // the sum over Requests without NoAccount and Refused
	// Percentiles of the time to the end of an answer and, of streams, to their first
	// event. 0 is unknown.
	LatencyP50Ms    int64 `json:"latencyP50Ms,omitempty"`
	LatencyP95Ms    int64 `json:"latencyP95Ms,omitempty"`
	FirstTokenP50Ms int64 `json:"firstTokenP50Ms,omitempty"`
	FirstTokenP95Ms int64 `json:"firstTokenP95Ms,omitempty"`
	FirstTokenMs    int64 `json:"firstTokenMs,omitempty"` // the sum over the streams
	// FailedBy has FailedAttempts by their causes. Those of earlier versions are missing.
	FailedBy map[string]int64 `json:"failedBy,omitempty"`
	// CacheShare is the share of InputTokens that was read from a prompt cache.
	CacheShare float64 `json:"cacheShare,omitempty"`
}

// View returns the row as it is shown. The caller sets Month, Day or Hour.
func (r *Row) View() View {
	v := View{
		KeyID: r.KeyID, ConnectionID: r.ConnectionID, Provider: r.Provider, Model: r.Model, Endpoint: r.Endpoint,
		Requests: r.Calls, FailedRequests: r.FailedCalls,
		Succeeded: r.Calls - r.FailedCalls - r.LeftCalls, ProviderFailed: r.FailedCalls - r.NoAccount - r.Refused(),
		NoAccount: r.NoAccount, Left: r.LeftCalls,
		Refused: r.Refused(), RefusedKeyLimit: r.RefusedKeyLimit, RefusedBudget: r.RefusedBudget,
		RefusedConcurrency: r.RefusedConcurrency,
		RefusedKey:         r.RefusedKey, RefusedModel: r.RefusedModel, RefusedRequest: r.RefusedRequest,
		Attempts: r.Requests, FailedAttempts: r.Errors,
		InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, ReasoningTokens: r.ReasoningTokens,
		CacheReadTokens: r.CacheReadTokens, CacheWriteTokens: r.CacheWriteTokens,
		CostUSD: store.Dollars(r.CostUSD), UnpricedAttempts: r.Unpriced, EstimatedAttempts: r.Estimated,
		LatencyMs:    r.LatencyMs,
		LatencyP50Ms: r.Latency.Percentile(50), LatencyP95Ms: r.Latency.Percentile(95),
		FirstTokenP50Ms: r.FirstToken.Percentile(50), FirstTokenP95Ms: r.FirstToken.Percentile(95),
		FirstTokenMs: r.FirstTokenMs, FailedBy: r.Causes.named(),
	}
	if r.InputTokens > 0 {
		v.CacheShare = float64(min(r.CacheReadTokens, r.InputTokens)) / float64(r.InputTokens)
	}
	return v
}

// Price fills in the tokens, and the cost by a price; see Cost. If a part of the cost is
// not known, the attempts count as unpriced.
func (r *Row) Price(p catalog.Price, u *llm.Usage, m *Media) {
	r.InputTokens, r.OutputTokens, r.ReasoningTokens = u.Input, u.Output, u.Reasoning
	r.CacheReadTokens, r.CacheWriteTokens = u.CacheRead, u.CacheWrite
	r.Sizes.observeTokens(u.Input, u.Output)
	if u.Estimated {
		r.Estimated = r.Requests
	}
	cost, known := Cost(p, u, m)
	if !known {
		r.Unpriced = r.Requests
		return
	}
	r.CostUSD = cost
}

// Used returns the usage of a row of one attempt, for the list of requests.
func (r *Row) Used() store.Used {
	return store.Used{
		Input: r.InputTokens, Output: r.OutputTokens, Reasoning: r.ReasoningTokens, CacheRead: r.CacheReadTokens,
		CacheWrite: r.CacheWriteTokens, CostUSD: store.Dollars(r.CostUSD),
		Priced: r.Unpriced == 0, Estimated: r.Estimated > 0,
	}
}

// maxName is the size of the longest id in a row, in bytes.
const maxName = 400

// Valid reports whether the row of an isolate may be added to the stored ones:
// no count is negative and no id too long.
func (r *Row) Valid() bool {
	for _, n := range r.counts() {
		if *n < 0 {
			return false
		}
	}
	for _, n := range r.Causes {
		if n < 0 {
			return false
		}
	}
	return r.CostUSD >= 0 && r.CostUSD < 1e9 &&
		max(len(r.Model), len(r.KeyID), len(r.ConnectionID), len(r.Provider), len(r.Endpoint)) <= maxName
}

// Add adds what o has counted to the row.
func (r *Row) Add(o *Row) {
	r.AddCounts(o)
	r.Latency.Add(&o.Latency)
	r.FirstToken.Add(&o.FirstToken)
	r.Sizes.Add(&o.Sizes)
}

// AddCounts is Add without histograms.
func (r *Row) AddCounts(o *Row) {
	add := o.counts()
	for i, n := range r.counts() {
		*n += *add[i]
	}
	for i, n := range o.Causes {
		r.Causes[i] += n
	}
	r.CostUSD += o.CostUSD
}

// Call counts a client's request by its outcome: its duration, and the time to the first
// event of its stream, 0 for none. The durations of requests that were not sent would only
// hide those of providers.
func (r *Row) Call(ms, firstMs int64, outcome, reason string) {
	r.Calls++
	switch outcome {
	case store.Left:
		r.LeftCalls++
	case store.ProviderFailed:
		r.FailedCalls++
	case store.NoAccount:
		r.FailedCalls++
		r.NoAccount++
		return
	case store.Refused:
		r.FailedCalls++
		*r.refusedBy(reason)++
		return
	}
	r.LatencyMs += ms
	r.Latency.Observe(ms)
	if firstMs > 0 {
		r.FirstToken.Observe(firstMs)
		r.FirstTokenMs += firstMs
	}
}

// refusedBy returns the count of a reason.
func (r *Row) refusedBy(reason string) *int64 {
	switch reason {
	case store.RefusedByKeyLimit:
		return &r.RefusedKeyLimit
	case store.RefusedByBudget:
		return &r.RefusedBudget
	case store.RefusedByConcurrency:
		return &r.RefusedConcurrency
	case store.RefusedByKey:
		return &r.RefusedKey
	case store.RefusedByModel:
		return &r.RefusedModel
	}
	return &r.RefusedRequest
}

// Kind returns a row without counts, of the same kind as r.
func (r *Row) Kind() Row {
	return Row{KeyID: r.KeyID, ConnectionID: r.ConnectionID, Provider: r.Provider, Model: r.Model, Endpoint: r.Endpoint}
}

// GroupedBy returns a row without counts that has only the named ids of r: key,
// connection, provider, model, endpoint. A connection has its provider. Rows with the same
// name are one group.
func (r *Row) GroupedBy(names []string) (group Row, name string) {
	for _, by := range names {
		switch by {
		case "key":
			group.KeyID = r.KeyID
		case "connection":
			if group.ConnectionID = r.ConnectionID; r.ConnectionID != "" {
				group.Provider = r.Provider
			}
		case "provider":
			group.Provider = r.Provider
		case "model":
			group.Model = r.Model
		case "endpoint":
			group.Endpoint = r.Endpoint
		}
	}
	return group, strings.Join([]string{group.KeyID, group.ConnectionID, group.Provider, group.Model, group.Endpoint},
		"\n")
}

// Bounds of the kinds in a list. From maxRows on, the model, the connection and the provider of
// further kinds are left out, from maxKeyRows on their key as well, and from maxKindRows on their
// endpoint.
const (
	maxRows     = 256
	maxKeyRows  = 768
	maxKindRows = 900
)

// Add adds a row to a list: to the row of its kind, or as a new one.
func Add(list []Row, r Row) []Row {
	list, row := Of(list, &r)
	row.Add(&r)
	return list
}

// Of returns the row of a list that has the kind of r, and the list, to which a row without
// counts is added if there was none.
func Of(list []Row, r *Row) ([]Row, *Row) {
	for i := range list {
		if list[i].sameKind(r) {
			return list, &list[i]
		}
	}
	kind := r.Kind()
	if kind.shorten(len(list)) {
		return Of(list, &kind)
	}
	list = append(list, kind)
	return list, &list[len(list)-1]
}

// shorten leaves out of a kind what a list of that many rows has no room for, and reports
// whether there was any.
func (r *Row) shorten(rows int) bool {
	switch {
	case rows >= maxRows && (r.Model != "" || r.ConnectionID != "" || r.Provider != ""):
		r.Model, r.ConnectionID, r.Provider = "", "", ""
	case rows >= maxKeyRows && r.KeyID != "":
		r.KeyID = ""
	case rows >= maxKindRows && r.Endpoint != "":
		r.Endpoint = ""
	default:
		return false
	}
	return true
}

// Fold returns a list of the first rows, as many as keep, and one without names that adds up the
// others.
func Fold(list []Row, keep int) []Row {
	var rest Row
	for i := keep; i < len(list); i++ {
		rest.Add(&list[i])
	}
	return Add(slices.Clone(list[:keep]), rest)
}

func (r *Row) sameKind(o *Row) bool {
	return r.Model == o.Model && r.ConnectionID == o.ConnectionID && r.KeyID == o.KeyID && r.Endpoint == o.Endpoint &&
		r.Provider == o.Provider
}
