//go:build js && wasm

package bridge

import (
	"context"
	"errors"
	"runtime"
	"unsafe"

	"weir/pkg/credentials/proxydial"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// How an operation of the host ended; the same numbers stand in codes.mjs.
const (
	opOK       = 0
	opNetwork  = 1
	opTimeout  = 2
	opCanceled = 3
	opTooLarge = 4
	opEnd      = 5
	opNoTLS    = 6
	opBudget   = 7
	opIdle     = 8 // silence within a body
	opLate     = 9 // the total time was up after the head had come
)

// event is what the host says of an operation.
type event struct {
	kind, status int32
	head         string
	body         []byte
}

// ops are the operations under way, by number. Numbers of operations and of
// streams come from two counters, so one map serves only operations and
// another only streams.
var (
	ops    = map[int32]chan event{}
	nextOp int32
)

// scratch is where the host writes heads, chunk where it writes the piece of a
// stream that Go looks at only during the call, body the body of an event.
var (
	scratch [96 << 10]byte
	chunk   []byte
	body    []byte
	out     []byte
)

//go:wasmexport weir_scratch
func exportScratch() unsafe.Pointer { return unsafe.Pointer(&scratch[0]) }

//go:wasmexport weir_scratch_size
func exportScratchSize() int32 { return int32(len(scratch)) }

// largeBody is the size from which a body is worth a collection of garbage.
const largeBody = 4 << 20

//go:wasmexport weir_alloc
func exportAlloc(n int32) unsafe.Pointer {
	if n >= largeBody {
		runtime.GC() // what can be used again goes first
	}
	body = make([]byte, n)
	return unsafe.Pointer(unsafe.SliceData(body))
}

//go:wasmexport weir_chunk
func exportChunk(n int32) unsafe.Pointer {
	if cap(chunk) < int(n) {
		chunk = make([]byte, max(int(n), 64<<10))
	}
	chunk = chunk[:n]
	return unsafe.Pointer(unsafe.SliceData(chunk))
}

//go:wasmexport weir_out
func exportOut() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(out)) }

//go:wasmexport weir_event
func exportEvent(op, kind, status, headLen, bodyLen int32) {
	e := event{kind: kind, status: status, head: string(scratch[:headLen])}
	if bodyLen > 0 {
		e.body, body = body, nil
	}
	if ch, ok := ops[op]; ok {
		delete(ops, op)
		ch <- e
	}
}

// begin makes a number for an operation and the channel its event comes by.
func begin() (int32, chan event) {
	nextOp++
	ch := make(chan event, 1)
	ops[nextOp] = ch
	return nextOp, ch
}

// failure is the error for an operation's end.
func failure(kind int32) error {
	switch kind {
	case opTimeout:
		return upstream.ErrTimeout
	case opCanceled:
		return upstream.ErrCanceled
	case opTooLarge:
		return stream.ErrTooLarge
	case opNoTLS:
		return proxydial.ErrHandshake
	case opBudget:
		return upstream.ErrBudget
	case opIdle:
		return stream.ErrIdle
	case opLate:
		return stream.ErrTimeout
	}
	return upstream.ErrNetwork
}

// callKey finds the call in a context.
type callKey struct{}

// errNoCall is what platform operations give outside a request.
var errNoCall = errors.New("bridge: no request in this context")

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

func ptr(b []byte) unsafe.Pointer  { return unsafe.Pointer(unsafe.SliceData(b)) }
func sptr(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }
