package accounts

import (
	"errors"
	"time"

	"weir/pkg/apierr"
	"weir/pkg/snapshot"
	"weir/pkg/stream"
	"weir/pkg/upstream"
)

// ErrCooling is the cause of the 429 that says that no account was tried
// because all are cooling down.
var ErrCooling = errors.New("accounts: all are cooling down")

// quotaCode is the structured code of an account that has used up its credit.
const quotaCode = "insufficient_quota"

// effect is what a failure does to the account.
type effect uint8

const (
	nothing  effect = iota
	badKey          // 2 min, the account
	limited         // the stated wait or the backoff, this model only
	spent           // the stated reset or 1 h, the account
	unsteady        // 30 s after two within 10 s, the account
)

// failure is one attempt that did not work, and what follows from it.
type failure struct {
	err     *apierr.Error // RetryAfter is the wait that the upstream stated
	next    bool          // another account may be tried
	refresh bool          // the same account may be tried with a new token
	effect  effect
	cooled  time.Duration // the cooldown that came of it
	body    []byte        // of an answer that ends the plan
}

// Ranks of failures: the highest is told to the client when no account worked.
const (
	rankCredential = iota // nothing that a client can do
	rankLimit             // the client may wait
	rankTransient         // the client may try again
)

func (f *failure) rank() int {
	switch f.effect {
	case badKey:
		return rankCredential
	case limited, spent:
		return rankLimit
	}
	return rankTransient
}

// judge is the one function that decides on another attempt (design 5). The
// status decides, never the text of a message; quota is the structured code
// insufficient_quota. A billable creation goes on only after a definite
// refusal: 401, 403 or 429, and with a new token only after 401 (spec 4.4).
func judge(e *apierr.Error, quota, billable bool) *failure {
	f := &failure{err: e}
	switch s := e.Status; {
	case s == 401, s == 403:
		f.next, f.refresh, f.effect = true, !billable || s == 401, badKey
	case s == 402, s == 429 && quota:
		f.next, f.effect = !billable || s == 429, spent
	case s == 429:
		f.next, f.effect = true, limited
	case s == 529:
		f.next = !billable
	case s == 408, s >= 500:
		f.next, f.effect = !billable, unsteady
	}
	if billable && !f.next && (e.Status == 408 || e.Status >= 500) {
		e.NoRetry = true
	}
	return f
}

// strange is an answer that is none: a redirect, no body, no valid status. It
// is no evidence about the account.
func strange(code, message string, billable bool) *failure {
	e := apierr.New(502, code, "%s", message)
	if billable {
		e.NoRetry = true
		if code != "upstream_redirect" { // that one is a refusal
			e.Code = "upstream_outcome_unknown"
		}
	}
	return &failure{err: e, next: !billable}
}

// failureOf judges a call without a usable answer: an error of the Doer, or of
// Check. It gives nil for nil.
func failureOf(err error, billable bool) *failure {
	var e *apierr.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		shown := *e
		return judge(&shown, e.Code == quotaCode, billable)
	case errors.Is(err, upstream.ErrCanceled), errors.Is(err, stream.ErrClient):
		return &failure{err: &apierr.Error{Status: 499, Type: "invalid_request_error", Message: "the client left", Err: err}}
	case errors.Is(err, upstream.ErrBudget):
		e = apierr.New(503, "budget", "the request needs more calls of providers than the platform makes for one")
		e.NoRetry, e.Err = true, err
		return &failure{err: e}
	case errors.Is(err, stream.ErrTooLarge):
		f := strange("bad_upstream_body", "the provider's answer is too large", billable)
		f.next = false
		return f
	case errors.Is(err, upstream.ErrTimeout), errors.Is(err, stream.ErrTimeout), errors.Is(err, stream.ErrIdle):
		e = timedOut(billable)
	default:
		e = apierr.New(502, "upstream_unreachable", "the provider could not be reached or broke off")
		if billable {
			e.Code, e.NoRetry = "upstream_outcome_unknown", true
		}
	}
	e.Err = err
	return &failure{err: e, next: !billable, effect: unsteady}
}

func timedOut(billable bool) *apierr.Error {
	e := apierr.New(504, "upstream_timeout", "the provider did not answer in time")
	if billable {
		e.Code, e.NoRetry = "upstream_outcome_unknown", true
	}
	return e
}

// note does to the account what the failure says, in this isolate at once and
// in the object with the next report.
func (p *Pool) note(m *snapshot.Machine, connection, model string, f *failure, trial bool) {
	now := p.Now()
	span, reason := time.Duration(0), ""
	switch f.effect {
	case nothing:
		return
	case badKey:
		span, reason, model = badKeyFor, "unauthorized", ""
	case limited:
		reason = "rate_limited"
	case spent:
		reason, model = "quota", ""
	case unsteady:
		if again := m.Strike(connection, now.UnixMilli()); !again && !trial {
			return
		}
		span, reason, model = unsteadyFor, "unavailable", ""
	}
	failures := failuresOf(m.State(connection, model), now)
	switch f.effect {
	case limited:
		span = limitedFor(f.err.RetryAfter, failures)
	case spent:
		span = spentFor(f.err.RetryAfter)
	}
	f.cooled = span
	p.cool(m, connection, model, span, reason, failures+1, f.err, now)
}

// succeeded clears what is noted against the account. Without anything noted
// it costs two look-ups in an empty map.
func (p *Pool) succeeded(m *snapshot.Machine, connection, model string) {
	now := p.Now().UnixMilli()
	if m.Clear(connection, "", now) {
		p.cleared(m.ID, connection, "")
	}
	if model != "" && m.Clear(connection, model, now) {
		p.cleared(m.ID, connection, model)
	}
}
