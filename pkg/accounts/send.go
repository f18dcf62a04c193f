// Package accounts decides which account is tried next, and is the only place
// that decides on another attempt. Design 5.
package accounts

import (
	"context"

	"weir/pkg/edge"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/upstream"
)

// Call is a client's call as the planner sees it.
type Call struct {
	Machine *snapshot.Machine
	Request *edge.Request // for its headers (x-connection-id, X-Stainless-Timeout) and its trace
	// Targets are tried in order; more than one for a combo.
	Targets []routing.Target
	// Build makes the upstream request for one target and account, without
	// credentials: Send adds them. It is called anew for each attempt and must
	// not change what an earlier attempt sent.
	Build func(to *routing.Target, conn *store.Connection) (*upstream.Request, error)
	// Check looks at a 2xx answer before it is settled for, and may replace its
	// body (a stream's first event is read here). An *apierr.Error counts as an
	// answer of its status. May be nil.
	Check func(resp *upstream.Response) error
	// Billable marks a creation that is sent again only after a definite
	// refusal (spec 4.4.3).
	Billable bool
}

// Result is the answer settled for, a 2xx.
type Result struct {
	*upstream.Response
	Target     *routing.Target
	Connection *store.Connection
}

// Sender is what endpoints use of a Pool.
type Sender interface {
	Send(ctx context.Context, call *Call) (*Result, error)
}
