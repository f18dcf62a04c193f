// Package accounts decides which account is tried next, and is the only place
// that decides on another attempt. See docs/reference/design.md, 5.
package accounts

import (
	"context"
	"errors"
	"time"

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
	Request *httpmsg.Request // for its headers (x-connection-id, X-Stainless-Timeout) and its trace
	// Targets are tried in order; more than one for a combo.
	Targets []routing.Target
	// Build makes the upstream request for one target and account, without
	// credentials: Send adds them. It is called anew for each attempt and must
	// not change what an earlier attempt sent. A request without any time
	// limit gets the machine's limit on the wait for the first byte.
	Build func(to *routing.Target, conn *store.Connection) (*upstream.Request, error)
	// Dropped names the fields of the request that the last Build left out,
	// because the upstream does not know them. May be nil.
	Dropped func() []string
	// Base gives the further base of the provider that Build uses, whose
	// credentials are presented in another way; nil for the provider's own.
	// May itself be nil.
	Base func(to *routing.Target) *provider.Base
	// Check looks at a 2xx answer before it is settled for, and may replace its
	// body (a stream's first event is read here). An *apierr.Error counts as an
	// answer of its status. May be nil.
	Check func(resp *upstream.Response) error
	// Again receives a failure that would end the plan with a 4xx, or a 501, and
	// its body. It reports whether to call the same account once more with a new
	// request of Build. Billable calls are never repeated. May be nil.
	Again func(e *apierr.Error, body []byte) bool
	// Form returns the form of the errors of the last Build's upstream; nil is
	// ErrorsByShape.
	Form func() ErrorForm
	// Fault tells of a mistake of the client's own that was found while the
	// body went up, or that the client broke off. It takes the place of what
	// the upstream made of that, which is no evidence about the account. May be
	// nil.
	Fault func() error
	// Billable marks a creation that is sent again only after a definite
	// refusal (docs/reference/spec.md, 4.4.3).
	Billable bool
	// Timeout limits all attempts together, the waits for answers and for
	// bodies in memory. Zero means no limit but the client's.
	Timeout time.Duration
}

// Result is the answer settled for, a 2xx.
//
// An answer whose body is in memory counts as a success at once. For any other
// body the endpoint calls Done when it has ended.
type Result struct {
	*upstream.Response
	Target     *routing.Target
	Connection *store.Connection

	pool    *Pool
	machine *snapshot.Machine
	cred    provider.Credential
	trace   *httpmsg.Trace
}

// Clean takes the credential in use, and what else could be one, out of a
// failure that the body tells of: it may be shown and logged then.
func (r *Result) Clean(e *apierr.Error) { clean(e, r.cred) }

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
		rep := r.pool.reportOf(r.machine.ID)
		rep.Refusals = last(append(rep.Refusals, f))
	}
}

// Done tells how the body ended: nil for a clean end, which clears what is
// noted against the account. An *apierr.Error, from an error event within a
// stream, counts as an answer of its status, a reset or a silence as a failure
// of the network; a client that left tells nothing. It makes no call.
func (r *Result) Done(cause error) {
	if r.trace != nil && r.trace.Err == nil && errors.Is(cause, stream.ErrClient) {
		r.trace.Err = apierr.ClientLeft(cause)
	}
	if r.pool == nil { // made by a test's Sender
		return
	}
	if cause == nil {
		r.pool.succeeded(r.machine, r.Connection.ID, r.Target.Model)
		return
	}
	if f := failureOf(cause, r.Target.Provider, false); f != nil {
		r.pool.note(r.machine, r.Connection.ID, r.Target.Model, f)
	}
}

// Sender is what endpoints use of a Pool.
type Sender interface {
	Send(ctx context.Context, call *Call) (*Result, error)
}

// stub is the part of machine.Stub used here.
type stub interface {
	Call(ctx context.Context, machineID, op string, body []byte) (status int, answer []byte, err error)
}

// Pool sends calls over the accounts of machines. It is the Sender.
type Pool struct {
	Doer   upstream.Doer
	Object stub
	Keys   *store.Keyring
	Now    func() time.Time
	// Pause lets counts and usage gather before they are reported; nil leaves
	// what comes within a second of a report to the next call.
	Pause upstream.Pauser

	reports map[string]*report
	waiting map[string]time.Time
	tokens  map[tokenKey]*token
	laters  map[tokenKey]later
}
