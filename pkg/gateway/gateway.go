// Package gateway is the front door: it finds the route and the caller, and it
// alone writes errors, cross-origin fields and the log line.
package gateway

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"io"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/people"
	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/capture"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/contentcoding"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// authenticator is the part of auth.Authenticator used here.
type authenticator interface {
	Data(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
	Realtime(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
	Key(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
	List(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
	Manage(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
	Operator(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
	Metrics(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
	// Refused records that the role of the person who calls does not include the call.
	Refused(ctx context.Context, c *auth.Call)
}

// Gateway serves requests.
type Gateway struct {
	// Misconfigured names what is missing from the worker's secrets, or with Invalid
	// what has a value that cannot be used; while it is not empty every route but
	// /health answers 503.
	Misconfigured string
	Invalid       bool
	Auth          authenticator
	// Managed is that of Ports.
	Managed func(ctx context.Context, method, machineID, path string) string
	Now     func() time.Time
	// Log writes one line. Quiet leaves out the lines of successes.
	Log   func(level int, line string)
	Quiet bool
	// Redact takes credentials out of a text that goes to the log.
	Redact func(string) string
	// Observers receive each request in order once its answer has ended.
	Observers []Observer
	// Decoder decodes the bodies of requests.
	Decoder contentcoding.Decoder
	// Memory bounds what all calls have in memory together. May be nil.
	Memory *memory.Budget
	// Captures collects the bodies of calls whose machine stores them.
	Captures capture.Collector
	// Pause holds back the refusals of hasty clients. May be nil.
	Pause upstream.Pauser
	// PublicURL is scheme and host of the documentation that errors refer to; "" takes
	// those of the request.
	PublicURL string

	table *table

	mu      sync.Mutex        // of the fields that follow
	ids     *mathrand.ChaCha8 // of requests; nil before the first
	sockets openSockets
	hasty   hasty
}

// SetRoutes returns the gateway its routes.
func (g *Gateway) SetRoutes(routes []Route) { g.table = newTable(routes) }

// Serve answers one request. It never returns nil.
//
// A request is admitted: its route and its caller are known, and it may have the memory that
// it asks for. The handler of the route parses it, sends it and shapes the answer. A failure
// becomes an answer in the route's dialect, and what follows the answer is one function.
func (g *Gateway) Serve(ctx context.Context, r *httpmsg.Request) *httpmsg.Response {
	r.ID = g.requestID()
	machine, path := split(r)
	route, params := g.table.find(path)
	if field := r.Header.Get("upgrade"); field != "" && upgrades(field) {
		return g.upgrade(ctx, r, route, machine, path, params, field)
	}
	if route == nil {
		r.Route = "none"
		if g.Misconfigured != "" {
			return g.finish(r, g.unmatched(path), nil, nil, g.misconfigured())
		}
		e := g.noRoute(r, machine, path)
		if e.Status == 404 && opened(r, path) {
			return g.finish(r, g.unmatched(path), nil, pageNotFound(), nil)
		}
		return g.finish(r, g.unmatched(path), nil, nil, e)
	}
	r.Route = route.Pattern
	if route.Dialect == llm.Gemini {
		fromGemini(r)
	}
	m := route.Method(r.Method)
	if m == nil {
		if r.Method == "OPTIONS" && route.Cors != endpoint.NoCors {
			return g.finish(r, route, nil, preflight(route), nil)
		}
		return g.finish(r, route, nil, nil, methodNotAllowed(r, route))
	}
	resp, c, err := g.serve(ctx, r, route, m, machine, params)
	return g.finish(r, route, c, resp, err)
}

// serve admits a request and calls its handler. The call is nil if the caller is not known.
func (g *Gateway) serve(ctx context.Context, r *httpmsg.Request, route *Route, m *Method, machine string,
	params []string) (*httpmsg.Response, *auth.Call, error) {
	var resp *httpmsg.Response
	c, err := g.admit(ctx, r, route, m, machine)
	if err == nil {
		c.Params, c.MaxBody = params, route.MaxBody
		g.begin(c, route)
		resp, err = g.run(ctx, c, route, m)
	}
	if err != nil && c != nil && c.Trace.Asked == "" {
		c.Trace.Asked = askedOf(r, route, params)
	}
	g.holdBack(ctx, c, err)
	return resp, c, err
}

// admit finds the caller of a request and judges what its head says. With an error the call
// is that of a caller who is known, or nil.
func (g *Gateway) admit(ctx context.Context, r *httpmsg.Request, route *Route, m *Method,
	machine string) (*auth.Call, error) {
	if g.Misconfigured != "" && route.Pattern != "/health" {
		return nil, g.misconfigured()
	}
	if hop := r.Header.Get(clientheader.Hop); hop != "" {
		if n, err := strconv.Atoi(hop); err != nil || n >= provider.MaxHops {
			return nil, apierr.New(508, "loop_detected", "The call has passed too many gateways. Remove this gateway's own address from its accounts.")
		}
	}
	access := m.Access
	if access == endpoint.Nobody {
		access = route.Access
	}
	c, err := g.call(ctx, r, access, machine)
	if err == nil && c.Person != nil && !m.Admits(c.Person.Role) {
		err = rpc.ErrRole()
		if m.Role == people.Nobody {
			err = rpc.ErrOperator()
		}
		g.Auth.Refused(ctx, c)
	}
	if c != nil && c.Key != nil {
		c.Trace.KeyID = c.Key.ID
	}
	if err == nil && g.Managed != nil && (access == endpoint.Manage || access == endpoint.Operator) {
		if file := g.Managed(ctx, r.Method, c.MachineID, r.Path); file != "" {
			err = manage.ErrManagedByFile(file)
		}
	}
	if err == nil && r.Body != nil {
		err = g.checkBody(r, route)
	}
	if err == nil && route.Translates && m.Name == "POST" && !strings.HasSuffix(r.Path, ":countTokens") {
		err = accounts.Busy(c.Machine, c.Trace.KeyID, r.Start)
	}
	return c, err
}

// askedOf returns the model that a call asks for which is refused before it is read, or
// because it is not valid: that of the path, "gemini-2.5-pro:generateContent", or of a body
// that has arrived whole.
func askedOf(r *httpmsg.Request, route *Route, params []string) string {
	if route.Dialect.ModelInURL() && len(params) > 0 {
		return params[0][:max(strings.LastIndexByte(params[0], ':'), 0)]
	}
	if b, ok := r.Body.(*stream.Bytes); ok {
		return gjson.GetBytes(b.All(), "model").Str
	}
	return ""
}

// run calls the handler. Until its answer begins the call has the memory of its
// body, since the next account may need it, and afterwards that of an answer that is
// on its way to the client.
func (g *Gateway) run(ctx context.Context, c *auth.Call, route *Route, m *Method) (*httpmsg.Response, error) {
	r := c.Request
	if !g.Memory.Start(&c.Memory, c.MachineID, arrived(r.Body)) {
		return nil, memory.Full()
	}
	r.Memory = &c.Memory
	done := false
	defer func() {
		if !done { // a panic
			c.Memory.Release()
			c.Capture.Release()
		}
	}()
	c.Trace.RequestBytes = max(r.Length, 0) // encoded
	if r.Body != nil && !route.AnyEncoding {
		g.decodeBody(ctx, c)
	}
	if isRead(r, route) {
		r.Body = c.Memory.Read(ctx, r.Body, r.Length, route.Translates)
	}
	resp, err := m.Handler(ctx, c)
	done = true
	if whole := wholeBody(resp); whole > memory.Uncounted {
		c.Memory.Passed(whole)
		c.Forget()
		r.Body = nil
	} else {
		c.Memory.Release()
	}
	return resp, err
}

// arrived returns the length of a small body that the host has read already. A longer
// one, as of a message of a WebSocket, acquires its memory like any other.
func arrived(body io.ReadCloser) int64 {
	if b, ok := body.(*stream.Bytes); ok && b.Len() <= memory.Uncounted {
		return int64(b.Len())
	}
	return 0
}

// wholeBody returns the length of an answer in memory, 0 for any other.
func wholeBody(resp *httpmsg.Response) int64 {
	if resp == nil {
		return 0
	}
	switch b := resp.Body.(type) {
	case *stream.Bytes:
		return int64(len(b.All()))
	case *stream.Parts:
		return b.Size()
	}
	return 0
}

// isRead reports whether the body of a request is read into memory, and not by the
// endpoint in another form (docs/reference/reliability.md, T56, F56).
func isRead(r *httpmsg.Request, route *Route) bool {
	if r.Body == nil || r.Length >= 0 && r.Length <= memory.Uncounted {
		return false
	}
	// A form is held by the host, which counts it.
	return route.MaxBody <= maxChat || endpoint.IsJSON(r.Header.Get("content-type"))
}

// call finds out who calls.
func (g *Gateway) call(ctx context.Context, r *httpmsg.Request, access endpoint.Access,
	machine string) (*auth.Call, error) {
	switch access {
	case endpoint.Public:
		return &auth.Call{Request: r}, nil
	case endpoint.Data:
		return g.Auth.Data(ctx, r, machine)
	case endpoint.Own:
		return g.Auth.Key(ctx, r, machine)
	case endpoint.Realtime:
		return g.Auth.Realtime(ctx, r, machine)
	case endpoint.List:
		return g.Auth.List(ctx, r, machine)
	case endpoint.Manage:
		return g.Auth.Manage(ctx, r, machine)
	case endpoint.Operator:
		return g.Auth.Operator(ctx, r, machine)
	case endpoint.Metrics:
		return g.Auth.Metrics(ctx, r, machine)
	}
	return nil, notFound()
}

// checkBody refuses a body by what its head says, before a byte of it is read.
func (g *Gateway) checkBody(r *httpmsg.Request, route *Route) error {
	if r.Length > route.MaxBody {
		return endpoint.BodyTooLarge(route.MaxBody)
	}
	if enc := encodingOf(r); enc != "" && !route.AnyEncoding && !g.decodes(route, enc) {
		return apierr.New(415, "unsupported_encoding",
			"This Content-Encoding is not accepted here. JSON bodies of /v1 may be gzip, br or zstd.")
	}
	return nil
}

// finish returns the answer to a request, which its caller's call or an error has. c is nil
// if the caller is not known.
func (g *Gateway) finish(r *httpmsg.Request, route *Route, c *auth.Call, resp *httpmsg.Response,
	err error) *httpmsg.Response {
	if c == nil {
		c = &auth.Call{Request: r}
	}
	resp, e := g.shape(c, route, resp, err)
	resp.After = []func(context.Context){g.after(resp.After, &Ended{Call: c, Status: resp.Status, Err: e})}
	return resp
}

// shape turns a failure into an answer and adds the header fields of every answer. It returns
// the error that the answer reports, or nil.
func (g *Gateway) shape(c *auth.Call, route *Route, resp *httpmsg.Response, err error) (*httpmsg.Response,
	*apierr.Error) {
	r, t := c.Request, &c.Trace
	var e *apierr.Error
	if err != nil || resp == nil {
		e = refusal(err)
		if route.Dialect == llm.Gemini { // its routes are not all of chat, which does this itself
			e = route.Dialect.Client().Error(e)
		}
		if t.Err == nil && (e.Err != nil || e.Status >= 500) {
			t.Err = e
		}
		resp = write(g.documented(e, r), route, r)
	}
	t.AnswerBytes = wholeBody(resp)
	resp.Template = g.table.template(route, &resp.Header, r.Header.Get("origin") != "")
	h := &resp.Header
	h.Add("x-request-id", r.ID)
	if route.Dialect.Client().IDField {
		h.Add("request-id", r.ID)
	}
	traced(h, t)
	if c.Capture != nil {
		resp.Body = c.Capture.Answer(resp.Get("content-type"), resp.Body)
	}
	return resp, e
}

// traced adds the fields that say how a call was answered.
func traced(h *httpmsg.Header, t *accounts.Trace) {
	if t.Model != "" {
		h.Add("x-weir-model", headerSafe(t.Model))
	}
	if t.ConnectionID != "" {
		h.Add("x-weir-connection-id", t.ConnectionID)
	}
	if n := t.Attempts(); n > 0 {
		h.Add("x-weir-attempts", strconv.Itoa(n))
	}
	if cost := t.Cost(); cost != "" {
		h.Add("x-weir-cost", cost)
	}
	if t.Affinity != "" {
		h.Add("x-weir-affinity", t.Affinity)
	}
	dropped, set := t.Changed()
	if len(dropped) > 0 {
		h.Add("x-weir-dropped", headerSafe(strings.Join(dropped, ",")))
	}
	if len(set) > 0 {
		h.Add("x-weir-set", headerSafe(strings.Join(set, ",")))
	}
	if len(t.CacheMarks) > 0 {
		h.Add("x-weir-cache-marks", strings.Join(t.CacheMarks, ","))
	}
}

// after returns what follows an answer once it has ended: the work of its endpoint, that of
// the observers, and the line of the log.
func (g *Gateway) after(own []func(context.Context), e *Ended) func(context.Context) {
	return func(ctx context.Context) {
		e.At = g.Now() // the others wait
		for _, follow := range own {
			follow(ctx)
		}
		e.Call.Memory.Release()
		for _, o := range g.Observers {
			o.Ended(ctx, e)
		}
		g.log(e)
	}
}

// requestID makes the id of a request, 128 random bits: it says nothing of the calls of
// others. The platform is asked for random bits once.
func (g *Gateway) requestID() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ids == nil {
		var seed [32]byte
		rand.Read(seed[:])
		g.ids = mathrand.NewChaCha8(seed)
	}
	var id [16]byte
	binary.LittleEndian.PutUint64(id[:], g.ids.Uint64())
	binary.LittleEndian.PutUint64(id[8:], g.ids.Uint64())
	var b [36]byte
	return string(hex.AppendEncode(append(b[:0], "req_"...), id[:]))
}

func (g *Gateway) misconfigured() error {
	why := "is missing or shorter than " + strconv.Itoa(minSecret) + " bytes"
	if g.Invalid {
		why = "is not valid"
	}
	return apierr.New(503, "misconfigured", "The gateway is not configured: %s %s.", g.Misconfigured, why)
}

// upgrades reports whether an Upgrade field requires another protocol. An offer
// of HTTP/2 comes with an ordinary request (RFC 9110, 7.8), which is served.
func upgrades(field string) bool {
	for name := range strings.SplitSeq(field, ",") {
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case name == "", name == "h2c", strings.HasPrefix(name, "http/"), strings.HasPrefix(name, "tls/"):
		default:
			return true
		}
	}
	return false
}

// unmatched returns what answers of a path have that has no route.
func (g *Gateway) unmatched(path string) *Route {
	switch {
	case strings.HasPrefix(path, "/v1/messages"):
		return &g.table.none[0]
	case strings.HasPrefix(path, "/v1/"):
		return &g.table.none[1]
	case isGemini(path), strings.HasPrefix(path, "/upload/"):
		return &g.table.none[2]
	}
	return &g.table.none[3]
}

// safeMethod keeps a method short enough to repeat in a message.
func safeMethod(m string) string {
	if len(m) > 16 {
		return "this method"
	}
	return m
}

// headerSafe drops what may not stand in a header value.
func headerSafe(s string) string {
	ok := func(c byte) bool { return c >= 0x20 && c < 0x7f }
	for i := 0; i < len(s); i++ {
		if !ok(s[i]) {
			var b strings.Builder
			for j := 0; j < len(s); j++ {
				if ok(s[j]) {
					b.WriteByte(s[j])
				} else {
					b.WriteByte('?')
				}
			}
			return b.String()
		}
	}
	return s
}
