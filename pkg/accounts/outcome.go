package accounts

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/upstream"
)

// Outcome is what became of an account in a call: it answered, it failed, or it was left
// out. A call appends them as they come; the client's error, the record of the call and its
// captures are read from the list.
type Outcome struct {
	Target     *routing.Target
	Connection *store.Connection // nil for a target that a budget refuses
	Sent       bool              // a request went to the provider
	// Failed is the record of a call that failed; nil for an answer, and for a page that the
	// gateway fetches itself.
	Failed  *store.Attempt
	Skipped string // why an account that is not ready was left out; see Step

	failure *failure      // nil for an answer, and for an account that was left out
	retry   Retry         // the same account was asked again
	cause   int           // the rank of what went wrong; rankNone for what decides nothing
	err     error         // why the account was left out, or the refusal of a budget
	since   int64         // when the cause began, Unix milliseconds; 0 when not known
	wait    time.Duration // until the account may be tried; 0 when not known
}

// outcomes are those of one Send.
type outcomes []Outcome

// attempts returns the number of upstream calls.
func (list outcomes) attempts() (n int) {
	for i := range list {
		if list[i].Sent {
			n++
		}
	}
	return n
}

// failed returns the connections of the attempts that failed for as strong a cause as f: that of
// f first, each once.
func (list outcomes) failed(f *failure) (conns []*store.Connection) {
	for _, of := range [...]bool{true, false} {
		for i := range list {
			o := &list[i]
			same := o.failure == f || !of && o.Sent && o.failure != nil && o.cause == f.rank()
			if same && !slices.Contains(conns, o.Connection) {
				conns = append(conns, o.Connection)
			}
		}
	}
	return conns
}

// uploads returns the number of attempts that were cut after much of the body had been sent.
func (list outcomes) uploads() (n int) {
	for i := range list {
		if f := list[i].failure; f != nil && list[i].Sent && errors.Is(f.err, upstream.ErrSent) {
			n++
		}
	}
	return n
}

// cause returns the highest rank of what went wrong.
func (list outcomes) cause() int {
	cause := rankNone
	for i := range list {
		cause = max(cause, list[i].cause)
	}
	return cause
}

// absent returns the answer of the first endpoint that a server lacks, or nil.
func (list outcomes) absent() error {
	for i := range list {
		if list[i].retry == OtherAPI {
			return list[i].failure.err
		}
	}
	return nil
}

// summary is what the outcomes of a call come to, if none is an answer.
type summary struct {
	best       *failure       // the most useful failure, and of several the last
	missed     [ranks]missed  // accounts that did not serve, by rank
	place      snapshot.Block // the refusal of a location that is skipped
	unusable   error          // why an account could not be tried at all
	refusal    error          // the first Unsuitable
	later      *noToken       // an account has no token at the moment: the shortest wait
	overBudget error          // of the first budget that refuses the call
}

// missed are the accounts that did not serve for one cause, because they cool
// down or because they failed in this call.
type missed struct {
	conns []*store.Connection
	since int64         // of the first, Unix milliseconds; 0 when not known
	wait  time.Duration // the smallest; 0 for none
}

func (list outcomes) summary() (s summary) {
	for i := range list {
		o := &list[i]
		var other *unsuitable
		var place *blocked
		var none *noToken
		switch {
		case o.retry != NoRetry:
		case o.failure != nil:
			if s.best == nil || o.cause >= s.best.rank() {
				s.best = o.failure
			}
		case o.Connection == nil:
			s.overBudget = cmp.Or(s.overBudget, o.err)
		case errors.As(o.err, &other):
			if s.refusal == nil {
				s.refusal = other.err
			}
			s.unusable = provider.ErrNoEndpoint
		case errors.As(o.err, &place):
			s.place = place.Block
		case errors.As(o.err, &none):
			if s.later == nil || none.wait < s.later.wait {
				s.later = none
			}
		case o.err != nil:
			s.unusable = o.err
		}
		if o.cause > rankMember && o.cause < rankTransient {
			s.missed[o.cause].add(o)
		}
	}
	return s
}

// add counts an account that did not serve, once.
func (m *missed) add(o *Outcome) {
	m.wait = least(m.wait, o.wait)
	if slices.Contains(m.conns, o.Connection) {
		return
	}
	if m.conns == nil {
		m.since = o.since
	}
	m.conns = append(m.conns, o.Connection)
}

// least returns the smaller of two waits; 0 means no wait is known.
func least(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
