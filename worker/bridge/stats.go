//go:build js && wasm

package bridge

import (
	"runtime"
	"unsafe"
)

// counts are those that exportStats returns.
var counts [4]int32

// exportStats returns what is in flight in Go, for tests: the numbers of calls,
// operations, flows, and goroutines except those of idle tasks.
//
//go:wasmexport weir_stats
func exportStats() unsafe.Pointer {
	calls, ops, streams := InFlight()
	counts = [...]int32{int32(calls), int32(ops), int32(streams), int32(runtime.NumGoroutine() - len(idle))}
	return unsafe.Pointer(&counts)
}
