package host

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// doer makes upstream calls with net/http.
type doer struct {
	outside   func(ctx context.Context, wait func()) // Config.Outside
	transport http.RoundTripper
	log       func(level int, line string)
}

// exchange is an upstream call from its start to the end of its body. It is the
// Pending of the call.
type exchange struct {
	doer
	caller context.Context // of the client's request
	ctx    context.Context
	cancel context.CancelCauseFunc
	req    *upstream.Request
	limits limits
	sent   atomic.Int64  // bytes of the body that were taken
	upload *uploadSource // of the client, if its body is sent

	done   chan struct{} // closed with answer or err; nil for a call by Do
	answer *upstream.Response
	err    error
}

// limits are the time limits of an exchange. A limit that is set again and again, as
// the silence between the pieces of a stream is, leaves the timer alone: a timer that
// expires before the limit of now is set for the rest.
type limits struct {
	mu     sync.Mutex
	timer  *time.Timer
	rings  time.Time // when the timer expires, zero if it does not run
	total  time.Time // of the whole exchange, zero without limit
	until  time.Time // of what comes next, zero without limit
	reason error     // what the end of until means
	ended  bool
	sent   bool // the answer has begun
	cancel context.CancelCauseFunc
}

// within limits what comes next to d; expiry is reason. Without d only the limit of
// the whole exchange holds, which expires as whole.
func (l *limits) within(d time.Duration, reason, whole error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(d, reason, whole)
}

// sending is within for the head of the answer, while the body of the call is sent. It
// does nothing once the answer has begun, which may be before the body's end.
func (l *limits) sending(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.sent {
		l.set(d, upstream.ErrTimeout, upstream.ErrTimeout)
	}
}

// answered ends what sending does.
func (l *limits) answered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = true
}

// set is called with the lock.
func (l *limits) set(d time.Duration, reason, whole error) {
	if l.ended {
		return
	}
	l.until, l.reason = time.Time{}, reason
	if d > 0 {
		l.until = time.Now().Add(d)
	}
	if !l.total.IsZero() && (d <= 0 || l.total.Before(l.until)) {
		l.until, l.reason = l.total, whole
	}
	if !l.until.IsZero() && (l.rings.IsZero() || l.until.Before(l.rings)) {
		l.ring()
	}
}

// ring sets the timer for until.
func (l *limits) ring() {
	l.rings = l.until
	if d := max(time.Until(l.until), 0); l.timer == nil {
		l.timer = time.AfterFunc(d, l.expire)
	} else {
		l.timer.Reset(d)
	}
}

func (l *limits) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
	case l.until.IsZero():
		l.rings = time.Time{}
	case time.Now().Before(l.until):
		l.ring()
	default:
		l.ended = true
		l.cancel(l.reason)
	}
}

// end stops the timer for good.
func (l *limits) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// Start sends a call.
func (d doer) Start(ctx context.Context, req *upstream.Request) upstream.Pending {
	x := &exchange{doer: d, caller: ctx, req: req, done: make(chan struct{})}
	hr := x.open()
	if hr == nil {
		close(x.done)
		return x
	}
	go func() {
		defer close(x.done)
		x.send(hr)
	}()
	return x
}

// open begins the call, and returns it as net/http sends it, or nil after an error.
func (x *exchange) open() *http.Request {
	ctx, req := x.caller, x.req
	parent := ctx
	if req.Outlive {
		parent = context.WithoutCancel(ctx)
	}
	x.ctx, x.cancel = context.WithCancelCause(parent)
	hr, err := x.request()
	if err != nil {
		x.cancel(nil)
		x.err = &failure{upstream.ErrNetwork, err}
		return nil
	}
	x.limits.cancel = x.cancel
	if req.Timeout > 0 {
		x.limits.total = time.Now().Add(req.Timeout)
	}
	x.limits.within(req.HeaderTimeout, upstream.ErrTimeout, upstream.ErrTimeout)
	return hr
}

