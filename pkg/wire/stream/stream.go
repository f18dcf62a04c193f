// Package stream provides the bodies whose bytes the host moves.
//
// A handler returns one of them, and the bridge turns it into native streams of the
// platform: no goroutine waits for it, and only bytes that Go reads cross into Go.
// Outside the edge platform each is an ordinary reader with the same behaviour, which
// the tests use.
package stream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"time"
)

// The errors that a body can end with. Transform.End receives one of them, or nil
// after a complete body.
var (
	ErrReset  = errors.New("stream: upstream broke off")
	ErrIdle   = errors.New("stream: upstream fell silent")
	ErrClient = errors.New("stream: client left")
	// ErrTooLarge is returned by ReadAll, and ends a stream over its limit.
	ErrTooLarge = errors.New("stream: body over the limit")
	// ErrTimeout ends a body that exceeds its total time.
	ErrTimeout = errors.New("stream: time limit reached")
	// ErrMemory ends a stream that gets no memory.
	ErrMemory = errors.New("stream: no memory")
	// ErrStopping ends a stream because the server stops.
	ErrStopping = errors.New("stream: the gateway is stopping")
)

// Bytes is a body in memory.
type Bytes struct {
	b []byte
	bytes.Reader
}

// FromBytes returns a body with the content b, which must not change afterwards.
func FromBytes(b []byte) *Bytes {
	s := &Bytes{}
	s.Reset(b)
	return s
}

// Reset makes content the content, which is read from its start. It is for a Bytes
// that is part of another value.
func (b *Bytes) Reset(content []byte) {
	b.b = content
	b.Reader.Reset(content)
}

// FromString returns a body with the content s.
func FromString(s string) *Bytes { return FromBytes([]byte(s)) }

// All returns the whole content, including bytes that have been read.
func (b *Bytes) All() []byte { return b.b }

// Close does nothing.
func (b *Bytes) Close() error { return nil }

// Prefix is a body that consists of bytes in memory and another body. The host pipes
// Rest natively.
type Prefix struct {
	Head []byte
	Rest io.ReadCloser
	off  int
}

// Read reads Head, then Rest.
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

// Parts is a body in memory that consists of several parts, which must not change.
type Parts struct {
	parts [][]byte
	next  int // the part to read
	off   int // in it
}

// FromParts returns a body with the content of parts, one after the other.
func FromParts(parts [][]byte) io.ReadCloser {
	if len(parts) == 1 {
		return FromBytes(parts[0])
	}
	return &Parts{parts: parts}
}

// All returns the parts, including those that have been read.
func (p *Parts) All() [][]byte { return p.parts }

// Size returns the number of bytes of all parts.
func (p *Parts) Size() (n int64) {
	for _, part := range p.parts {
		n += int64(len(part))
	}
	return n
}

// Read reads the parts in order.
func (p *Parts) Read(d []byte) (int, error) {
	for p.next < len(p.parts) {
		if n := copy(d, p.parts[p.next][p.off:]); n > 0 || len(d) == 0 {
			p.off += n
			return n, nil
		}
		p.next, p.off = p.next+1, 0
	}
	return 0, io.EOF
}

// Close does nothing.
func (p *Parts) Close() error { return nil }

// Pieces is a body that the program makes while it is sent. The edge does not send it.
type Pieces struct {
	Piece []byte // the next to read
	// Next returns the piece after it, nil at the end. It may call the host.
	Next func() ([]byte, error)
}

// Read reads the pieces in order.
func (p *Pieces) Read(d []byte) (int, error) {
	for len(p.Piece) == 0 {
		var err error
		if p.Piece, err = p.Next(); err != nil {
			return 0, err
		}
		if p.Piece == nil {
			return 0, io.EOF
		}
	}
	n := copy(d, p.Piece)
	p.Piece = p.Piece[n:]
	return n, nil
}

// Close does nothing.
func (p *Pieces) Close() error { return nil }

