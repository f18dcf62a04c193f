// Package stream has the bodies that the host moves.
//
// Go decides and the host moves the bytes: a handler gives back one of these,
// and the bridge turns it into native streams, so no goroutine lives and no
// byte crosses into Go that nobody reads. Natively each is an ordinary reader
// with the same behaviour, which is what the tests read.
package stream

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"time"
)

// The ways a body ends that are not a clean end. Transform.End and
// Watcher.End are given one of them, or nil.
var (
	ErrReset  = errors.New("stream: upstream broke off")
	ErrIdle   = errors.New("stream: upstream fell silent")
	ErrClient = errors.New("stream: client left")
	// ErrTooLarge is returned by ReadAll, and ends a stream over its limit.
	ErrTooLarge = errors.New("stream: body over the limit")
	// ErrTimeout ends a body whose total time is up.
	ErrTimeout = errors.New("stream: time limit reached")
)

// Bytes is a body that is already in memory.
type Bytes struct {
	b []byte
	bytes.Reader
}

// FromBytes makes a body of b, which must not change afterwards.
func FromBytes(b []byte) *Bytes {
	s := &Bytes{b: b}
	s.Reset(b)
	return s
}

// FromString makes a body of s.
func FromString(s string) *Bytes { return FromBytes([]byte(s)) }

// All gives the whole content, whatever has been read.
func (b *Bytes) All() []byte { return b.b }

// Close does nothing.
func (b *Bytes) Close() error { return nil }

// Prefix is a body that starts with bytes in memory and goes on with another
// body. The host pipes Rest natively.
type Prefix struct {
	Head []byte
	Rest io.ReadCloser
	off  int
}

// Read gives Head, then Rest.
func (p *Prefix) Read(d []byte) (int, error) {
	if p.off < len(p.Head) {
		n := copy(d, p.Head[p.off:])
		p.off += n
		return n, nil
	}
	if p.Rest == nil {
		return 0, io.EOF
	}
	return p.Rest.Read(d)
}

// Close closes Rest.
func (p *Prefix) Close() error {
	if p.Rest == nil {
		return nil
	}
	return p.Rest.Close()
}

// Transform changes a stream chunk by chunk. It is called synchronously by
// the host's stream, so it must not block and must not call the host.
type Transform interface {
	// Push takes the next chunk and appends to out what goes out for it.
	// chunk is valid only during the call.
	Push(chunk, out []byte) []byte
	// End is called once: with nil at a clean end, else with the reason. What
	// it appends to out still goes out, except for ErrClient.
	End(cause error, out []byte) []byte
}

// Stopper is a Transform that may have had enough: after a Push it is asked
// whether Src is let go of, without reading it to its end. End is told of a
// clean end then.
type Stopper interface {
	Stopped() bool
}

// Through is Src seen through a Transform.
type Through struct {
	Src io.ReadCloser
	T   Transform
	// Idle ends the stream with ErrIdle when Src gives nothing for so long.
	// Zero means no limit.
	Idle time.Duration

	buf   []byte
	out   []byte
	ended bool
}

// Read is the native behaviour of the transform.
func (t *Through) Read(d []byte) (int, error) {
	for len(t.out) == 0 {
		if t.ended {
			return 0, io.EOF
		}
		if t.buf == nil {
			t.buf = make([]byte, 32<<10)
		}
		n, err := t.Src.Read(t.buf)
		t.out = t.out[:0]
		if n > 0 {
			t.out = t.T.Push(t.buf[:n], t.out)
			if s, ok := t.T.(Stopper); ok && s.Stopped() {
				t.ended = true
				t.out = t.T.End(nil, t.out)
				t.Src.Close()
				continue
			}
		}
		if err != nil {
			t.ended = true
			t.out = t.T.End(Cause(err), t.out)
		}
	}
	n := copy(d, t.out)
	t.out = t.out[n:]
	return n, nil
}

// Close ends the transform early, as a client that leaves does.
func (t *Through) Close() error {
	if !t.ended {
		t.ended = true
		t.T.End(ErrClient, nil)
	}
	return t.Src.Close()
}

// Watcher reads along with a stream that passes unchanged. On the edge it is
// fed by a sampled tee: at most one piece a second while the stream flows, the
// rest when it has ended, so nothing can be decided from Sample alone.
type Watcher interface {
	// Sample sees the next piece of the stream, in order and complete by the
	// time End is called. It must not call the host.
	Sample(piece []byte)
	// End tells how the stream ended. The bytes it returns are sent to the
	// client before the end, except for ErrClient.
	End(cause error) (tail []byte)
}

// Watched is Src passed on byte for byte under the eyes of W.
type Watched struct {
	Src  io.ReadCloser
	W    Watcher
	Idle time.Duration // as in Through
	// Cut is for bytes in which nothing can tell of a failure: after one the
	// client's body is cut off too, instead of ending. W is then told of the
	// end alone.
	Cut bool

	tail  []byte
	cause error
	ended bool
}

// Read is the native behaviour of the watched stream.
func (w *Watched) Read(d []byte) (int, error) {
	if !w.ended {
		n, err := w.Src.Read(d)
		if n > 0 && !w.Cut {
			w.W.Sample(d[:n])
		}
		if err != nil {
			w.ended = true
			w.tail = w.W.End(Cause(err))
			if w.Cut {
				w.tail, w.cause = nil, Cause(err)
			}
		}
		if n > 0 {
			return n, nil
		}
		if !w.ended {
			return 0, nil
		}
	}
	if w.cause != nil {
		return 0, w.cause
	}
	if len(w.tail) == 0 {
		return 0, io.EOF
	}
	n := copy(d, w.tail)
	w.tail = w.tail[n:]
	return n, nil
}

