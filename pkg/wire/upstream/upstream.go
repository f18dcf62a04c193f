// Package upstream is one HTTP call to a provider, and the port through which
// the platform makes it. It knows no provider.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/socket"
	"weir/pkg/wire/stream"
)

// Request is one call. Redirects are never followed.
type Request struct {
	Method string
	URL    string // absolute; the platform's canonical form
	// Header has credentials in the clear.
	Header httpmsg.Header
	Body   io.ReadCloser // nil, *stream.Bytes, a client's body as it is, or another body of pkg/wire/stream
	// HeaderTimeout limits the wait for the head of the response, and for each piece
	// of the body that Go itself reads (the first event of a stream). Timeout limits
	// the whole exchange. Zero means no limit.
	HeaderTimeout time.Duration
	Timeout       time.Duration
	// Idle limits the silence within a body that is read into memory, with MaxBody
	// or by stream.ReadAll. The error is stream.ErrIdle. Zero means no limit.
	Idle time.Duration
	// MaxBody, if positive, requests the response's body in memory together with its
	// head: Response.Body is then a *stream.Bytes. The error is stream.ErrTooLarge
	// for more than MaxBody bytes (after decompression), ErrCut for an
	// incomplete body, and stream.ErrTimeout after Timeout.
	MaxBody int64
	// Memory is what a body of over 64 KiB that is read whole acquires its memory
	// from. nil means that it is not counted.
	Memory stream.Memory
	// Socket opens a WebSocket with these limits, if it is not nil: the URL is that of a
	// GET without a body, and MaxBody is set, for an upstream that refuses. Of the
	// limits above HeaderTimeout holds.
	Socket *socket.Limits
	// Fresh asks for a connection that no call has used, where the platform lets the
	// gateway choose: the provider may have closed those that it keeps alive.
	Fresh bool
	// Outlive continues the call after the client has closed the connection: for
	// creations that are billed.
	Outlive bool
}

// Response is the response to a call. Body is never nil.
type Response struct {
	Status int // as the upstream sent it, also outside 200–599
	Header httpmsg.Header
	Body   io.ReadCloser
	// Owned reports that nothing else refers to the bytes of a Body in memory: its
	// reader may change them, up to their capacity.
	Owned bool
	// Socket is the WebSocket that was opened, with status 101. Who has the response
	// closes it.
	Socket socket.Conn
}

// The failures of a call without a response. The errors of a Doer wrap them.
var (
	ErrNetwork  = errors.New("upstream unreachable") // refused, reset, TLS, DNS
	ErrTimeout  = errors.New("upstream did not answer in time")
	ErrCanceled = errors.New("the client left")
	// ErrCut is an ErrNetwork of an answer that broke off after its head.
	ErrCut = fmt.Errorf("%w: the answer broke off", ErrNetwork)
	// ErrName, ErrRefused, ErrTLS and ErrPrivate are each an ErrNetwork before an answer, where
	// the platform knows its cause: workerd does not tell it.
	ErrName    = fmt.Errorf("%w: the name is not resolved", ErrNetwork)
	ErrRefused = fmt.Errorf("%w: the connection is refused", ErrNetwork)
	ErrTLS     = fmt.Errorf("%w: no TLS", ErrNetwork)
	// ErrPrivate: the URL itself, not what its name resolves to, is one that only
	// ALLOW_PRIVATE_UPSTREAMS allows.
	ErrPrivate = fmt.Errorf("%w: private addresses are not called", ErrNetwork)
	// ErrBudget: the platform allows no more calls for this request. The call was not
	// sent, so it is not a failure of the provider.
	ErrBudget = errors.New("too many calls for one request")
	// ErrLocal: the gateway has no connection for the call, such as at its limit of open
	// files. The call was not sent.
	ErrLocal = errors.New("the gateway has no connection for the call")
	// ErrSent: over SentMuch bytes of the body had been sent. It comes with ErrNetwork or
	// ErrTimeout.
	ErrSent = errors.New("much of the request body had been sent")
)

// Unreachable returns the sentence for an ErrNetwork: that who, such as "The provider", could
// not be reached, the cause if it is known, and what to do.
func Unreachable(who string, err error) string {
	who += " could not be reached"
	switch {
	case errors.Is(err, ErrPrivate):
		return who + ": this gateway calls no private addresses, as that of its base URL. ALLOW_PRIVATE_UPSTREAMS=true allows them."
	case errors.Is(err, ErrName):
		return who + ": its host name cannot be resolved to an address that may be called. Check the base URL and the DNS of the gateway."
	case errors.Is(err, ErrRefused):
		return who + ": it refuses the connection. Check that it is running, and the port of the base URL."
	case errors.Is(err, ErrTLS):
		return who + ": its TLS certificate is not valid, or it has no TLS. Check the base URL."
	}
	return who + ", or the connection was lost. Try again, or check the base URL."
}

// SentMuch is the number of bytes of a body that are not sent again lightly.
const SentMuch = 1 << 20

// Pending is a call that has been started.
type Pending interface {
	// Wait returns the head of the response, or an error that wraps one of the
	// above. The goroutine of the request calls it once.
	Wait() (*Response, error)
}

// Doer sends calls. Several may be started before the first Wait.
type Doer interface {
	Start(ctx context.Context, req *Request) Pending
}

// Do starts a call and waits for its response.
func Do(ctx context.Context, d Doer, req *Request) (*Response, error) {
	return d.Start(ctx, req).Wait()
}

// Pauser pauses the goroutine of a request for a bounded time.
type Pauser interface {
	Pause(ctx context.Context, d time.Duration) error
}
