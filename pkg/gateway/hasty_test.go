package gateway

import (
	"context"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
)

// 1,000 clients that asked again at once made others wait for 0.6 s natively and 4 s on the
// edge: reading and refusing calls took the whole CPU.
func TestRefusalsOfHastyClientsAreHeldBack(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		n    int
		want time.Duration // of the last refusal
	}{
		{"few", memory.Full(), promptRefusals, 0},
		{"many", memory.Full(), promptRefusals + 1, heldFor},
		{"soon over", &apierr.Error{Status: 429, RetryAfter: time.Millisecond}, promptRefusals + 1, time.Millisecond},
		{"a client's mistake", apierr.Invalid("model", "no such model"), promptRefusals + 1, 0},
		{"answered", nil, promptRefusals + 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, clock := newFixture(), fake.NewClock(time.Unix(1000, 0))
			var c *auth.Call
			clock.Meanwhile = func() {
				if c.Request.Body != nil || f.hasty.held != 1 {
					t.Errorf("%d refusals are held, one with the body %v", f.hasty.held, c.Request.Body)
				}
			}
			f.Pause, f.Now = clock, clock.Now
			f.SetRoutes([]Route{{Pattern: "/v1/embeddings", Access: endpoint.Data, MaxBody: 100, Methods: []Method{
				{Name: "POST", Handler: func(_ context.Context, call *auth.Call) (*httpmsg.Response, error) {
					c = call
					return &httpmsg.Response{Status: 200}, tt.err
				}}}}})
			for range tt.n {
				f.get("POST", "/"+machineID+"/v1/embeddings", "data", "{}")
			}
			if clock.Paused() != tt.want || f.hasty.held != 0 {
				t.Errorf("waits %v, then %d are held; want %v", clock.Paused(), f.hasty.held, tt.want)
			}
			clock.Add(time.Second)
			f.get("POST", "/"+machineID+"/v1/embeddings", "data", "{}")
			if clock.Paused() != tt.want {
				t.Error("the first of the next second waits too")
			}
		})
	}
}

// Refusals of one machine hold back none of another, and no more wait than may.
func TestHeldRefusalsAreBounded(t *testing.T) {
	var h hasty
	now := time.Unix(1000, 0)
	held := 0
	for range promptRefusals + maxHeld + 10 {
		if h.hold("a", now) {
			held++
		}
	}
	if held != maxHeld || h.held != maxHeld {
		t.Errorf("%d are held, %d counted, want %d", held, h.held, maxHeld)
	}
	h.leave()
	if h.hold("b", now) || !h.hold("a", now) {
		t.Error("another machine's first refusal is held, or the place of one that has left stays empty")
	}
}