// Transform changes a stream chunk by chunk. The host's stream calls it synchronously,
// so it must neither block nor call the host.
type Transform interface {
	// Push takes the next chunk and appends its output to out. chunk is valid only
	// during the call.
	Push(chunk, out []byte) []byte
	// Beat appends a heartbeat for a silent client to out: nothing if the client has
	// received a part of an event, or the end of the stream. The host of an answer calls
	// it after each BeatEvery in which the client has received nothing. By then everything
	// that it has received was pushed.
	Beat(out []byte) []byte
	// End is called once: with nil after a complete stream, else with the cause. The
	// bytes that it appends to out are still sent, except for ErrClient.
	End(cause error, out []byte) []byte
	// Ready reports whether there is memory for the next chunk. Until then the host
	// neither pushes it nor reads on, and asks again after ReadyAgain, for at most
	// ReadyWait.
	Ready(chunk []byte) bool
	// Stopped reports after a Push that the stream ends early: Src is closed without
	// reading the rest, and End receives nil.
	Stopped() bool
	// Length is the number of bytes that come out, -1 if it is unknown.
	Length() int64
}

// Plain is a part of a Transform that has no heartbeats, needs no memory, reads its
// whole source and does not know its length.
type Plain struct{}

// Beat adds nothing.
func (Plain) Beat(out []byte) []byte { return out }

// Ready reports that any chunk may be pushed.
func (Plain) Ready([]byte) bool { return true }

// Stopped reports that the stream goes on.
func (Plain) Stopped() bool { return false }

// Length is unknown.
func (Plain) Length() int64 { return -1 }

// How often, and for how long, a host asks whether a Transform is ready.
const (
	ReadyAgain = 100 * time.Millisecond
	ReadyWait  = time.Minute
)

// BeatEvery returns the interval of heartbeats in a stream that may be silent for idle,
// 0 for no limit: 15 s, or a tenth of the limit if that is less.
func BeatEvery(idle time.Duration) time.Duration {
	if idle > 0 {
		return min(15*time.Second, idle/10)
	}
	return 15 * time.Second
}

// Through is the body Src, changed or only watched by a Transform.
type Through struct {
	Src io.ReadCloser
	T   Transform
	// Idle is how long Src may be silent before the stream ends with ErrIdle. Zero
	// means no limit.
	Idle time.Duration
	// Watch says that Push returns the bytes unchanged: the edge's host passes them on
	// itself. It pushes at most one piece a second while the stream flows, and the rest
	// after its end, so a decision must not depend on the time of Push.
	Watch bool
	// Cut is for formats that cannot carry an error, such as audio: a failure cuts
	// off the client's body too. T is told the end alone, and what it returns is not sent.
	Cut bool
	// Wait, if not nil, is called by Read before a chunk is pushed. Its error ends the
	// stream.
	Wait func(chunk []byte) error

	buf   []byte
	out   []byte
	cause error // of a body that is cut off
	ended bool
}

// Read implements io.Reader outside the edge platform.
func (t *Through) Read(d []byte) (int, error) {
	for len(t.out) == 0 {
		if t.ended {
			return 0, cmp.Or(t.cause, io.EOF)
		}
		if t.buf == nil {
			t.buf = make([]byte, 32<<10)
		}
		n, err := t.Src.Read(t.buf)
		t.out = t.out[:0]
		if n > 0 && t.Wait != nil {
			if failed := t.Wait(t.buf[:n]); failed != nil {
				n, err = 0, failed
				t.Src.Close()
			}
		}
		switch {
		case n > 0 && t.Cut:
			t.out = append(t.out, t.buf[:n]...)
		case n > 0:
			t.out = t.T.Push(t.buf[:n], t.out)
			if t.T.Stopped() {
				err = io.EOF
				t.Src.Close()
			}
		}
		if err != nil {
			t.ended = true
			out := t.T.End(Cause(err), t.out)
			if t.Cut {
				t.cause = Cause(err)
			} else {
				t.out = out
			}
		}
	}
	n := copy(d, t.out)
	t.out = t.out[n:]
	return n, nil
}

// Close ends the transform with ErrClient.
func (t *Through) Close() error {
	if !t.ended {
		t.ended = true
		t.T.End(ErrClient, nil)
	}
	return t.Src.Close()
}

// Cause returns the error that End receives for an error of a reader: nil for io.EOF,
// errors of this package unchanged, and ErrReset for all others.
func Cause(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil
	case errors.Is(err, ErrIdle), errors.Is(err, ErrClient), errors.Is(err, ErrTooLarge), errors.Is(err, ErrTimeout),
		errors.Is(err, ErrMemory), errors.Is(err, ErrStopping):
		return err
	}
	return ErrReset
}

// allReader is a body that can be read in one step, such as a host's.
type allReader interface {
	ReadAll(maxBytes int64) ([]byte, error)
}

// ReadAll reads a body to its end and closes it. The error is ErrTooLarge for a body of
// more than maxBytes, which is not read further.
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

