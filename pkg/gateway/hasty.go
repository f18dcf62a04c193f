package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"weir/pkg/auth"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
)

// hasty knows the machines whose clients ask again at once when they are refused, instead
// of after Retry-After. Reading and refusing them takes the CPU of every other machine:
// beyond promptRefusals in a second their refusals wait before they are sent.
type hasty struct {
	mu      sync.Mutex
	second  int64          // since 1970, of refused
	refused map[string]int // by machine
	held    int            // refusals that wait
}

const (
	promptRefusals = 64   // of a machine in a second
	maxHeld        = 1024 // refusals of all machines; others are sent at once
	// heldFor is less than the second after which the edge's host asks whether the client is
	// still there, which costs more than the refusal.
	heldFor = 900 * time.Millisecond
)

// hold reports whether a refusal of a machine waits. Then leave follows.
func (h *hasty) hold(machine string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if second := now.Unix(); second != h.second {
		h.second, h.refused = second, map[string]int{}
	}
	h.refused[machine]++
	if h.refused[machine] <= promptRefusals || h.held >= maxHeld {
		return false
	}
	h.held++
	return true
}

func (h *hasty) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held--
}

// holdBack waits before the refusal of a hasty client is sent: of a call that no account was
// asked for, since the gateway has no memory for it or a limit is reached.
func (g *Gateway) holdBack(ctx context.Context, c *auth.Call, err error) {
	if err == nil || g.Pause == nil || c == nil || c.Trace.Attempts() > 0 {
		return
	}
	var e *apierr.Error
	if !errors.As(err, &e) || e.RetryAfter <= 0 || !g.hasty.hold(c.MachineID, g.Now()) {
		return
	}
	defer g.hasty.leave()
	if _, read := c.Request.Body.(*stream.Bytes); read {
		c.Request.Body = nil // its memory is free meanwhile
	}
	_ = g.Pause.Pause(ctx, min(e.RetryAfter, heldFor)) // a client that has left needs no answer
}
