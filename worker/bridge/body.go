//go:build js && wasm

package bridge

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"
	"time"

	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Why a stream ended, as in streams.mjs.
const (
	endReset  = 1
	endIdle   = 2
	endClient = 3
)

func cause(code int32) error {
	switch code {
	case 0:
		return nil
	case endIdle:
		return stream.ErrIdle
	case endClient:
		return stream.ErrClient
	}
	return stream.ErrReset
}

// hostBody is a stream that the host holds.
type hostBody struct {
	id int32
	of int32 // the call it belongs to
	// wait limits how long a Read may take; zero means no limit.
	wait time.Duration
	// idle limits the silence while the host gathers the body; zero means no limit.
	idle time.Duration
	cur  []byte
	err  error
}

// Read asks the host for the next chunk.
func (b *hostBody) Read(d []byte) (int, error) {
	for len(b.cur) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		if b.id == 0 {
			return 0, io.EOF
		}
		op, ch := begin()
		hostRead(op, b.id, ms(b.wait))
		switch e := <-ch; e.kind {
		case opOK:
			b.cur = e.body
		case opEnd:
			b.id, b.err = 0, io.EOF
		default:
			b.id, b.err = 0, failure(e.kind)
		}
	}
	n := copy(d, b.cur)
	b.cur = b.cur[n:]
	return n, nil
}

// Unread puts bytes that were read back in front.
func (b *hostBody) Unread(head []byte) { b.cur = append(head[:len(head):len(head)], b.cur...) }

// ReadAll has the host gather the whole body.
func (b *hostBody) ReadAll(maxBytes int64) ([]byte, error) {
	return b.readAll(maxBytes, b.idle, 0)
}

func (b *hostBody) readAll(maxBytes int64, idle, total time.Duration) ([]byte, error) {
	head := b.cur
	b.cur = nil
	if b.id == 0 {
		return head, b.err
	}
	op, ch := begin()
	hostReadAll(op, b.of, b.id, float64(maxBytes-int64(len(head))), ms(idle), ms(total))
	b.id = 0
	e := <-ch
	if e.kind != opOK {
		return nil, failure(e.kind)
	}
	if len(head) == 0 {
		return e.body, nil
	}
	return append(head[:len(head):len(head)], e.body...), nil
}

// Hold has the host gather the body and keep it.
func (b *hostBody) Hold(maxBytes int64) (stream.Held, error) { return b.hold(maxBytes, b.idle, 0) }

func (b *hostBody) hold(maxBytes int64, idle, total time.Duration) (stream.Held, error) {
	id := b.take()
	if id == 0 {
		return &held{}, nil
	}
	op, ch := begin()
	hostHold(op, b.of, id, float64(maxBytes), ms(idle), ms(total))
	e := <-ch
	if e.kind != opOK {
		return nil, failure(e.kind)
	}
	size, err := strconv.ParseInt(e.head, 10, 64)
	return &held{id: e.status, size: size}, err
}

// held is a body that the host keeps.
type held struct {
	id   int32
	size int64
}

func (h *held) Size() int64 { return h.size }

func (h *held) Open() io.ReadCloser {
	if h.id == 0 {
		return stream.FromBytes(nil)
	}
	return &hostBody{id: hostCopy(h.id)}
}

func (h *held) SHA256() (sum [32]byte, err error) {
	if h.id == 0 {
		return sha256.Sum256(nil), nil
	}
	op, ch := begin()
	hostDigest(op, h.id)
	e := <-ch
	if e.kind != opOK || copy(sum[:], e.body) != len(sum) {
		return sum, failure(e.kind)
	}
	return sum, nil
}

func (h *held) Release() {
	if h.id != 0 {
		hostDiscard(h.id)
		h.id = 0
	}
}

// Close lets go of what is unread.
func (b *hostBody) Close() error {
	if b.id != 0 {
		hostDiscard(b.id)
		b.id = 0
	}
	b.cur, b.err = nil, io.EOF
	return nil
}

// take gives the host's number of the unread rest and forgets it.
func (b *hostBody) take() int32 {
	id := b.id
	b.id, b.err = 0, io.EOF
	if len(b.cur) > 0 {
		id = hostPrefix(ptr(b.cur), int32(len(b.cur)), id)
		b.cur = nil
	}
	return id
}

// The limits of reading a client's body (docs/reference/reliability.md, T38).
const (
	uploadIdle  = 20 * time.Second
	uploadTotal = 120 * time.Second
)

// clientBody is the body of a request: the host is asked for it only when
// somebody wants it, so a refused request costs no read.
type clientBody struct {
	hostBody
	length int64
	opened bool
}

func (b *clientBody) open() {
	if !b.opened {
		b.opened, b.wait = true, uploadIdle
		b.id = hostClientBody(b.of)
	}
}

func (b *clientBody) Read(d []byte) (int, error) {
	b.open()
	return b.hostBody.Read(d)
}

func (b *clientBody) ReadAll(maxBytes int64) ([]byte, error) {
	if b.length > maxBytes {
		return nil, stream.ErrTooLarge
	}
	b.open()
	got, err := b.readAll(maxBytes, uploadIdle, uploadTotal)
	return got, uploadEnd(err)
}

func (b *clientBody) Hold(maxBytes int64) (stream.Held, error) {
	if b.length > maxBytes {
		return nil, stream.ErrTooLarge
	}
	b.open()
	h, err := b.hold(maxBytes, uploadIdle, uploadTotal)
	return h, uploadEnd(err)
}

