//go:build js && wasm

package bridge

import (
	"crypto/sha256"
	"fmt"
	"io"
	"time"

	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
	"weir/worker/contract"
)

// endingError returns the error for the way in which a stream ended, nil if it is
// complete.
func endingError(ending int32) error {
	switch ending {
	case contract.EndedCleanly:
		return nil
	case contract.EndedIdle:
		return stream.ErrIdle
	case contract.EndedByClient:
		return stream.ErrClient
	case contract.EndedFull:
		return stream.ErrMemory
	}
	return stream.ErrReset
}

// hostBody is a stream that the host holds.
type hostBody struct {
	id   int32
	call *call // that it belongs to
	// wait limits how long a Read may take; zero means no limit.
	wait time.Duration
	// idle limits the silence while the host reads the whole body; zero means no
	// limit.
	idle time.Duration
	// memory is what ReadAll acquires its memory from; nil means it is not counted.
	memory stream.Memory
	// unread was received, but not yet returned by Read.
	unread []byte
	err    error
}

// Read asks the host for the next chunk.
func (b *hostBody) Read(d []byte) (int, error) {
	for len(b.unread) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		if b.id == 0 {
			return 0, io.EOF
		}
		o := begin(b.call)
		if o.usable() {
			hostRead(o.number, b.id, ms(b.wait))
		}
		switch e := o.wait(); e.outcome {
		case contract.OK:
			b.unread = e.body
		case contract.EndOfBody:
			b.id, b.err = 0, io.EOF
		default:
			hostDiscard(b.id) // of a call that was swept the host still has it
			b.id, b.err = 0, failure(e.outcome)
		}
	}
	n := copy(d, b.unread)
	b.unread = b.unread[n:]
	return n, nil
}

// LimitRead limits how long each Read may take from now on.
func (b *hostBody) LimitRead(d time.Duration) { b.wait = d }

// Unread returns bytes to the body, to be read again.
func (b *hostBody) Unread(head []byte) { b.unread = append(head[:len(head):len(head)], b.unread...) }

// ReadAll returns the whole body, which the host collects.
func (b *hostBody) ReadAll(maxBytes int64) ([]byte, error) {
	return b.readAll(maxBytes, b.idle, 0)
}

func (b *hostBody) readAll(maxBytes int64, idle, total time.Duration) ([]byte, error) {
	head := b.unread
	b.unread = nil
	if b.id == 0 {
		return head, b.err
	}
	o := begin(b.call)
	o.memory = b.memory
	if o.usable() {
		hostReadAll(o.number, b.call.id, b.id, float64(maxBytes-int64(len(head))), ms(idle), ms(total))
	}
	b.id = 0
	e := o.wait()
	if e.outcome != contract.OK {
		return nil, failure(e.outcome)
	}
	if len(head) == 0 {
		return e.body, nil
	}
	return append(head[:len(head):len(head)], e.body...), nil
}

// held is a body in the host's memory.
type held struct {
	call *call
	id   int32
	size int64
}

func (h *held) Size() int64 { return h.size }

func (h *held) Open() io.ReadCloser {
	if h.id == 0 {
		return stream.FromBytes(nil)
	}
	return &hostBody{id: hostReopen(h.id), call: h.call}
}

func (h *held) SHA256() (sum [32]byte, err error) {
	if h.id == 0 {
		return sha256.Sum256(nil), nil
	}
	o := begin(h.call)
	if o.usable() {
		hostDigest(o.number, h.id)
	}
	e := o.wait()
	if e.outcome != contract.OK || copy(sum[:], e.body) != len(sum) {
		return sum, failure(e.outcome)
	}
	return sum, nil
}

func (h *held) Release() {
	if h.id != 0 {
		hostDiscard(h.id)
		h.id = 0
	}
}

// Close discards the unread rest.
func (b *hostBody) Close() error {
	if b.id != 0 {
		hostDiscard(b.id)
		b.id = 0
	}
	b.unread, b.err = nil, io.EOF
	return nil
}

// take returns the host's number of the unread rest, which this body forgets.
func (b *hostBody) take() int32 {
	id := b.id
	b.id, b.err = 0, io.EOF
	if len(b.unread) > 0 {
		id = hostPrefix(ptr(b.unread), int32(len(b.unread)), id)
		b.unread = nil
	}
	return id
}

// clientBody is the body of a request. It is opened when it is first read, so a
// refused request costs no read.
type clientBody struct {
	hostBody
	length int64
	opened bool
}

