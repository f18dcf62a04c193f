package program

import (
	"net/http"
	"sync"
)

// gate counts the calls that were under way when the server began to stop. Later
// ones pass too, uncounted: the host refuses them.
type gate struct {
	next http.Handler

	mu     sync.Mutex
	calls  int
	closed bool
	idle   chan struct{} // closed when the last counted call has ended
}

func newGate(next http.Handler) *gate { return &gate{next: next, idle: make(chan struct{})} }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.enter() {
		defer g.exit()
	}
	g.next.ServeHTTP(w, r)
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.calls++
	return true
}

func (g *gate) exit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls--; g.closed && g.calls == 0 {
		close(g.idle)
	}
}

// closing reports whether close was called.
func (g *gate) closing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// close ends the counting of new calls and returns how many are under way. It is
// called once.
func (g *gate) close() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.calls == 0 {
		close(g.idle)
	}
	return g.calls
}