// request returns the call as net/http sends it. The URL is in canonical form.
func (x *exchange) request() (*http.Request, error) {
	u, err := requestURL(x.req.URL)
	if err != nil {
		return nil, err
	}
	hr := &http.Request{
		Method: x.req.Method, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, len(x.req.Header)+2), Close: x.req.Fresh,
	}
	values := make([]string, 0, len(x.req.Header))
	for _, f := range x.req.Header {
		switch f.Name {
		case "host":
			hr.Host = f.Value
			continue
		case "content-length":
			continue
		}
		values = addField(hr.Header, values, f)
	}
	if _, ok := hr.Header["User-Agent"]; !ok {
		hr.Header["User-Agent"] = nil // none, instead of that of net/http
	}
	switch b := x.req.Body.(type) {
	case nil:
	case *stream.Bytes:
		all := b.All()
		hr.ContentLength = int64(len(all))
		if len(all) == 0 {
			break
		}
		hr.GetBody = func() (io.ReadCloser, error) {
			return x.sends(io.NopCloser(bytes.NewReader(all)), int64(len(all))), nil
		}
		hr.Body, _ = hr.GetBody()
	default:
		r, length := x.source(b)
		hr.Body, hr.ContentLength = x.sends(r, length), length
	}
	return hr.WithContext(x.ctx), nil
}

// sends returns a body of the call, -1 for an unknown length, whose progress renews the
// limit of the head. One of up to memory.Uncounted bytes fits the buffers on its way.
func (x *exchange) sends(body io.ReadCloser, length int64) io.ReadCloser {
	if x.req.HeaderTimeout <= 0 || length >= 0 && length <= memory.Uncounted {
		return body
	}
	return &sentBody{body, x}
}

// sentBody is a body that is sent. The time that it waits for its own source, such as a
// client, is not the upstream's.
type sentBody struct {
	io.ReadCloser
	x *exchange
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.x.limits.sending(0)
	n, err := b.ReadCloser.Read(p)
	b.x.sent.Add(int64(n))
	b.x.limits.sending(b.x.req.HeaderTimeout)
	return n, err
}

// send makes the call.
func (x *exchange) send(hr *http.Request) {
	if x.req.Socket != nil {
		x.sendSocket(hr)
		return
	}
	res, err := x.transport.RoundTrip(hr)
	x.limits.answered()
	if err != nil {
		x.err = x.failed(err, upstream.ErrNetwork)
		if x.sent.Load() > upstream.SentMuch {
			x.err = fmt.Errorf("%w: %w", x.err, upstream.ErrSent)
		}
		x.finish()
		return
	}
	if res.StatusCode < 200 {
		// The body of 101 is the bare connection: reading it does not end with the call.
		res.Body.Close()
		res.Body, res.ContentLength = http.NoBody, 0
	}
	x.answer = &upstream.Response{Status: res.StatusCode, Header: answerHeader(res.Header, res.StatusCode)}
	body := &upstreamBody{exchange: x, body: res.Body, length: res.ContentLength}
	if res.Uncompressed {
		body.length = -1
	}
	x.answer.Body = body
	if x.req.MaxBody <= 0 {
		x.limits.within(0, nil, stream.ErrTimeout)
		return
	}
	upTo := x.req.MaxBody + 1
	if x.req.Memory != nil {
		upTo = min(upTo, memory.Uncounted+1) // Wait reads the rest, which needs memory
	}
	all, done, err := body.gather(nil, upTo, x.req.MaxBody)
	switch {
	case err != nil:
		x.answer, x.err = nil, err
	case done:
		x.answer.Body, x.answer.Owned = stream.FromBytes(all), true
	default:
		body.unread = all
	}
}

