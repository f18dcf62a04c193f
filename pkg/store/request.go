package store

import (
	"cmp"
	"slices"

	"weir/pkg/wire/apierr"
)

// Request is what is kept of a client's call for a while: no body, nothing of
// its text. The bodies of those that are captured are stored elsewhere, sealed.
//
//easyjson:json
type Request struct {
	Seq      int64  `json:"seq,omitempty"` // within the machine, from 1 on
	ID       string `json:"id"`
	At       int64  `json:"at"` // when it came in, Unix milliseconds
	KeyID    string `json:"keyId,omitempty"`
	Endpoint string `json:"endpoint"`
	Asked    string `json:"asked,omitempty"` // model id as the client wrote it
	// public id of the model that served or was tried last, else of the one asked for
	Model        string `json:"model,omitempty"`
	Provider     string `json:"provider,omitempty"`
	ConnectionID string `json:"connectionId,omitempty"`
	Status       int    `json:"status"`
	// Error is the code of the failure, or its type; with a status of 200 the
	// stream failed later.
	Error string `json:"error,omitempty"`
	// Outcome is Succeeded, ProviderFailed, NoAccount, Refused or Left, Reason that of Refused.
	Outcome string `json:"outcome,omitempty"` // "" in requests of earlier versions
	Reason  string `json:"reason,omitempty"`
	// Message is that of the error of a request without attempts, without what may be a credential.
	Message   string    `json:"message,omitempty"`
	LatencyMs int64     `json:"latencyMs"`         // to the end of the answer
	FirstMs   int64     `json:"firstMs,omitempty"` // to the first event of a stream
	Finish    string    `json:"finish,omitempty"`  // why the answer ended, as its provider writes it
	SentMs    int64     `json:"sentMs,omitempty"`  // to the start of the attempt that answered
	Attempts  int       `json:"attempts"`
	Failed    []Attempt `json:"failed,omitempty"` // the attempts that failed, in order
	Dropped   []string  `json:"dropped,omitempty"`
	// RequestBytes and AnswerBytes are the sizes of the bodies; 0 if they are not
	// known in advance, as that of a stream.
	RequestBytes int64 `json:"requestBytes,omitempty"`
	AnswerBytes  int64 `json:"answerBytes,omitempty"`
	Captured     bool  `json:"captured,omitempty"` // its bodies were stored
	// Tags are those of the client's x-weir-tags.
	Tags []string `json:"tags,omitempty"`
	Tool string   `json:"tool,omitempty"` // see setup.ToolOf
	// Session is the number of the session in hexadecimal digits, if a strategy asked for
	// it; Headers are the other fields that have decided on the route, as POST
	// /api/explain takes them.
	Session string            `json:"session,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// TraceParent is the client's traceparent, "00-<trace id>-<span id>-<flags>", if it is
	// valid. Without one the trace id has the digits of ID.
	TraceParent string `json:"traceparent,omitempty"`
	Used
}

// Left reports whether the client left before the end of the answer.
func (r *Request) Left() bool {
	return r.Status == apierr.StatusClientLeft || r.Error == apierr.CodeClientLeft
}

// HasFailed reports whether the request failed. One whose client left did not.
func (r *Request) HasFailed() bool { return !r.Left() && (r.Status >= 400 || r.Error != "") }

// notable is how many of the slowest requests Thin keeps, and how many of the most
// expensive.
const notable = 8

// Thin shortens a list of requests, in place, to those that matter most, in their
// order: the last failures, up to a number, the slowest and the most expensive of the
// others, and a sample of the rest. lost is the number of failures that it left out.
func Thin(list []Request, failures, sample int) (kept []Request, lost int) {
	keep := make([]bool, len(list))
	var rest []int
	for i := len(list) - 1; i >= 0; i-- {
		switch {
		case !list[i].HasFailed():
			rest = append(rest, i)
		case failures > 0:
			keep[i] = true
			failures--
		default:
			lost++
		}
	}
	most := func(value func(r *Request) float64) {
		slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(value(&list[b]), value(&list[a])) })
		for n := min(notable, len(rest)); n > 0 && value(&list[rest[0]]) > 0; n-- {
			keep[rest[0]] = true
			rest = rest[1:]
		}
	}
	most(func(r *Request) float64 { return r.CostUSD })
	most(func(r *Request) float64 { return float64(r.LatencyMs) })
	slices.Sort(rest)
	sample = min(sample, len(rest))
	for i := range sample {
		keep[rest[(i+1)*len(rest)/sample-1]] = true
	}
	kept = list[:0]
	for i := range list {
		if keep[i] {
			kept = append(kept, list[i])
		}
	}
	clear(list[len(kept):])
	return kept, lost
}

// Attempt is an upstream call that failed.
type Attempt struct {
	ConnectionID string `json:"connectionId"`
	Provider     string `json:"provider"`
	Model        string `json:"model,omitempty"`
	Status       int    `json:"status"` // the upstream's, or the one that stands for a missing answer
	Code         string `json:"code,omitempty"`
	// Text is the error message. It is empty for a refusal of the request itself,
	// which may repeat what was asked.
	Text string `json:"text,omitempty"`
	// Place is where a call came from that the provider does not serve: the code of the
	// airport near the data center, "FRA". It is "" if it is not known.
	Place  string `json:"place,omitempty"`
	SentMs int64  `json:"sentMs,omitempty"` // from the arrival of the request to the start
	Ms     int64  `json:"ms"`               // from the start to the failure
}

// Used is what the answers to a request used.
type Used struct {
	Input     int64 `json:"inputTokens,omitempty"`
	Output    int64 `json:"outputTokens,omitempty"`
	Reasoning int64 `json:"reasoningTokens,omitempty"`
	CacheRead int64 `json:"cacheReadTokens,omitempty"`
	// CacheWrite is 0 in requests of earlier versions.
	CacheWrite int64   `json:"cacheWriteTokens,omitempty"`
	CostUSD    float64 `json:"costUsd,omitempty"`
	Priced     bool    `json:"priced,omitempty"`    // the cost is known
	Estimated  bool    `json:"estimated,omitempty"` // the provider did not state all of the tokens
	// Unpriced names the parts that keep it unknown, such as web_search; empty without any
	// price.
	Unpriced []string `json:"unpricedParts,omitempty"`
}

// Add returns the sum of two answers.
func (u Used) Add(o Used) Used {
	return Used{
		Input: u.Input + o.Input, Output: u.Output + o.Output, Reasoning: u.Reasoning + o.Reasoning,
		CacheRead: u.CacheRead + o.CacheRead, CacheWrite: u.CacheWrite + o.CacheWrite,
		CostUSD: Dollars(u.CostUSD + o.CostUSD), Priced: u.Priced && o.Priced, Estimated: u.Estimated || o.Estimated,
		Unpriced: union(u.Unpriced, o.Unpriced),
	}
}

// union returns the names of a, followed by those that only b has.
func union(a, b []string) []string {
	for _, name := range b {
		if !slices.Contains(a, name) {
			a = append(a[:len(a):len(a)], name)
		}
	}
	return a
}
