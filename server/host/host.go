// Package host serves the program natively: net/http in front of it and behind
// it, with the behaviour of the edge platform.
//
// The program runs in cells, one goroutine at a time in each. Its ports leave the
// cell while they wait, and bodies flow outside the cells.
package host

import (
	"context"
	"errors"
	"log"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"weir/pkg/credentials/proxydial"
	"weir/pkg/gateway"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
	"weir/server/cell"
)

// Config describes a host.
type Config struct {
	Gateway gateway.Config
	// Cells is the number of instances of the program that serve requests. Zero
	// means one for each core.
	Cells int
	// Memory is how many bytes large bodies and answers may have in memory at once,
	// in all cells together. Zero means defaultMemory for each.
	Memory int64
	// Calls is how many calls may be under way at once. Zero means no bound.
	Calls int
	// Requests is the number of the latest requests that a machine lists. Zero means
	// defaultRequests.
	Requests int64
	// Objects calls the objects of machines. It is called outside the cells.
	Objects rpc.Stub
	// Transport makes the upstream calls. It does not follow redirects.
	Transport http.RoundTripper
	// Dialer returns the connections for calls through proxies. Its calls wait with
	// the Leaver.
	Dialer func(cell.Leaver) proxydial.Dialer
	// Origin returns the scheme and host of a request as the client addressed it.
	Origin func(*http.Request) string
	// ClientAddress returns the IP address of a request's client, "" if unknown.
	ClientAddress func(*http.Request) string
	// SpendCode is gateway.Ports.SpendCode. It is called by several goroutines at
	// once, inside a cell.
	SpendCode func(code string) bool
	// Log writes one line; from level 2 on it is an error. It is called by several
	// goroutines at once.
	Log func(level int, line string)
	Now func() time.Time // nil means time.Now
}

// Host is the program behind net/http. It implements http.Handler.
type Host struct {
	Config
	instances []*instance
	next      atomic.Uint32
	draining  atomic.Bool   // new calls are refused
	stopped   chan struct{} // closed then
	stopOnce  sync.Once
	calls     atomic.Int64
	flows     atomic.Int64
	afters    atomic.Int64
	buffers   sync.Pool // *[]byte of largeRead bytes
	inbox     inbox
}

// instance is one instance of the program in its cell.
type instance struct {
	cell.Cell
	app       *gateway.App
	templates [][]constant // of answers, by their Number

	changes atomic.Bool // changed has machines
	mu      sync.Mutex
	changed map[string]struct{} // by other instances
}

// defaultMemory is how many bytes large bodies and answers may have in a cell.
const defaultMemory = 128 << 20

// New returns a host with its cells.
func New(c Config) *Host {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Cells <= 0 {
		c.Cells = runtime.GOMAXPROCS(0)
	}
	h := &Host{Config: c, stopped: make(chan struct{})}
	c.Gateway.MaxMemory = defaultMemory
	if c.Memory > 0 {
		c.Gateway.MaxMemory = c.Memory / int64(c.Cells)
		h.inbox.max = max(c.Memory/2, minInbox)
	}
	h.buffers.New = func() any { b := make([]byte, largeRead); return &b }
	for range c.Cells {
		i := &instance{}
		ports := Ports(&i.Cell, &h.Config)
		ports.Changed = func(machineID string) { h.announce(i, machineID) }
		i.app = gateway.New(c.Gateway, ports)
		h.instances = append(h.instances, i)
	}
	return h
}

// enter returns an instance whose cell the caller is inside of: one that is idle,
// else the next in turn.
func (h *Host) enter() *instance {
	i := h.choose()
	if i.changes.Load() {
		i.learn()
	}
	return i
}

func (h *Host) choose() *instance {
	for _, i := range h.instances {
		if i.TryEnter() {
			return i
		}
	}
	i := h.instances[int(h.next.Add(1))%len(h.instances)]
	i.Enter()
	return i
}

// announce reports a change that an instance has made to the others, before the
// change is acknowledged: whatever cell serves the next call, it knows of it.
func (h *Host) announce(by *instance, machineID string) {
	for _, i := range h.instances {
		if i == by {
			continue
		}
		i.mu.Lock()
		if i.changed == nil {
			i.changed = map[string]struct{}{}
		}
		i.changed[machineID] = struct{}{}
		i.mu.Unlock()
		i.changes.Store(true)
	}
}

// learn invalidates what other instances have changed. It is called inside the cell.
func (i *instance) learn() {
	i.changes.Store(false)
	i.mu.Lock()
	changed := i.changed
	i.changed = nil
	i.mu.Unlock()
	for id := range changed {
		i.app.ChangedElsewhere(id)
	}
}

// Drain refuses calls from now on with 503. Those under way
// continue; a WebSocket ends when the program waits for its client.
func (h *Host) Drain() {
	h.draining.Store(true)
	h.stopOnce.Do(func() { close(h.stopped) })
}