// Memory is the memory of a call, by which its host acquires what the answer of an
// upstream takes.
type Memory interface {
	// GrowAnswer waits until an answer that had so much in memory may have more.
	// TryAnswer does not wait, and reports whether it may, or never will; a host that
	// waits itself uses it. Answers of over 64 KiB are counted.
	GrowAnswer(ctx context.Context, had, next Gathered) error
	TryAnswer(had, next Gathered) (ok, refused bool)
	// Sent reports that the upstream has the request: the host's copy is free.
	Sent()
}

// Gathered is an answer that a host gathers: its bytes so far, and how many it may have
// in all, -1 if that is unknown. One that has all is passed to the program next.
type Gathered struct{ Bytes, Of int64 }

// All reports whether the answer may have all its bytes.
func (g Gathered) All() bool { return g.Of >= 0 && g.Bytes >= g.Of }

// Metered is a body that acquires memory while it is read by ReadAll or Hold, in
// steps ahead of the bytes.
type Metered struct {
	io.ReadCloser
	Length int64 // as declared, -1 if unknown
	// Grow is called before the body has up to total bytes in memory, and at its
	// end with last and its length. An error ends the body.
	Grow func(total int64, last bool) error
}

// Step is the least that a Metered acquires at a time, and maxStep the most, in bytes.
const (
	Step    = 64 << 10
	maxStep = 1 << 20
)

// stepper is a body that is gathered in steps. step returns the number of bytes up to
// which to read next.
type stepper interface {
	ReadSteps(maxBytes int64, step func(have int64) (int64, error)) ([]byte, error)
}

// stepHolder is a body that the host stores in steps.
type stepHolder interface {
	HoldSteps(maxBytes int64, step func(have int64) (int64, error)) (Held, error)
}

// step acquires memory for a body of have bytes: for all of a known length, and once more
// for the byte that shows its end, else to grow by half, within Step and maxStep.
func (m *Metered) step(have, maxBytes int64) (int64, error) {
	total := have + min(max(Step, have/2), maxStep)
	if m.Length > have {
		total = m.Length
	} else if m.Length >= 0 {
		total = have + 1
	}
	total = min(total, maxBytes+1)
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

// Hold stores the whole body.
func (m *Metered) Hold(maxBytes int64) (held Held, err error) {
	s, ok := m.ReadCloser.(stepHolder)
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
	var parts [][]byte // a buffer that grows would take up to three times its content
	have := int64(0)
	for {
		total, err := step(have)
		if err != nil {
			return nil, err
		}
		for have < total {
			part, err := readPart(m.ReadCloser, min(total-have, maxPart))
			have += int64(len(part))
			parts = append(parts, part)
			switch {
			case have > maxBytes:
				return nil, ErrTooLarge
			case err == io.EOF:
				return join(parts, have), nil
			case err != nil:
				return nil, err
			}
		}
	}
}

// maxPart is the most that readSteps reads into one buffer, in bytes.
const maxPart = 1 << 20

// readPart reads n bytes, or to the end, which is io.EOF.
func readPart(r io.Reader, n int64) ([]byte, error) {
	part := make([]byte, 0, n)
	for int64(len(part)) < n {
		m, err := r.Read(part[len(part):n])
		if part = part[:len(part)+m]; err != nil {
			return part, err
		}
	}
	return part, nil
}

// join returns the content of parts, which have n bytes in all, and frees each as it
// is copied.
func join(parts [][]byte, n int64) []byte {
	if len(parts) == 1 && n > int64(cap(parts[0]))/2 {
		return parts[0]
	}
	all := make([]byte, 0, n)
	for i := range parts {
		all, parts[i] = append(all, parts[i]...), nil
	}
	return all
}

// Held is a complete body that can be sent more than once. On the edge platform the
// host stores it: its bytes never enter Go.
type Held interface {
	// Size is the number of bytes.
	Size() int64
	// SHA256 is the digest of the bytes.
	SHA256() ([32]byte, error)
	// Open returns the body from its start. Each opened body is sent once.
	Open() io.ReadCloser
	// Release frees the bytes.
	Release()
}

// Hold stores a whole body and closes it. The error is ErrTooLarge for a body of more
// than maxBytes, which is not read further.
func Hold(body io.ReadCloser, maxBytes int64) (Held, error) {
	if m, ok := body.(*Metered); ok {
		return m.Hold(maxBytes)
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