func (b *clientBody) open() {
	if !b.opened {
		b.opened, b.wait = true, stream.UploadIdle
		b.id = hostClientBody(b.call.id)
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
	got, err := b.readAll(maxBytes, stream.UploadIdle, stream.UploadTotal)
	return got, uploadError(err)
}

// ReadSteps returns the whole body, which the host reads in steps, each up to the
// number of bytes that step returns.
func (b *clientBody) ReadSteps(maxBytes int64, step func(have int64) (int64, error)) ([]byte, error) {
	_, _, all, err := b.gather(maxBytes, 0, step)
	return all, err
}

// HoldSteps reads the body like ReadSteps and stores it in the host's memory.
func (b *clientBody) HoldSteps(maxBytes int64, step func(have int64) (int64, error)) (stream.Held, error) {
	id, size, _, err := b.gather(maxBytes, 1, step)
	if err != nil {
		return nil, err
	}
	return &held{call: b.call, id: id, size: size}, nil
}

func (b *clientBody) gather(maxBytes int64, hold int32, step func(have int64) (int64,
	error)) (id int32, size int64, all []byte, err error) {
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
		o := begin(b.call)
		if o.usable() {
			hostGather(o.number, id, float64(upTo), ms(stream.UploadTotal), hold)
		}
		e := o.wait()
		if e.outcome != contract.OK && e.outcome != contract.EndOfBody {
			if e.outcome == contract.Canceled {
				hostDiscard(id) // of a call that was swept the host still has it
			}
			return 0, 0, nil, uploadError(failure(e.outcome))
		}
		if size = int64(e.status); size > maxBytes {
			if e.outcome == contract.OK || hold != 0 {
				hostDiscard(id)
			}
			return 0, 0, nil, stream.ErrTooLarge
		}
		if e.outcome == contract.EndOfBody {
			return id, size, e.body, nil
		}
	}
}

// uploadError returns the error for a failure while the client's body is read.
func uploadError(err error) error {
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

// watched are the streams that Go watches or transforms, by the host's number.
var watched = map[int32]*flow{}

// flow is one such stream.
type flow struct {
	transform stream.Transform
	call      *call
	then      job // done once the stream has ended; nil if nothing waits for that
}

//go:wasmexport weir_push
func exportPush(id, n int32) int32 {
	f := watched[id]
	if f == nil {
		return 0
	}
	if !f.transform.Ready(chunk[:n]) {
		return contract.NotReady
	}
	out = f.transform.Push(chunk[:n], out[:0])
	if f.transform.Stopped() {
		return ^int32(len(out))
	}
	return int32(len(out))
}

// weir_beat puts a heartbeat for the client into out and returns its length.
//
//go:wasmexport weir_beat
func exportBeat(id int32) int32 {
	f := watched[id]
	if f == nil {
		return 0
	}
	out = f.transform.Beat(out[:0])
	return int32(len(out))
}

//go:wasmexport weir_end
func exportEnd(id, ending int32) int32 {
	f := watched[id]
	if f == nil {
		return 0
	}
	f.end(endingError(ending))
	return int32(len(out))
}

// end reports to the transform, if there is one, how the stream has ended. The last bytes
// for the client are in out.
func (f *flow) end(err error) {
	if out = out[:0]; f.transform != nil {
		out = f.transform.End(err, out)
	}
}

//go:wasmexport weir_ended
func exportEnded(id int32) int32 {
	f := watched[id]
	if f == nil {
		return 0
	}
	delete(watched, id)
	if cap(out) > 1<<20 {
		out = nil
	}
	if f.then != nil {
		start(f.then)
	}
	return scheduled()
}

// handOver passes a body to the host and returns the host's number of it, and the
// flow of a body that Go watches or transforms.
func handOver(body io.ReadCloser) (int32, *flow) {
	switch b := body.(type) {
	case *hostBody:
		return b.take(), nil
	case *clientBody:
		return b.take(), nil
	case *stream.Bytes:
		all := b.All()
		return hostPrefix(ptr(all), int32(len(all)), 0), nil
	case *stream.Parts:
		return handOverParts(b.All()), nil
	case *stream.Prefix:
		if rest, ok := b.Rest.(*stream.Bytes); ok {
			return handOverParts([][]byte{b.Head, rest.All()}), nil
		}
		if b.Rest == nil {
			return hostPrefix(ptr(b.Head), int32(len(b.Head)), 0), nil
		}
		rest, _ := handOver(b.Rest)
		id := hostPrefix(ptr(b.Head), int32(len(b.Head)), rest)
		b.Head = nil // the host has a copy; the response lives as long as the stream
		return id, nil
	case *stream.Through:
		src, _ := handOver(b.Src)
		f, beat := &flow{transform: b.T}, ms(stream.BeatEvery(b.Idle))
		switch {
		case b.Cut:
			return watch(hostPipe(src, ms(b.Idle), -1), f)
		case b.Watch:
			return watch(hostWatch(src, ms(b.Idle), beat), f)
		}
		return watch(hostThrough(src, ms(b.Idle), beat, float64(b.T.Length())), f)
	}
	panic(fmt.Sprintf("bridge: the host cannot send a body of type %T", body))
}

func watch(id int32, f *flow) (int32, *flow) {
	watched[id] = f
	return id, f
}

// ms returns a duration in milliseconds for the host, at least one unless d is 0.
func ms(d time.Duration) int32 {
	if d <= 0 {
		return 0
	}
	return int32(min(max(d.Milliseconds(), 1), 1<<31-1))
}