// ReadSteps has the host gather the body in steps, each up to the number of bytes
// that step returns.
func (b *clientBody) ReadSteps(maxBytes int64, step func(have int64) (int64, error)) ([]byte, error) {
	_, _, all, err := b.gather(maxBytes, 0, step)
	return all, err
}

// HoldSteps has the host gather the body like ReadSteps, and keep it.
func (b *clientBody) HoldSteps(maxBytes int64, step func(have int64) (int64, error)) (stream.Held, error) {
	id, size, _, err := b.gather(maxBytes, 1, step)
	if err != nil {
		return nil, err
	}
	return &held{id: id, size: size}, nil
}

func (b *clientBody) gather(maxBytes int64, keep int32, step func(have int64) (int64, error)) (id int32, size int64, all []byte, err error) {
	if b.length > maxBytes {
		return 0, 0, nil, stream.ErrTooLarge
	}
	b.open()
	if id = b.take(); id == 0 {
		return 0, 0, nil, nil
	}
	for {
		upTo, err := step(size)
		if err != nil {
			hostDiscard(id)
			return 0, 0, nil, err
		}
		op, ch := begin()
		hostGather(op, b.of, id, float64(upTo), ms(uploadTotal), keep)
		e := <-ch
		if e.kind != opOK && e.kind != opEnd {
			return 0, 0, nil, uploadEnd(failure(e.kind))
		}
		if size = int64(e.status); size > maxBytes {
			if e.kind == opOK || keep != 0 {
				hostDiscard(id)
			}
			return 0, 0, nil, stream.ErrTooLarge
		}
		if e.kind == opEnd {
			return id, size, e.body, nil
		}
	}
}

// uploadEnd says of a failure that it is the client's.
func uploadEnd(err error) error {
	switch err {
	case upstream.ErrTimeout:
		return stream.ErrIdle
	case upstream.ErrNetwork:
		return stream.ErrReset
	}
	return err
}

func (b *clientBody) Close() error {
	if !b.opened {
		b.opened = true
		return nil
	}
	return b.hostBody.Close()
}

func (b *clientBody) take() int32 {
	b.open()
	return b.hostBody.take()
}

// watched are the streams that Go looks at or transforms, by the host's number.
var watched = map[int32]*flow{}

type flow struct {
	t     stream.Transform
	stop  stream.Stopper // t, or nil
	w     stream.Watcher
	ended chan event
}

//go:wasmexport weir_push
func exportPush(id, n int32) int32 {
	f := watched[id]
	if f == nil {
		return 0
	}
	out = f.t.Push(chunk[:n], out[:0])
	if f.stop != nil && f.stop.Stopped() {
		return ^int32(len(out))
	}
	return int32(len(out))
}

//go:wasmexport weir_sample
func exportSample(id, n int32) {
	if f := watched[id]; f != nil {
		f.w.Sample(chunk[:n])
	}
}

//go:wasmexport weir_end
func exportEnd(id, code int32) int32 {
	f := watched[id]
	if f == nil {
		return 0
	}
	if f.w != nil {
		out = append(out[:0], f.w.End(cause(code))...)
	} else {
		out = f.t.End(cause(code), out[:0])
	}
	return int32(len(out))
}

//go:wasmexport weir_ended
func exportEnded(id, code int32) {
	f := watched[id]
	if f == nil {
		return
	}
	delete(watched, id)
	if cap(out) > 1<<20 {
		out = nil
	}
	f.ended <- event{status: code}
}

// handle gives the host's number of a body, and for one that Go looks at the
// channel that tells of its end.
func handle(body io.ReadCloser) (int32, <-chan event) {
	switch b := body.(type) {
	case *hostBody:
		return b.take(), nil
	case *clientBody:
		return b.take(), nil
	case *stream.Bytes:
		all := b.All()
		return hostPrefix(ptr(all), int32(len(all)), 0), nil
	case *stream.Prefix:
		if b.Rest == nil {
			return hostPrefix(ptr(b.Head), int32(len(b.Head)), 0), nil
		}
		rest, _ := handle(b.Rest)
		return hostPrefix(ptr(b.Head), int32(len(b.Head)), rest), nil
	case *stream.Through:
		src, _ := handle(b.Src)
		length := float64(-1)
		if l, ok := b.T.(interface{ Length() int64 }); ok {
			length = float64(l.Length())
		}
		stop, _ := b.T.(stream.Stopper)
		return watch(hostThrough(src, ms(b.Idle), length), &flow{t: b.T, stop: stop})
	case *stream.Watched:
		src, _ := handle(b.Src)
		cut := int32(0)
		if b.Cut {
			cut = 1
		}
		return watch(hostWatch(src, ms(b.Idle), cut), &flow{w: b.W})
	}
	panic(fmt.Sprintf("bridge: a body of type %T cannot be moved", body))
}

func watch(id int32, f *flow) (int32, <-chan event) {
	f.ended = make(chan event, 1)
	watched[id] = f
	return id, f.ended
}

// ms is a duration for the host; what is shorter than a millisecond is one.
func ms(d time.Duration) int32 {
	if d <= 0 {
		return 0
	}
	return int32(min(max(d.Milliseconds(), 1), 1<<31-1))
}
