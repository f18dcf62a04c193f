// Package host serves the program natively: net/http in front of it and behind it.
// A request is a goroutine, which runs the program and sends the answer.
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
	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/metrics"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
)

// Config describes a host.
type Config struct {
	Gateway gateway.Config
	// Memory is how many bytes large bodies and answers may have in memory at once.
	// Zero means defaultMemory for each core.
	Memory int64
	// Calls is how many calls may be under way at once. Zero means no bound.
	Calls int
	// Requests is the number of the latest requests that a machine lists. Zero means
	// defaultRequests.
	Requests int64
	// Objects calls the objects of machines.
	Objects rpc.Stub
	// Outside runs wait, which waits for something else than the program: with a context
	// of a machine's object, without its turn. nil means that there are no turns.
	Outside func(ctx context.Context, wait func())
	// Transport makes the upstream calls. It does not follow redirects.
	Transport http.RoundTripper
	// Dialer makes the connections for calls through proxies.
	Dialer proxydial.Dialer
	// Origin returns the scheme and host of a request as the client addressed it.
	Origin func(*http.Request) string
	// ClientAddress returns the IP address of a request's client, "" if unknown.
	ClientAddress func(*http.Request) string
	// SpendCode is gateway.Ports.SpendCode. It is called by several goroutines at once.
	SpendCode func(code string) bool
	// Process is gateway.Ports.Process.
	Process func() []metrics.Family
	// Replicas are the servers that share the machines; nil for one that is alone.
	Replicas *gateway.Replicas
	// Log writes one line; from level 2 on it is an error. It is called by several
	// goroutines at once.
	Log func(level int, line string)
	Now func() time.Time // nil means time.Now
	// Disk and Newer are those of gateway.Ports.
	Disk  func() (free, size int64)
	Newer func() string
	// ConfigFile is gateway.Ports.ConfigFile.
	ConfigFile func(machineID string) *manage.ConfigFile
	// Managed is gateway.Ports.Managed.
	Managed func(ctx context.Context, method, machineID, path string) string
}

// Host is the program behind net/http. It implements http.Handler.
type Host struct {
	Config
	app       *gateway.App
	templates sync.Map      // *httpmsg.Template: its fields as []constant
	draining  atomic.Bool   // new calls are refused
	stopped   chan struct{} // closed then
	stopOnce  sync.Once
	calls     atomic.Int64
	flows     atomic.Int64
	afters    atomic.Int64
	buffers   sync.Pool // *[]byte of largeRead bytes
	inbox     inbox
}

// defaultMemory is how many bytes large bodies and answers may have for each core.
const defaultMemory = 128 << 20

// NewApp returns the program with the ports of this host. It also is the logic of the
// objects.
func NewApp(c Config) *gateway.App {
	if c.Gateway.MaxMemory = c.Memory; c.Memory <= 0 {
		c.Gateway.MaxMemory = defaultMemory * int64(runtime.GOMAXPROCS(0))
	}
	return gateway.New(c.Gateway, Ports(&c))
}

// New returns a host of the program.
func New(c Config, app *gateway.App) *Host {
	if c.Now == nil {
		c.Now = time.Now
	}
	h := &Host{Config: c, app: app, stopped: make(chan struct{})}
	if c.Memory > 0 {
		h.inbox.max = max(c.Memory/2, minInbox)
	}
	h.buffers.New = func() any { b := make([]byte, largeRead); return &b }
	return h
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
	body, e := bodyOf(w, hr, r)
	if e != nil {
		h.refuse(w, hr, r, e)
		return
	}
	resp := h.serve(hr.Context(), r)
	if resp.Status == apierr.StatusClientLeft && isCut(hr.Context()) {
		w.Header().Set("Connection", "close")
		h.later(hr.Context(), resp.After)
		again := *r // what follows the first answer has the other one
		resp = h.app.Refuse(&again, apierr.Stopping())
	}
	if body != nil && !body.whole.Load() {
		closeAfter(w, hr)
	}
	defer func() {
		if body != nil {
			body.end()
		}
		h.later(hr.Context(), resp.After)
	}()
	if resp.Upgrade != nil {
		h.converse(w, hr, r, resp)
		return
	}
	h.respond(w, hr, resp)
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

// serve runs the program for one request.
func (h *Host) serve(ctx context.Context, r *httpmsg.Request) (resp *httpmsg.Response) {
	defer func() {
		if p := recover(); p != nil {
			h.Log(2, redact.PanicLine(r.ID, p))
			resp = h.app.Refuse(r, apierr.New(500, "", "Internal error."))
		}
	}()
	return h.app.Serve(ctx, r)
}

// refuse answers a request that the program does not receive.
func (h *Host) refuse(w http.ResponseWriter, hr *http.Request, r *httpmsg.Request, e *apierr.Error) {
	resp := h.app.Refuse(r, e)
	if hr.ContentLength != 0 {
		closeAfter(w, hr)
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(discardTime))
	}
	h.respond(w, hr, resp)
	h.later(hr.Context(), resp.After)
}

// isCut reports whether a call ended because the server cut it, as its context says,
// not because its client left.
func isCut(ctx context.Context) bool { return errors.Is(context.Cause(ctx), stream.ErrStopping) }

// later runs what follows an answer, which the client does not wait for.
func (h *Host) later(ctx context.Context, after []func(context.Context)) {
	if len(after) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	h.afters.Add(1)
	go func() {
		defer h.afters.Add(-1)
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
