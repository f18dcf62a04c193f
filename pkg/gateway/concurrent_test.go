package gateway

import (
	"context"
	"sync"
	"testing"

	"weir/internal/testgw/fake"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/socket"
)

// Requests that are served at the same time have ids of their own, the same templates, and
// the share of WebSockets of their machine.
func TestConcurrentRequests(t *testing.T) {
	f := newFixture()
	f.Log = func(int, string) {}
	f.SetRoutes([]Route{
		{Pattern: "/health", Access: endpoint.Public, Methods: []Method{{Name: "GET", Handler: serveHealth}}},
		{Pattern: "/v1/talk", Access: endpoint.Public, Upgrade: func(context.Context, *auth.Call) (*httpmsg.Response, error) {
			return &httpmsg.Response{Status: 101, Upgrade: &socket.Upgrade{Serve: func(context.Context, socket.Conn) {}}}, nil
		}},
	})
	const workers, each = 8, 100
	var mu sync.Mutex
	ids, templates := map[string]bool{}, map[*httpmsg.Template]bool{}
	upgraded := 0
	var ended []*httpmsg.Response
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			ctx := context.Background()
			for range each {
				resp := f.Serve(ctx, &httpmsg.Request{Method: "GET", Path: "/health"})
				up := f.Serve(ctx, &httpmsg.Request{Method: "GET", Path: "/v1/talk", Header: httpmsg.Header{{Name: "upgrade", Value: "websocket"}}})
				mu.Lock()
				ids[resp.Get("x-request-id")], ids[up.Get("x-request-id")] = true, true
				templates[resp.Template] = true
				if up.Status == 101 {
					upgraded++
					ended = append(ended, up)
				}
				mu.Unlock()
				if up.Status == 101 {
					up.Upgrade.Serve(ctx, &fake.Socket{})
				}
			}
		})
	}
	all.Wait()
	if len(ids) != 2*workers*each || len(templates) != 1 {
		t.Errorf("%d ids of %d requests, %d templates", len(ids), 2*workers*each, len(templates))
	}
	if upgraded != maxSockets/4 {
		t.Errorf("%d WebSockets are open, want %d", upgraded, maxSockets/4)
	}
	for _, resp := range ended {
		all.Go(func() {
			for _, after := range resp.After {
				after(context.Background())
			}
		})
	}
	all.Wait()
	if len(f.sockets) != 0 {
		t.Errorf("%d WebSockets are left", len(f.sockets))
	}
}
