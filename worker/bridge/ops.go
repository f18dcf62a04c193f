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
	"weir/worker/contract"
)

// event is the end of an operation as the host reports it.
type event struct {
	outcome int32 // of package contract
	status  int32 // of an HTTP answer, or a size
	handle  int32 // the number of a stream, a held body or a socket
	head    string
	body    []byte
}

// ops are the operations under way by number. Streams have numbers of their own.
var (
	ops    = map[int32]chan event{}
	nextOp int32
)

// The host writes heads to scratch, a piece of a stream that Go reads only during
// the call to chunk, and the body of an event to body. It reads the bytes that a
// transform returns from out.
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

// largeBody is the size of a body from which garbage is collected before memory is
// allocated for it.
const largeBody = 4 << 20

//go:wasmexport weir_alloc
func exportAlloc(n int32) unsafe.Pointer {
	if n >= largeBody {
		runtime.GC()
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
func exportEvent(op, outcome, status, headLen, bodyLen, handle int32) {
	e := event{outcome: outcome, status: status, handle: handle, head: string(scratch[:headLen])}
	if bodyLen > 0 {
		e.body, body = body, nil
	}
	if ch, ok := ops[op]; ok {
		delete(ops, op)
		ch <- e
	}
}

// begin returns the number of a new operation and the channel of its event.
func begin() (int32, chan event) {
	nextOp++
	ch := make(chan event, 1)
	ops[nextOp] = ch
	return nextOp, ch
}

// failure returns the error for the outcome of an operation that failed.
func failure(outcome int32) error {
	switch outcome {
	case contract.Timeout:
		return upstream.ErrTimeout
	case contract.Canceled:
		return upstream.ErrCanceled
	case contract.TooLarge:
		return stream.ErrTooLarge
	case contract.NoTLS:
		return proxydial.ErrHandshake
	case contract.Budget:
		return upstream.ErrBudget
	case contract.BodyIdle:
		return stream.ErrIdle
	case contract.BodyTimeout:
		return stream.ErrTimeout
	}
	return upstream.ErrNetwork
}

// callKey is the key of the call in a context.
type callKey struct{}

// errNoCall is the error of a platform operation outside a request.
var errNoCall = errors.New("bridge: no request in this context")

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

func ptr(b []byte) unsafe.Pointer  { return unsafe.Pointer(unsafe.SliceData(b)) }
func sptr(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }
