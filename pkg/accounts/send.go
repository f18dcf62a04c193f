// Package accounts decides which account is tried next, and is the only place
// that decides on another attempt. See docs/fallback.md.
package accounts

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Call is a client's call as the planner sees it.
type Call struct {
	Machine *snapshot.Machine
	Request *httpmsg.Request // for its headers (x-connection-id, X-Stainless-Timeout)
	Trace   *Trace           // records what the call came to
	// Session is the conversation that the call belongs to; nil for an endpoint that
	// reads it from header fields alone.
	Session *routing.Session
	// Targets are tried in order; more than one for a combo.
	Targets []routing.Target
	// Build returns the attempt for one target and account. before is the last
	// attempt, nil for the first one; if its Retry is set, the same
	// account is asked once more. Build must not change what before sent.
	Build func(to *routing.Target, conn *store.Connection, before *Attempt) (*Attempt, error)
	// Read reads a 2xx answer before it is accepted, and may replace its body
	// (a stream's first event is read here). An *apierr.Error counts as an
	// answer of its status. May be nil.
	Read func(a *Attempt, resp *upstream.Response) error
	// Credential is presented in place of the account's own. If it is refused, that is
	// no evidence about the account. May be nil.
	Credential *provider.Credential
	// Billable marks a creation that is sent again only after a definite
	// refusal (docs/reference/spec.md, 4.4.3).
	Billable bool
	// Repeats reports that a call that breaks, or is answered with 503, is sent once more
	// to the same account if it is the only one that can serve it. Not for Billable.
	Repeats bool
	// Estimate is what the call may use, for budgets.
	Estimate Estimate
	// Timeout limits all attempts together, the waits for answers and for
	// bodies in memory. Zero means no limit but the client's.
	Timeout time.Duration
}

// Unsuitable returns the error of a Build whose target cannot serve the
// request, while another target of the call may. If none can, the client gets
// err.
func Unsuitable(err error) error { return &unsuitable{err} }

type unsuitable struct{ err error }

func (u *unsuitable) Error() string { return "unsuitable target: " + u.err.Error() }

// Result is the accepted answer, a 2xx.
//
// An answer whose body is in memory counts as a success at once, and its usage
// is recorded. For any other body the endpoint calls Done when it has ended.
type Result struct {
	*upstream.Response
	Target     *routing.Target
	Connection *store.Connection
	Attempt    *Attempt

	pool    *Pool
	machine *snapshot.Machine
	cred    *snapshot.Opened
	request *httpmsg.Request
	trace   *Trace
	began   int64 // Unix milliseconds; 0 if the call is not counted as one under way
}

// Clean takes the credential in use, and anything else that could be one, out
// of a failure that was read from the body, so that it may be shown and logged.
func (r *Result) Clean(e *apierr.Error) { clean(e, r.cred.Credential) }

// Refuses remembers for a day that the connection's server refuses the named
// fields or roles, or with refused false that it accepts them again.
func (r *Result) Refuses(names []string, refused bool) {
	if r.pool == nil {
		return
	}
	now := r.pool.Now()
	for _, name := range names {
		f := store.Refusal{ConnectionID: r.Connection.ID, Field: name}
		if refused {
			f.Until = now.Add(24 * time.Hour).UnixMilli()
		}
		r.machine.Refuse(f, now.UnixMilli())
		r.pool.mu.Lock()
		rep := r.pool.reportOf(r.machine.ID)
		rep.Refusals = last(append(rep.Refusals, f))
		r.pool.mu.Unlock()
	}
}

// Done reports how the body ended, and records its usage: nil for a clean end,
// which clears what is noted against the account. An *apierr.Error, from an
// error event within a stream, counts as an answer of its status, a reset or a
// silence as a failure of the network; a client that left says nothing about
// the account. It makes no call.
func (r *Result) Done(cause error) {
	if r.pool == nil { // a test's Sender
		return
	}
	r.ended()
	left := errors.Is(cause, stream.ErrClient)
	if t := r.trace; left && t.Err == nil {
		t.Err = apierr.ClientLeft(cause)
	}
	if cause == nil {
		r.pool.used(r.machine, r.request, r.trace, r.Attempt, nil)
		r.pool.succeeded(r.machine, r.Connection.ID, r.Target.Model)
		return
	}
	f := newFailure(cause, r.Attempt, false)
	if left {
		r.pool.used(r.machine, r.request, r.trace, r.Attempt, nil)
	} else {
		r.pool.used(r.machine, r.request, r.trace, r.Attempt, f.err)
	}
	r.pool.note(r.machine, r.Connection.ID, r.Target.Model, f)
}

// Closed ends what a WebSocket has reserved of budgets and none of its answers has used.
func (r *Result) Closed() {
	if r.Attempt == nil { // a test's Sender
		return
	}
	for i := range r.Attempt.reserved {
		r.Attempt.reserved[i].Settle(0, r.pool.Now().UnixMilli())
	}
}

// ended notes that the call is no longer under way.
func (r *Result) ended() {
	if r.began != 0 {
		r.machine.End(r.Connection.ID, r.Target.Model, r.began)
		r.began = 0
	}
}

// Sender is what endpoints use of a Pool.
type Sender interface {
	Send(ctx context.Context, call *Call) (*Result, error)
}

// Pool sends calls over the accounts of machines. It is the Sender.
type Pool struct {
	Doer   upstream.Doer
	Object rpc.Stub
	Keys   *store.Keyring
	Now    func() time.Time
	Rand   io.Reader // names what is lent of budgets; without it their calls are refused
	// Pause lets counts and usage gather before they are reported; nil leaves
	// what comes within a second of a report to the next call.
	Pause upstream.Pauser
	// Log writes a line to the log. It may be nil.
	Log func(line string)
	// Seat is the name of this program among several that serve the machines; else "".
	Seat string
	// MaxRecords is the number of requests that a report lists; 0 is maxRecords.
	MaxRecords int
	// Changed receives the id of a machine whose object has stored a cooldown, or
	// the end of one, that was reported here. It may be nil.
	Changed func(machineID string)
	// Confirm returns the snapshot of a machine after asking its object for what has
	// changed, at most once a second. It may be nil.
	Confirm func(ctx context.Context, machineID string) (*snapshot.Machine, error)

	mu      sync.Mutex // of the fields that follow
	reports map[string]*report
	spare   []store.Request // empty: the memory of a report that got through
	waiting map[string]time.Time
	late    []*snapshot.Machine // whose reports no call of theirs may follow
	tokens  map[tokenKey]*token
	laters  map[tokenKey]later
	absurd  map[string]bool // see firstAbsurd
}
