//go:build js && wasm

package bridge

import (
	"context"
	"errors"
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

// op is an operation of the host. Its number has its place in ops in the low bits
// and counts its uses in the others, so that a late event of an earlier use is
// recognized.
type op struct {
	number int32
	call   *call // that it was begun for
	task   *task // that waits for it
	done   bool
	event  event
	memory stream.Memory   // for a body that it reads; nil means it is not counted
	had    stream.Gathered // of the body, that memory was acquired for
}

const (
	opPlaces = 1 << 16
	opUse    = opPlaces // added to the number for each use
)

// ops has the operations by place, freeOps those without a use.
var (
	ops     []*op
	freeOps []*op
)

// The host writes heads to scratch and the body of an event behind the head; one
// that does not fit goes to body. It writes a piece of a stream, which Go reads
// only during the call, to chunk, and reads what a transform returns from out.
var (
	scratch [160 << 10]byte
	chunk   []byte
	body    []byte
	out     []byte
)

//go:wasmexport weir_scratch
func exportScratch() unsafe.Pointer { return unsafe.Pointer(&scratch[0]) }

//go:wasmexport weir_scratch_size
func exportScratchSize() int32 { return int32(len(scratch)) }

//go:wasmexport weir_alloc
func exportAlloc(n int32) unsafe.Pointer {
	Collect(used(), int64(n))
	body = append([]byte(nil), make([]byte, n)...) // with the capacity that is allocated in any case
	return unsafe.Pointer(unsafe.SliceData(body))
}

// takeBody returns the n bytes of the body that the host has written.
func takeBody(headLen, n int32) []byte {
	if n <= 0 {
		return nil
	}
	if b := body; b != nil {
		body = nil
		return b
	}
	return append([]byte(nil), scratch[headLen:headLen+n]...)
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

// exportEvent ends an operation. Like every export that runs tasks, it reports
// whether the host must call the runtime's resume: see scheduled. It returns
// contract.Dropped for an operation that has ended: the handle belongs to the host
// then.
//
//go:wasmexport weir_event
func exportEvent(number, outcome, status, headLen, bodyLen, handle int32) int32 {
	e := event{outcome: outcome, status: status, handle: handle, body: takeBody(headLen, bodyLen)}
	if headLen > 0 {
		e.head = string(scratch[:headLen])
	}
	if !finish(number, &e) {
		return contract.Dropped
	}
	return scheduled()
}

// finish ends the operation of a number and runs the task that waits for it. It
// reports whether there is such an operation.
func finish(number int32, e *event) bool {
	at := int(number & (opPlaces - 1))
	if at >= len(ops) {
		return false
	}
	o := ops[at]
	if o.number != number || o.done {
		return false
	}
	o.done, o.event = true, *e
	if t := o.task; t != nil {
		o.task = nil
		t.run()
	}
	return true
}

// begin returns a new operation for a call. If the call can use the host no longer,
// it has ended already and the host must not be asked: see usable.
func begin(c *call) *op {
	var o *op
	if n := len(freeOps); n > 0 {
		o, freeOps = freeOps[n-1], freeOps[:n-1]
	} else {
		if len(ops) == opPlaces {
			panic("bridge: too many operations")
		}
		o = &op{number: int32(len(ops))}
		ops = append(ops, o)
	}
	o.number = (o.number + opUse) & (1<<31 - 1)
	o.call, o.task, o.done, o.memory = c, nil, false, nil
	if c == nil || c.swept {
		o.done, o.event = true, event{outcome: contract.Canceled}
	} else if c.answered && !c.held {
		c.held = true
		hostKeep(c.id)
	}
	return o
}

// usable reports whether the host is to be asked for the operation.
func (o *op) usable() bool { return !o.done }

// wait pauses the task until the operation has ended and returns how.
func (o *op) wait() event {
	for !o.done {
		o.task = current
		current.pause()
	}
	e := o.event
	if o.had.Bytes > 0 && e.outcome != contract.OK {
		o.memory.TryAnswer(o.had, stream.Gathered{})
	}
	o.event, o.call, o.memory, o.had = event{}, nil, nil, stream.Gathered{}
	freeOps = append(freeOps, o)
	return e
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
	case contract.NoMemory:
		return stream.ErrMemory
	case contract.Cut:
		return upstream.ErrCut
	}
	return upstream.ErrNetwork
}

// callKey is the key of the call in a context.
type callKey struct{}

// errNoCall is the error of a platform operation outside a request.
var errNoCall = errors.New("bridge: no request in this context")

func callOf(ctx context.Context) *call {
	if c, ok := ctx.(*call); ok {
		return c
	}
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

func ptr(b []byte) unsafe.Pointer  { return unsafe.Pointer(unsafe.SliceData(b)) }
func sptr(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }
