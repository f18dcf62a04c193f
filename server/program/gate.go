package program

import (
	"net/http"
	"sync"
)

// gate counts the calls that were under way when the server began to stop. Later
// ones pass too, uncounted: the host refuses them.
type gate struct {
	next http.Handler

	mu      sync.Mutex
	calls   int
	leaving bool // connections are closed behind their answers
	closed  bool
	idle    chan struct{} // closed when the last counted call has ended
}

func newGate(next http.Handler) *gate { return &gate{next: next, idle: make(chan struct{})} }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	counted, last := g.enter()
	if counted {
		defer g.exit()
	}
	if last {
		w.Header().Set("Connection", "close")
	}
	g.next.ServeHTTP(w, r)
}

func (g *gate) enter() (counted, last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false, true
	}
	g.calls++
	return true, g.leaving
}

func (g *gate) exit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls--; g.closed && g.calls == 0 {
		close(g.idle)
	}
}

// leave makes each later call the last one of its connection.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leaving = true
}

// closing reports whether leave was called.
func (g *gate) closing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leaving
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