// Close ends the watching early, as a client that leaves does.
func (w *Watched) Close() error {
	if !w.ended {
		w.ended = true
		w.W.End(ErrClient)
	}
	return w.Src.Close()
}

// Cause gives the error that End is told for a reader's error: nil for io.EOF,
// one of this package's errors as it is, ErrReset for all others.
func Cause(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil
	case errors.Is(err, ErrIdle), errors.Is(err, ErrClient), errors.Is(err, ErrTooLarge), errors.Is(err, ErrTimeout):
		return err
	}
	return ErrReset
}

// allReader is a body that can be had whole in one step, as a host's can.
type allReader interface {
	ReadAll(maxBytes int64) ([]byte, error)
}

// ReadAll reads a body to its end and closes it. A body of more than maxBytes
// gives ErrTooLarge and is not read further.
func ReadAll(body io.ReadCloser, maxBytes int64) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	defer body.Close()
	switch b := body.(type) {
	case *Bytes:
		if int64(len(b.b)) > maxBytes {
			return nil, ErrTooLarge
		}
		return b.b, nil
	case allReader:
		return b.ReadAll(maxBytes)
	}
	all, err := io.ReadAll(io.LimitReader(body, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(all)) > maxBytes {
		return nil, ErrTooLarge
	}
	return all, nil
}

// Metered is a body that acquires memory while it is read by ReadAll or Hold, in
// steps ahead of the bytes.
type Metered struct {
	io.ReadCloser
	Length int64 // as declared, -1 when it is not known
	// Grow is called before the body has up to total bytes in memory, and at its
	// end with last and its length. An error ends the body.
	Grow func(total int64, last bool) error
}

// Step is the least that a Metered acquires at a time, in bytes.
const Step = 64 << 10

// stepper is a body that the host gathers in steps. step returns the number of
// bytes up to which to read next.
type stepper interface {
	ReadSteps(maxBytes int64, step func(have int64) (int64, error)) ([]byte, error)
	HoldSteps(maxBytes int64, step func(have int64) (int64, error)) (Held, error)
}

// step acquires memory for a body of have bytes to grow by half, at least by Step,
// and by one byte past the end to detect it.
func (m *Metered) step(have, maxBytes int64) (int64, error) {
	total := min(have+max(Step, have/2), maxBytes+1)
	if m.Length >= 0 {
		total = min(total, max(m.Length, have)+1)
	}
	return total, m.Grow(total, false)
}

// ReadAll reads the whole body.
func (m *Metered) ReadAll(maxBytes int64) (all []byte, err error) {
	step := func(have int64) (int64, error) { return m.step(have, maxBytes) }
	if s, ok := m.ReadCloser.(stepper); ok {
		all, err = s.ReadSteps(maxBytes, step)
	} else {
		all, err = m.readSteps(maxBytes, step)
	}
	if err != nil {
		return nil, err
	}
	return all, m.Grow(int64(len(all)), true)
}

// Hold keeps the whole body.
func (m *Metered) Hold(maxBytes int64) (held Held, err error) {
	s, ok := m.ReadCloser.(stepper)
	if !ok {
		all, err := m.ReadAll(maxBytes)
		return heldBytes(all), err
	}
	held, err = s.HoldSteps(maxBytes, func(have int64) (int64, error) { return m.step(have, maxBytes) })
	if err != nil {
		return nil, err
	}
	return held, m.Grow(held.Size(), true)
}

// readSteps is ReadSteps for a body without a host.
func (m *Metered) readSteps(maxBytes int64, step func(have int64) (int64, error)) ([]byte, error) {
	if b, ok := m.ReadCloser.(*Bytes); ok {
		return ReadAll(b, maxBytes)
	}
	var all []byte
	for {
		total, err := step(int64(len(all)))
		if err != nil {
			return nil, err
		}
		more, err := io.ReadAll(io.LimitReader(m.ReadCloser, total-int64(len(all))))
		all = append(all, more...)
		switch {
		case err != nil:
			return nil, err
		case int64(len(all)) > maxBytes:
			return nil, ErrTooLarge
		case int64(len(all)) < total:
			return all, nil
		}
	}
}

// Held is a body that is kept whole by whoever moves it, so that it can be sent
// more than once. On the edge the host keeps it: its bytes never enter Go.
type Held interface {
	// Size is the number of bytes.
	Size() int64
	// SHA256 is the digest of the bytes.
	SHA256() ([32]byte, error)
	// Open gives the body from its start. Each opened body is moved once.
	Open() io.ReadCloser
	// Release lets go of the bytes.
	Release()
}

// holder is a body that the host can keep.
type holder interface {
	Hold(maxBytes int64) (Held, error)
}

// Hold gathers a body and closes it. A body of more than maxBytes gives
// ErrTooLarge and is not read further.
func Hold(body io.ReadCloser, maxBytes int64) (Held, error) {
	if h, ok := body.(holder); ok {
		return h.Hold(maxBytes)
	}
	all, err := ReadAll(body, maxBytes)
	if err != nil {
		return nil, err
	}
	return heldBytes(all), nil
}

type heldBytes []byte

func (h heldBytes) Size() int64         { return int64(len(h)) }
func (h heldBytes) Open() io.ReadCloser { return FromBytes(h) }
func (h heldBytes) Release()            {}
func (h heldBytes) SHA256() ([32]byte, error) {
	return sha256.Sum256(h), nil
}
