package gateway

import (
	"context"
	"strings"
	"time"

	"weir/pkg/auth"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// maxSockets bounds the WebSockets that are open at once in an instance of the
// program: each has a task and buffers. A machine has a quarter of them.
const maxSockets = 1024

// upgrade answers a request for another protocol, which must be a WebSocket on a route
// that serves it. 426 tells clients to use HTTP (docs/reference/clients.md, 2.6).
func (g *Gateway) upgrade(ctx context.Context, r *httpmsg.Request, route *Route, machine, path string, params []string, field string) *httpmsg.Response {
	r.Route = "none"
	if route != nil {
		r.Route = route.Pattern
	}
	if route == nil || route.Upgrade == nil || r.Method != "GET" || !strings.EqualFold(strings.TrimSpace(field), "websocket") {
		return g.finish(ctx, r, g.unmatched(path), nil, nil, UpgradeNotSupported())
	}
	moveProtocolKey(&r.Header)
	open := func(ctx context.Context, c *auth.Call) (resp *httpmsg.Response, err error) {
		if g.sockets.all >= maxSockets || g.sockets.of[c.MachineID] >= maxSockets/4 {
			e := apierr.New(503, "too_many_sockets", "The gateway has too many WebSocket connections. Try again in a moment.")
			e.RetryAfter = time.Second
			return nil, e
		}
		g.sockets.add(c.MachineID, 1)
		defer func() {
			if resp == nil || resp.Upgrade == nil {
				g.sockets.add(c.MachineID, -1)
			}
		}()
		return route.Upgrade(ctx, c)
	}
	resp, c, err := g.serve(ctx, r, route, &Method{Name: "GET", Handler: open}, machine, params)
	resp = g.finish(ctx, r, route, c, resp, err)
	if resp.Upgrade != nil {
		resp.After = append(resp.After, func(context.Context) { g.sockets.add(c.MachineID, -1) })
	}
	return resp
}

// openSockets counts the WebSockets of an instance of the program, and handshakes whose
// upstream is being called.
type openSockets struct {
	all int
	of  map[string]int // by machine
}

func (s *openSockets) add(machine string, n int) {
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.all += n
	if s.of[machine] += n; s.of[machine] == 0 {
		delete(s.of, machine)
	}
}

// UpgradeNotSupported returns the refusal of a request for another protocol.
func UpgradeNotSupported() *apierr.Error {
	return apierr.New(426, "upgrade_not_supported", "Protocol upgrades such as WebSocket are not supported here; send a plain HTTP request.")
}

// upgradeRequired refuses an ordinary GET of a route that has a WebSocket only.
func upgradeRequired(context.Context, *auth.Call) (*httpmsg.Response, error) {
	return nil, apierr.New(426, "upgrade_required", "This route is served over WebSocket only. Connect with wss:// or ws://.")
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
