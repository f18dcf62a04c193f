// Package gctune chooses how much garbage the process gathers before it collects
// it.
//
// A call allocates some ten kilobytes and almost nothing outlives it, so the heap in
// use is a few MiB. Go collects by default when as much garbage again has gathered,
// which is then dozens of times a second and a quarter of the CPU time.
package gctune

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// spare is the garbage, in bytes, that may gather beside that in proportion to the
// memory in use.
const spare = 24 << 20

// Start tunes the garbage collector from now on, unless the operator does so with
// GOGC.
func Start() {
	if os.Getenv("GOGC") != "" {
		return
	}
	t := &tuner{live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	t.collected()
}

// tuner follows the collections.
type tuner struct {
	live    []metrics.Sample
	percent int
}

// sentinel is garbage from its creation, so that its finalizer runs after each
// collection.
type sentinel struct {
	*tuner
	_ [16]byte // of a size that is not shared with other objects
}

// collected runs after a collection, and follows the next one.
func (t *tuner) collected() {
	metrics.Read(t.live)
	if p := percent(t.live[0].Value.Uint64()); t.percent == 0 || differs(p, t.percent) {
		t.percent = p
		debug.SetGCPercent(p) // stops the program for some microseconds
	}
	runtime.SetFinalizer(&sentinel{tuner: t}, func(s *sentinel) { s.collected() })
}

// percent returns the value of GOGC for a heap with live bytes in use: spare and a
// half of live may be garbage.
func percent(live uint64) int {
	live = max(live, 4<<20) // Go multiplies at least this
	return int(min(50+100*spare/live, math.MaxInt32))
}

// differs reports whether a new value is worth setting: a tenth more or less.
func differs(a, b int) bool { return a*10 > b*11 || a*11 < b*10 }