// Wait returns when what follows the answers has been done: usage is recorded and
// logs are written. It is called when no request is under way any more. The error
// is that of the context, if it ends first.
func (h *Host) Wait(ctx context.Context) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for h.afters.Load() > 0 {
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// InFlight returns how many requests, bodies that the program observes, and
// recordings after an answer are under way, for tests.
func (h *Host) InFlight() (calls, flows, afters int) {
	return int(h.calls.Load()), int(h.flows.Load()), int(h.afters.Load())
}

// ServeHTTP answers one request. It panics with http.ErrAbortHandler to close a
// connection whose answer has broken off. A call whose context ends with the cause
// stream.ErrStopping gets the error of its dialect.
func (h *Host) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	n := h.calls.Add(1)
	defer h.calls.Add(-1)
	defer h.recover()
	if hr.TransferEncoding != nil || !hr.ProtoAtLeast(1, 1) {
		// A Content-Length beside it, which net/http has dropped, may have said
		// otherwise: what follows is not another request (RFC 9112, 6.1). Of a
		// request of HTTP/1.0 it drops Transfer-Encoding without a trace.
		closeAfter(w, hr)
	}
	r, ok := h.request(hr)
	if !ok {
		h.refuse(w, hr, r, apierr.New(400, "invalid_request", "The address of the request is invalid."))
		return
	}
	if size(r) > maxHead {
		h.refuse(w, hr, r, apierr.New(431, "", "The request's headers are too large: they have over %d bytes.", maxHead))
		return
	}
	if h.draining.Load() {
		w.Header().Set("Connection", "close")
		h.refuse(w, hr, r, apierr.Stopping())
		return
	}
	if h.Calls > 0 && n > int64(h.Calls) && hr.URL.Path != "/health" {
		e := apierr.New(503, "overloaded", "The gateway serves as many calls as it can at the moment. Try again in a moment.")
		e.RetryAfter = time.Second
		h.refuse(w, hr, r, e)
		return
	}
	i, e := h.open(w, hr, r)
	if e != nil {
		h.refuse(w, hr, r, e)
		return
	}
	body, _ := r.Body.(*clientBody)
	a := h.serve(hr.Context(), i, r)
	if a.Status == apierr.StatusClientLeft && isCut(hr.Context()) {
		w.Header().Set("Connection", "close")
		h.later(hr.Context(), i, a.After)
		i, a = h.refusal(r, apierr.Stopping())
	}
	if body != nil && !body.source.whole.Load() {
		closeAfter(w, hr)
	}
	defer func() {
		if body != nil {
			body.end()
		}
		h.later(hr.Context(), i, a.After)
	}()
	if a.Upgrade != nil {
		h.converse(w, hr, i, r, a)
		return
	}
	h.respond(w, hr, a)
}

// recover closes the connection of an answer whose body panicked.
func (h *Host) recover() {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p)
	default:
		h.Log(2, redact.PanicLine("", p))
		panic(http.ErrAbortHandler)
	}
}

// open enters a cell, with the body of the request if that is small.
func (h *Host) open(w http.ResponseWriter, hr *http.Request, r *httpmsg.Request) (*instance, *apierr.Error) {
	switch {
	case hr.ContentLength == 0:
	case hr.ContentLength > 0 && hr.ContentLength <= smallBody && hr.Header["Content-Encoding"] == nil:
		body, err := readSmall(w, hr)
		if err != nil {
			return nil, err
		}
		r.Body = body
	default:
		i := h.enter()
		r.Body = newClientBody(i, w, hr)
		return i, nil
	}
	return h.enter(), nil
}

// serve runs the program for one request and leaves the cell.
func (h *Host) serve(ctx context.Context, i *instance, r *httpmsg.Request) (a answer) {
	defer i.Exit()
	defer func() {
		if p := recover(); p != nil {
			h.Log(2, redact.PanicLine(r.ID, p))
			a = i.answerOf(i.app.Refuse(r, apierr.New(500, "", "Internal error.")))
		}
	}()
	return i.answerOf(i.app.Serve(ctx, r))
}

// refuse answers a request that the program does not receive.
func (h *Host) refuse(w http.ResponseWriter, hr *http.Request, r *httpmsg.Request, e *apierr.Error) {
	i, a := h.refusal(r, e)
	if hr.ContentLength != 0 {
		closeAfter(w, hr)
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(discardTime))
	}
	h.respond(w, hr, a)
	h.later(hr.Context(), i, a.After)
}

// refusal returns the answer for a request that the program does not serve.
func (h *Host) refusal(r *httpmsg.Request, e *apierr.Error) (*instance, answer) {
	i := h.enter()
	defer i.Exit() // also if Refuse panics
	return i, i.answerOf(i.app.Refuse(r, e))
}

// isCut reports whether a call ended because the server cut it, as its context says,
// not because its client left.
func isCut(ctx context.Context) bool { return errors.Is(context.Cause(ctx), stream.ErrStopping) }

// later runs what follows an answer, which the client does not wait for.
func (h *Host) later(ctx context.Context, i *instance, after []func(context.Context)) {
	if len(after) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	h.afters.Add(1)
	go func() {
		defer h.afters.Add(-1)
		i.Enter()
		defer i.Exit()
		defer func() {
			if p := recover(); p != nil {
				h.Log(2, redact.PanicLine("", p))
			}
		}()
		for _, f := range after {
			f(ctx)
		}
	}()
}

// ErrorLog returns a logger for http.Server, whose lines go to the host's log.
func (h *Host) ErrorLog() *log.Logger { return log.New(logWriter{h}, "", 0) }
