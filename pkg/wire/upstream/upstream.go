// Package upstream is one HTTP call to a provider, and the port through which
// the platform makes it. It knows no provider.
package upstream

import (
	"context"
	"errors"
	"io"
	"time"

	"weir/pkg/wire/httpmsg"
)

// Request is one call. Redirects are never followed.
type Request struct {
	Method string
	URL    string // absolute; the platform's canonical form
	Header httpmsg.Header
	Body   io.ReadCloser // nil, *stream.Bytes, a client's body as it is, or another body of pkg/wire/stream
	// HeaderTimeout limits the wait for the head of the answer, and for each
	// piece of the body that Go itself reads (a stream's first event); Timeout
	// limits the whole exchange. Zero means no limit of that kind.
	HeaderTimeout time.Duration
	Timeout       time.Duration
	// Idle limits the silence within a body that is read into memory, with
	// MaxBody or by stream.ReadAll; the error is stream.ErrIdle. Zero means no
	// limit.
	Idle time.Duration
	// MaxBody, when positive, asks for the answer's body in memory together
	// with its head: Response.Body is then a *stream.Bytes. An answer over
	// MaxBody bytes (counted inflated) is stream.ErrTooLarge, a broken one
	// ErrNetwork, one past Timeout stream.ErrTimeout.
	MaxBody int64
	// Outlive keeps the call going when the client leaves: for creations that
	// are billed.
	Outlive bool
}

// Response is the answer to a call. Body is never nil.
type Response struct {
	Status int // as the upstream sent it, also outside 200–599
	Header httpmsg.Header
	Body   io.ReadCloser
}

// The ways a call ends without an answer, wrapped by the errors of a Doer.
var (
	ErrNetwork  = errors.New("upstream unreachable") // refused, reset, TLS, DNS: the platform does not tell them apart
	ErrTimeout  = errors.New("upstream did not answer in time")
	ErrCanceled = errors.New("the client left")
	// ErrBudget: the platform makes no more calls for this request. This one was
	// not made, which says nothing of the provider.
	ErrBudget = errors.New("too many calls for one request")
)

// Pending is a call under way.
type Pending interface {
	// Wait gives the head of the answer, or an error that wraps one of the
	// above. It is called once, by the goroutine of the request.
	Wait() (*Response, error)
}

// Doer makes calls. Several may be started before the first is waited for.
type Doer interface {
	Start(ctx context.Context, req *Request) Pending
}

// Do starts a call and waits for it.
func Do(ctx context.Context, d Doer, req *Request) (*Response, error) {
	return d.Start(ctx, req).Wait()
}

// Pauser pauses the goroutine of a request for a bounded time.
type Pauser interface {
	Pause(ctx context.Context, d time.Duration) error
}
