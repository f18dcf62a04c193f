package usage

import "weir/pkg/wire/apierr"

// Causes counts failed attempts by their causes, in the order of CauseNames.
type Causes [8]int64

// CauseNames are the names of the causes of a failed attempt.
var CauseNames = [len(Causes{})]string{
	"limited",       // 429
	"key_refused",   // 401, or 403 of another code than account_lacks_model
	"out_of_credit", // 402, or the code insufficient_quota
	"server_error",  // 5xx, or an unusable answer
	"timeout",       // no answer in time, or a stream that fell silent
	"unreachable",   // no answer at all, or a connection that broke off
	"blocked",       // the provider does not serve the place that the call came from
	"refused",       // the request itself: another 4xx, or a model that the account may not use
}

// Count counts a failed attempt by its error.
func (c *Causes) Count(e *apierr.Error) { c[causeOf(e.Status, e.Code)]++ }

// CauseOf returns the name of the cause of a failure with a status and a code.
func CauseOf(status int, code string) string { return CauseNames[causeOf(status, code)] }

// causeOf returns the index in CauseNames of a failure with a status and a code.
func causeOf(status int, code string) int {
	switch {
	case code == "upstream_blocked_here":
		return 6
	case code == "upstream_unreachable", code == "upstream_cut", code == "upstream_reset",
		code == "upstream_outcome_unknown":
		return 5
	case code == "upstream_timeout", code == "timeout", status == 408, status == 504:
		return 4
	case code == "account_lacks_model":
		return 7
	case status == 402, code == "insufficient_quota":
		return 2
	case status == 401, status == 403:
		return 1
	case status == 429:
		return 0
	case status >= 400 && status < 500:
		return 7
	}
	return 3
}

// Refused returns the number of attempts that failed because of the request itself.
func (c *Causes) Refused() int64 { return c[7] }

// named returns the counts by their names, without those that are 0.
func (c *Causes) named() (by map[string]int64) {
	for i, n := range c {
		if n == 0 {
			continue
		}
		if by == nil {
			by = map[string]int64{}
		}
		by[CauseNames[i]] = n
	}
	return by
}
