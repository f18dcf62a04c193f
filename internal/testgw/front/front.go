// Package front is a whole gateway over objects, a store and an upstream in
// memory, for the tests of everything but the platform.
package front

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/local"
	"weir/internal/testgw/objects"
	"weir/pkg/gateway"
)

// The secrets of the gateway.
var (
	AdminToken = strings.Repeat("admin-token-", 4)
	keySecret  = strings.Repeat("key-secret-", 4)
	sealSecret = strings.Repeat("credentials-", 4)
)

// Gateway is a gateway with everything around it.
type Gateway struct {
	*fake.Clock
	*fake.Upstream
	App     *gateway.App
	KV      *fake.KV
	Objects *objects.Local
	Log     []string
	set     func(*gateway.Ports)
	mu      sync.Mutex // of Log
}

// New returns a gateway. set, if not nil, changes the ports of every instance.
func New(set func(*gateway.Ports)) *Gateway {
	clock := fake.NewClock(time.UnixMilli(1_750_000_000_000))
	g := &Gateway{Clock: clock, Upstream: &fake.Upstream{Clock: clock}, KV: fake.NewKV(), set: set}
	g.Restart()
	return g
}

// Restart starts a new instance over the same storage, as a new isolate is.
func (g *Gateway) Restart() {
	ports := gateway.Ports{
		Do: g.Upstream, Pause: g.Clock, Objects: stub{g}, KV: g.KV,
		Now: g.Now, Rand: rand.Reader,
		Log: func(_ int, line string) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.Log = append(g.Log, line)
		},
	}
	if g.set != nil {
		g.set(&ports)
	}
	g.App = gateway.New(gateway.Config{
		AdminToken: AdminToken, KeySecret: keySecret, CredentialsKey: sealSecret, RequireKey: true, AllowPrivate: true,
		Quiet: true,
	}, ports)
	if g.Objects == nil {
		g.Objects = local.New(g.App.Machine())
	}
}

// stub calls the objects, which are built from the first instance.
type stub struct{ g *Gateway }

func (s stub) Call(ctx context.Context, machineID, op string, body []byte) (int, []byte, error) {
	return s.g.Objects.Call(ctx, machineID, op, body)
}
