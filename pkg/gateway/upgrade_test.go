package gateway

import (
	"context"
	"strconv"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/socket"
)

func TestRouteWithUpgradeServesWebSocketsOnly(t *testing.T) {
	f := newFixture()
	serve := func(context.Context, *auth.Call) (*httpmsg.Response, error) {
		return &httpmsg.Response{Status: 101, Upgrade: &socket.Upgrade{}}, nil
	}
	f.SetRoutes([]Route{{Pattern: "/v1/talk", Access: endpoint.Data, Upgrade: serve}})
	ask := func(method, upgrade, key string) *httpmsg.Response {
		return f.Serve(context.Background(), &httpmsg.Request{Method: method, Path: "/v1/talk", Header: httpmsg.Header{
			{Name: "upgrade", Value: upgrade}, {Name: "authorization", Value: key},
		}})
	}
	for _, tt := range []struct {
		method, upgrade, key string
		want                 int
	}{
		{"GET", "websocket", "data", 101}, {"GET", "WebSocket", "data", 101}, {"GET", "websocket", "", 401},
		{"POST", "websocket", "data", 426}, {"GET", "spdy/3", "data", 426}, {"GET", "websocket, spdy/3", "data", 426},
		{"GET", "h2c", "data", 405},
	} {
		if got := ask(tt.method, tt.upgrade, tt.key).Status; got != tt.want {
			t.Errorf("%s with %s and key %q: got %d, want %d", tt.method, tt.upgrade, tt.key, got, tt.want)
		}
	}
}

// A connection that has ended makes way for another.
func TestOpenSocketsAreBounded(t *testing.T) {
	f := newFixture()
	f.SetRoutes([]Route{{Pattern: "/v1/talk", Access: endpoint.Data, Upgrade: func(context.Context, *auth.Call) (*httpmsg.Response, error) {
		return &httpmsg.Response{Status: 101, Upgrade: &socket.Upgrade{}}, nil
	}}})
	ask := func() *httpmsg.Response {
		return f.Serve(context.Background(), &httpmsg.Request{Method: "GET", Path: "/v1/talk", Header: httpmsg.Header{
			{Name: "upgrade", Value: "websocket"}, {Name: "authorization", Value: "data"},
		}})
	}
	var open []*httpmsg.Response
	for range maxSockets / 8 { // the share of a key's handshakes
		open = append(open, ask())
	}
	if got := open[len(open)-1]; got.Status != 101 {
		t.Errorf("the last of the share: got %d", got.Status)
	}
	if got := ask(); got.Status != 503 || got.Get("retry-after") == "" {
		t.Errorf("one too many: got %d, retry-after %q", got.Status, got.Get("retry-after"))
	}
	for _, after := range open[0].After {
		after(context.Background())
	}
	if got := ask(); got.Status != 101 {
		t.Errorf("after one has ended: got %d", got.Status)
	}
}

func TestKeyAmongSubProtocols(t *testing.T) {
	for _, tt := range []struct{ protocols, authorization, wantProtocols, wantKey string }{
		{"realtime, openai-insecure-api-key.sk-1", "", "realtime", "Bearer sk-1"},
		{"openai-insecure-api-key.sk-1,realtime, other", "", "realtime, other", "Bearer sk-1"},
		{"openai-insecure-api-key.sk-1", "Bearer sk-2", "", "Bearer sk-2"},
		{"realtime", "", "realtime", ""},
	} {
		h := httpmsg.Header{{Name: "sec-websocket-protocol", Value: tt.protocols}}
		if tt.authorization != "" {
			h.Add("authorization", tt.authorization)
		}
		moveProtocolKey(&h)
		if p, k := h.Get("sec-websocket-protocol"), h.Get("authorization"); p != tt.wantProtocols || k != tt.wantKey {
			t.Errorf("%s: got %q and %q", tt.protocols, p, k)
		}
	}
}

// hold admits n connections of a key and returns those that were, each silent for less
// time than the ones before it.
func (s *openSockets) hold(machine, key string, n int) (open []*openSocket) {
	for i := range n {
		o := &openSocket{machine: machine, key: key, conn: &fake.Socket{Quiet: time.Hour - time.Duration(i)}}
		victim, ok := s.enter(o)
		if victim != nil {
			victim.Evict()
		}
		if ok {
			open = append(open, o)
		}
	}
	return open
}

// evicted returns how many connections were, and whether they are the first ones.
func evicted(open []*openSocket) (n int, first bool) {
	first = true
	for i, o := range open {
		if o.evicted {
			first = first && i == n && o.conn.(*fake.Socket).Closed.Code == socket.TryLater
			n++
		}
	}
	return n, first
}

// Handshakes of a key whose upstream does not answer leave room for other keys.
func TestHandshakesOfAKeyAreBounded(t *testing.T) {
	var s openSockets
	n := 0
	for range maxSockets {
		if _, ok := s.enter(&openSocket{machine: "m", key: "greedy"}); ok {
			n++
		}
	}
	if n != maxSockets/8 {
		t.Errorf("%d handshakes of one key", n)
	}
	if got := s.hold("m", "other", 20); len(got) != 20 {
		t.Errorf("%d of 20 of another key are admitted", len(got))
	}
}

func TestFullMachineLetsEachKeyIn(t *testing.T) {
	var s openSockets
	open := s.hold("m", "greedy", maxSockets)
	if len(open) != maxSockets/4 {
		t.Fatalf("%d of one key are open", len(open))
	}
	if got := s.hold("m", "other", 20); len(got) != 20 {
		t.Errorf("%d of 20 of another key are admitted", len(got))
	}
	if n, first := evicted(open); n != 20 || !first {
		t.Errorf("%d were closed, those silent for longest: %t", n, first)
	}
	if got := s.hold("m", "other", maxSockets); len(got) != maxSockets/8-20 {
		t.Errorf("%d more of the other key: it takes more than it leaves", len(got))
	}
	if got := s.hold("m", "greedy", 1); len(got) != 0 {
		t.Error("a key takes from one that holds as many")
	}
}

func TestFullProgramLetsEachMachineIn(t *testing.T) {
	var s openSockets
	var open []*openSocket
	for i, share := range []int{256, 256, 256, 255, 1} {
		open = append(open, s.hold(strconv.Itoa(i), "k", share)...)
	}
	if len(open) != maxSockets {
		t.Fatalf("%d are open", len(open))
	}
	if got := s.hold("new", "k", 20); len(got) != 20 {
		t.Errorf("%d of 20 of another machine are admitted", len(got))
	}
	if n, _ := evicted(open); n != 20 || open[maxSockets-1].evicted {
		t.Errorf("%d were closed, the only one of a machine: %t", n, open[maxSockets-1].evicted)
	}
	handshakes := openSockets{}
	for i := range maxSockets {
		handshakes[&openSocket{machine: strconv.Itoa(i / 256)}] = struct{}{}
	}
	if got := handshakes.hold("new", "k", 1); len(got) != 0 {
		t.Error("a handshake is closed")
	}
}
