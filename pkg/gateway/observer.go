package gateway

import (
	"context"
	"time"

	"weir/pkg/auth"
	"weir/pkg/wire/apierr"
)

// Observer receives each request once its answer has ended: the body or the WebSocket, or
// for a body that the platform passes on by itself its begin. Requests end side by side.
//
// ctx lives until Ended returns. The client does not wait for it, but the observers that
// follow and the line of the log do.
type Observer interface {
	Ended(ctx context.Context, e *Ended)
}

// Ended is a request whose answer has ended. It belongs to the gateway: an observer keeps
// nothing of it.
type Ended struct {
	// Call has the request, its Trace with the outcomes of the accounts, and the caller. Its
	// Machine is nil if the caller is not known, or needs none.
	Call   *auth.Call
	Status int
	Err    *apierr.Error // that the answer reports; nil for none
	At     time.Time     // when the answer had ended
}
