package gateway

import (
	"context"
	"strings"
	"time"

	"weir/pkg/auth"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/socket"
)

// maxSockets bounds the WebSockets that are open at once in an instance of the
// program: each has a task and buffers. A machine has a quarter of them, and the
// handshakes of a key, which are not closed for others, half of that.
const maxSockets = 1024

// upgrade answers a request for another protocol, which must be a WebSocket on a route
// that serves it. 426 tells clients to use HTTP (docs/reference/clients.md, 2.6).
func (g *Gateway) upgrade(ctx context.Context, r *httpmsg.Request, route *Route, machine, path string, params []string,
	field string) *httpmsg.Response {
	r.Route = "none"
	if route != nil {
		r.Route = route.Pattern
	}
	if route == nil || route.Upgrade == nil || r.Method != "GET" ||
		!strings.EqualFold(strings.TrimSpace(field), "websocket") {
		return g.finish(r, g.unmatched(path), nil, nil, UpgradeNotSupported())
	}
	moveProtocolKey(&r.Header)
	var opened *openSocket
	open := func(ctx context.Context, c *auth.Call) (resp *httpmsg.Response, err error) {
		o := &openSocket{machine: c.MachineID, key: c.Trace.KeyID}
		if !g.openSocket(o) {
			e := apierr.New(503, "too_many_sockets", "The gateway has too many WebSocket connections. Try again in a moment.")
			e.RetryAfter = time.Second
			return nil, e
		}
		defer func() {
			if opened == nil {
				g.closeSocket(o)
			}
		}()
		if resp, err = route.Upgrade(ctx, c); err == nil && resp.Upgrade != nil {
			opened = o
		}
		return resp, err
	}
	resp, c, err := g.serve(ctx, r, route, &Method{Name: "GET", Handler: open}, machine, params)
	resp = g.finish(r, route, c, resp, err)
	if opened != nil {
		resp.Upgrade.Machine = opened.machine
		serve := resp.Upgrade.Serve
		resp.Upgrade.Serve = func(ctx context.Context, conn socket.Conn) {
			g.mu.Lock()
			opened.conn = conn
			g.mu.Unlock()
			serve(ctx, conn)
		}
		closes := func(context.Context) { g.closeSocket(opened) }
		resp.After = append([]func(context.Context){closes}, resp.After...)
	}
	return resp
}

// openSocket notes a WebSocket and reports whether there may be another one, for which
// one that is silent may have to end.
func (g *Gateway) openSocket(o *openSocket) bool {
	g.mu.Lock()
	victim, ok := g.sockets.enter(o)
	g.mu.Unlock()
	if victim != nil {
		victim.Evict()
	}
	return ok
}

// closeSocket notes that a WebSocket has ended.
func (g *Gateway) closeSocket(o *openSocket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sockets, o)
}

// openSockets are the WebSockets of an instance of the program, and handshakes whose
// upstream is being called.
type openSockets map[*openSocket]struct{}

type openSocket struct {
	machine, key string
	conn         socket.Conn // nil during the handshake
	evicted      bool        // it ends as soon as the platform can end it
}

// enter adds a WebSocket and reports whether there may be another one. When a machine has
// its share, the key of it that holds the most loses the one that is silent for longest,
// if the newcomer's key would hold fewer; when all are open, so does the machine. The one
// that loses is returned, to be ended.
func (s *openSockets) enter(o *openSocket) (victim socket.Conn, ok bool) {
	all, machines, keys, handshakes := 0, map[string]int{}, map[string]int{}, 0
	for x := range *s {
		if x.evicted {
			continue
		}
		all++
		machines[x.machine]++
		if x.machine == o.machine {
			keys[x.key]++
			if x.key == o.key && x.conn == nil {
				handshakes++
			}
		}
	}
	switch {
	case handshakes >= maxSockets/8:
		return nil, false
	case machines[o.machine] >= maxSockets/4:
		key := largest(keys, o.key)
		if key == o.key {
			return nil, false
		}
		if victim = s.evict(func(x *openSocket) bool { return x.machine == o.machine && x.key == key }); victim == nil {
			return nil, false
		}
	case all >= maxSockets:
		machine := largest(machines, o.machine)
		if machine == o.machine {
			return nil, false
		}
		if victim = s.evict(func(x *openSocket) bool { return x.machine == machine }); victim == nil {
			return nil, false
		}
	}
	if *s == nil {
		*s = openSockets{}
	}
	(*s)[o] = struct{}{}
	return victim, true
}

// largest returns the holder of the most, or own if it would then hold as many.
func largest(held map[string]int, own string) string {
	most, n := own, held[own]+1
	for holder, k := range held {
		if k > n {
			most, n = holder, k
		}
	}
	return most
}

// evict returns the WebSocket among some that is silent for longest, or nil.
// It does not count any more.
func (s openSockets) evict(among func(*openSocket) bool) socket.Conn {
	var victim *openSocket
	longest := time.Duration(-1)
	for x := range s {
		if x.evicted || x.conn == nil || !among(x) {
			continue
		}
		if silent := x.conn.Silent(); silent > longest {
			victim, longest = x, silent
		}
	}
	if victim == nil {
		return nil
	}
	victim.evicted = true
	return victim.conn
}

// UpgradeNotSupported returns the refusal of a request for another protocol.
func UpgradeNotSupported() *apierr.Error {
	return apierr.New(426, "upgrade_not_supported",
		"Protocol upgrades such as WebSocket are not supported here; send a plain HTTP request.")
}

// upgradeRequired refuses an ordinary GET of a route that has a WebSocket only.
func upgradeRequired(context.Context, *auth.Call) (*httpmsg.Response, error) {
	return nil, apierr.New(426, "upgrade_required",
		"This route is served over WebSocket only. Connect with wss:// or ws://.")
}

// keyProtocol begins the sub-protocol in which a browser, which cannot set header
// fields, sends its key (docs/reference/dialects.md, c.1).
const keyProtocol = "openai-insecure-api-key."

// moveProtocolKey makes the key among the sub-protocols that of Authorization, unless
// there is one, and removes it from them.
func moveProtocolKey(h *httpmsg.Header) {
	list := h.Get("sec-websocket-protocol")
	if !strings.Contains(list, keyProtocol) {
		return
	}
	var others []string
	key := ""
	for p := range strings.SplitSeq(list, ",") {
		p = strings.TrimSpace(p)
		if k, ok := strings.CutPrefix(p, keyProtocol); ok {
			key = k
		} else {
			others = append(others, p)
		}
	}
	h.Set("sec-websocket-protocol", strings.Join(others, ", "))
	if h.Get("authorization") == "" {
		h.Add("authorization", "Bearer "+key)
	}
}