// Wait returns the answer, with its whole body if that was requested.
func (x *exchange) Wait() (*upstream.Response, error) {
	x.outside(x.caller, func() { <-x.done })
	if x.req.Memory != nil {
		x.req.Memory.Sent()
	}
	if x.err != nil || x.req.MaxBody <= 0 {
		return x.answer, x.err
	}
	if body, ok := x.answer.Body.(*upstreamBody); ok {
		all, err := body.ReadAll(x.req.MaxBody)
		if err != nil {
			x.answer, x.err = nil, err
			return nil, err
		}
		x.answer.Body, x.answer.Owned = stream.FromBytes(all), true
	}
	return x.answer, nil
}

// finish ends a call whose body is not read any more.
func (x *exchange) finish() {
	x.limits.end()
	x.cancel(nil)
}

// failed returns the error for one of net/http: that of a limit, of the client's
// departure, or other.
func (x *exchange) failed(err, other error) error {
	switch cause := context.Cause(x.ctx); {
	case cause == nil:
	case errors.Is(cause, upstream.ErrTimeout), errors.Is(cause, stream.ErrTimeout), errors.Is(cause, stream.ErrIdle):
		return cause
	case !x.req.Outlive && x.caller.Err() != nil:
		return upstream.ErrCanceled
	}
	if errors.Is(err, errPanic) || x.upload != nil && x.upload.failed.Load() {
		return upstream.ErrCanceled // the upstream did not fail
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return &failure{upstream.ErrLocal, err}
	}
	if errors.Is(err, upstream.ErrNetwork) {
		return err
	}
	if other == upstream.ErrNetwork {
		other = unreachable(err)
	}
	return &failure{other, err}
}

// unreachable returns the error of package upstream for one of net/http before an answer.
func unreachable(err error) error {
	var (
		name   *net.DNSError
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
		alert  tls.AlertError
	)
	switch {
	case errors.As(err, &name):
		return upstream.ErrName
	case errors.Is(err, syscall.ECONNREFUSED):
		return upstream.ErrRefused
	case errors.As(err, &cert), errors.As(err, &record), errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return upstream.ErrTLS
	}
	return upstream.ErrNetwork
}

// failure is one of the errors of package upstream, with its cause for the log.
type failure struct{ kind, cause error }

func (f *failure) Error() string   { return f.kind.Error() + ": " + f.cause.Error() }
func (f *failure) Unwrap() []error { return []error{f.kind, f.cause} }

// addField adds a field to a header of net/http. The slices of all its fields share
// values, which has capacity for one more and is returned with it.
func addField(h http.Header, values []string, f httpmsg.Field) []string {
	name := headerName(f.Name)
	if before, ok := h[name]; ok {
		h[name] = append(before, f.Value)
		return values
	}
	n := len(values)
	values = append(values, f.Value)
	h[name] = values[n : n+1 : n+1]
	return values
}

// headerName returns a field's name as net/http writes it. The edge platform sends
// names as they are, in lower case, which HTTP does not distinguish.
//
// The fields of idempotency stay in lower case, where net/http does not look for
// them: it would send such a call again after a broken connection.
func headerName(name string) string {
	switch name {
	case "idempotency-key", "x-idempotency-key":
		return name
	}
	return http.CanonicalHeaderKey(name)
}

// ignored are the fields of an answer that are left out.
var ignored = set(upstream.Ignored())

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// answerHeader returns the fields of an answer that the gateway receives, ordered by
// name: two of one name are joined, as the edge platform does.
func answerHeader(from http.Header, status int) httpmsg.Header {
	h := make(httpmsg.Header, 0, len(from))
	for name, values := range from {
		lower := strings.ToLower(name)
		if ignored[lower] && !(status >= 400 && lower == upstream.Place) || len(values) == 0 {
			continue
		}
		value := values[0]
		if len(values) > 1 {
			value = strings.Join(values, ", ")
		}
		h = append(h, httpmsg.Field{Name: lower, Value: value})
	}
	slices.SortFunc(h, func(a, b httpmsg.Field) int { return strings.Compare(a.Name, b.Name) })
	return h
}
