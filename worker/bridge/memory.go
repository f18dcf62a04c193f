//go:build js && wasm

package bridge

import (
	"math"
	"runtime"
	"runtime/debug"
	"unsafe"

	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
)

// startMemory is the linear memory of an instance without large bodies, in bytes.
const startMemory = 12 << 20

// Memory returns how many bytes linear memory has grown by, and how many the other
// instance of the isolate has, if there is one.
func Memory() (grown, others int64) {
	return max(int64(hostMemory(0))-startMemory, 0), int64(hostMemory(1))
}

// exportHeld returns how many bytes the calls of this instance need beside the
// present size of linear memory.
//
//go:wasmexport weir_held
func exportHeld() float64 {
	a, ok := app.(interface{ MemoryNeeds() memory.Amount })
	if !ok {
		return 0
	}
	needs, size := a.MemoryNeeds(), int64(hostMemory(0))
	return float64(needs.Host + max(startMemory+needs.Program-size, 0))
}

// exportReserve returns whether the body that an operation reads may have total bytes,
// of expected ones, -1 if unknown: 1 if it may, 0 if not yet, -1 if it never will. A
// body that has all expected bytes is passed to Go next.
//
//go:wasmexport weir_reserve
func exportReserve(number int32, total, expected float64) int32 {
	at := int(number & (opPlaces - 1))
	if at >= len(ops) {
		return 1
	}
	o := ops[at]
	if o.number != number || o.done || o.memory == nil {
		return 1
	}
	if o.had.Bytes == 0 {
		o.memory.Sent() // the head has come
	}
	next := stream.Gathered{Bytes: int64(total), Of: int64(expected)}
	ok, refused := o.memory.TryAnswer(o.had, next)
	switch {
	case ok:
		o.had = next
		return 1
	case refused:
		return -1
	}
	return 0
}

// collectEvery is the number of bytes of large bodies after which garbage is collected:
// linear memory never shrinks.
const collectEvery = 4 << 20

var sinceCollected int64

// used returns how many bytes of the program's memory the calls have acquired.
func used() int64 {
	a, ok := app.(interface{ MemoryNeeds() memory.Amount })
	if !ok {
		return 0
	}
	return a.MemoryNeeds().Program
}

// Collect is called before the calls, which have used bytes, use n more for a large body,
// and when n bytes have become garbage.
func Collect(used, n int64) {
	limitHeap(used + n)
	if sinceCollected += n; sinceCollected >= collectEvery {
		runtime.GC()
		sinceCollected = 0
	}
}

// The limit of Go's heap while calls have large bodies: without one, garbage may reach
// the size of what is in use before it is collected, which linear memory would grow by.
const (
	heapSpare = 6 << 20 // beside the memory of calls
	heapStep  = 1 << 20 // between two limits, since changing it stops the program
)

var (
	heapLimit int64 = math.MaxInt64 // none, as Go starts
	notHeap   int64                 // of linear memory: the program's data; 0 until it is measured
)

// limitHeap has garbage collected before linear memory grows beyond what the calls need.
// The limit is not below the present size.
func limitHeap(need int64) {
	if _, ok := app.(interface{ MemoryNeeds() memory.Amount }); !ok {
		return
	}
	limit, size := int64(math.MaxInt64), int64(hostMemory(0))
	if need > heapStep {
		if notHeap == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			notHeap = max(size-int64(m.Sys), 1)
		}
		limit = max(startMemory-notHeap+heapSpare+need, size-notHeap) &^ (heapStep - 1)
	}
	if limit != heapLimit {
		heapLimit = limit
		debug.SetMemoryLimit(limit)
	}
}

// handOverParts passes a body in memory to the host, which copies it once, and returns
// the host's number of it.
func handOverParts(parts [][]byte) int32 {
	list := make([]uint32, 0, 2*len(parts))
	for _, p := range parts {
		list = append(list, uint32(uintptr(unsafe.Pointer(unsafe.SliceData(p)))), uint32(len(p)))
	}
	id := hostParts(unsafe.Pointer(unsafe.SliceData(list)), int32(len(parts)))
	runtime.KeepAlive(parts)
	return id
}

// handOverWhole passes a large answer to the host. The flow ends when the client has
// it, until when it takes memory.
func handOverWhole(parts [][]byte) (int32, *flow) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	return watch(hostPipe(handOverParts(parts), 0, float64(n)), &flow{})
}

// exportUsed returns how many bytes the calls of this instance have acquired.
//
//go:wasmexport weir_used
func exportUsed() float64 {
	a, ok := app.(interface{ MemoryNeeds() memory.Amount })
	if !ok {
		return 0
	}
	needs := a.MemoryNeeds()
	return float64(needs.Program + needs.Host)
}
