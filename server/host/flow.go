package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
)

// Bytes of a read while little flows, and otherwise. A stream that waits holds a
// small buffer.
const (
	smallRead = 4 << 10
	largeRead = 32 << 10
)

// source is a body to read, of an answer or of a call.
type source struct {
	io.ReadCloser
	length int64         // -1 if unknown
	ready  bool          // a part is in memory
	upload *uploadSource // where the bytes are a client's
}

// open returns a body to read, in which a silence of idle is an error.
func open(body io.ReadCloser, idle time.Duration) source {
	switch b := body.(type) {
	case *stream.Bytes:
		return source{ReadCloser: b, length: int64(b.Len()), ready: true}
	case *stream.Parts:
		return source{ReadCloser: b, length: b.Size(), ready: true}
	case *stream.Pieces:
		return source{ReadCloser: b, length: -1, ready: true}
	case *upstreamBody:
		b.flow(idle)
		s := source{ReadCloser: b, length: b.length, ready: len(b.unread) > 0}
		if s.ready || b.err != nil {
			s.length = -1
		}
		return s
	case *clientBody:
		length := b.length
		if length >= 0 {
			length += int64(len(b.unread)) - b.source.read
		}
		return source{ReadCloser: io.NopCloser(b.take()), length: length, upload: b.source}
	case *stream.Prefix:
		s := source{length: 0}
		if b.Rest != nil {
			s = open(b.Rest, idle)
			b.Rest = s.ReadCloser
		}
		if s.length >= 0 {
			s.length += int64(len(b.Head))
		}
		s.ReadCloser, s.ready = b, true
		return s
	}
	panic(fmt.Sprintf("host: a body of type %T cannot be sent", body))
}

// source returns a body of a call as net/http sends it, and its length, -1 if unknown.
func (x *exchange) source(body io.ReadCloser) (io.ReadCloser, int64) {
	t, ok := body.(*stream.Through)
	if !ok {
		s := open(body, 0)
		x.upload = s.upload
		return s, s.length
	}
	s := open(t.Src, t.Idle)
	x.upload = s.upload
	return &transformed{source: s, t: t.T, log: x.log}, t.T.Length()
}

// transformed is the body of a call that a transform changes. net/http reads it in
// a goroutine of its own, and over HTTP/2 may close it in another meanwhile.
type transformed struct {
	source
	log func(level int, line string)

	mu    sync.Mutex // of t
	t     stream.Transform
	ended bool

	buf, rest, out []byte
	err            error // how the body has ended, for Read
}

// errPanic ends a body whose transform has panicked.
var errPanic = errors.New("host: a transform has panicked")

func (b *transformed) Read(p []byte) (int, error) {
	if b.buf == nil {
		b.buf = make([]byte, largeRead)
	}
	for len(b.rest) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		n, err := b.source.Read(b.buf)
		if b.err = b.push(b.buf[:n], err); b.err != nil && b.err != io.EOF {
			return 0, b.err // the call breaks off
		}
		b.rest = b.out
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// push transforms a piece, with the error that its Read returned, into b.out. The
// error is nil unless the body has ended.
func (b *transformed) push(piece []byte, err error) (end error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.recover(&end)
	if b.ended { // closed meanwhile
		return stream.ErrClient
	}
	b.out = b.out[:0]
	if len(piece) > 0 {
		b.out = b.t.Push(piece, b.out)
		if b.t.Stopped() {
			err = io.EOF
		}
	}
	if err != nil {
		b.ended = true
		b.out = b.t.End(stream.Cause(err), b.out)
	}
	return err
}

// Close ends the transform of a body that was not read to its end.
func (b *transformed) Close() error {
	b.mu.Lock()
	if !b.ended {
		b.ended = true
		func() {
			var failed error
			defer b.recover(&failed)
			b.t.End(stream.ErrClient, nil)
		}()
	}
	b.mu.Unlock()
	return b.source.Close()
}

// recover logs a panic of the transform, which would end the process in a goroutine
// of net/http.
func (b *transformed) recover(err *error) {
	if p := recover(); p != nil {
		*err = errPanic
		b.log(2, redact.PanicLine("", p))
	}
}

// flow is a body on its way to the client, and what the program does with it.
type flow struct {
	source
	transform stream.Transform
	cut       bool // as of stream.Through
	client    *answerWriter
	log       func(level int, line string)

	mu    sync.Mutex    // of the program's part and of client, which heartbeats use too
	every time.Duration // between heartbeats
	last  time.Time     // when something was sent
	timer *time.Timer   // of the next heartbeat
	ended bool
	buf   []byte
}

// flowOf returns the flow of an answer's body.
func flowOf(body io.ReadCloser) *flow {
	switch b := body.(type) {
	case *stream.Through:
		f := &flow{source: open(b.Src, b.Idle), transform: b.T, cut: b.Cut, every: stream.BeatEvery(b.Idle)}
		f.length = -1
		return f
	}
	return &flow{source: open(body, 0)}
}

// transforms reports whether the program gets the pieces of the body.
func (f *flow) transforms() bool { return f.transform != nil && !f.cut }

// flow sends a body as it arrives. A body that breaks off, and has no program to say
// so, closes the connection.
func (h *Host) flow(hr *http.Request, f *flow) {
	h.flows.Add(1)
	defer h.flows.Add(-1)
	defer f.Close()
	defer f.client.limit(0) // net/http writes the end
	if !f.ready {
		f.client.flush() // the head goes out before the first piece
	}
	if f.transforms() {
		f.start()
	}
	over := false
	defer func() {
		if !over { // the program has panicked: what it counted until then holds
			f.stop()
			f.end(stream.ErrReset)
		}
	}()
	end := h.pump(hr, f)
	f.stop()
	f.Close()
	over = true
	tail, said := f.end(end)
	switch {
	case said && !errors.Is(end, stream.ErrClient):
		f.client.write(tail)
	case !said && end != nil:
		panic(http.ErrAbortHandler)
	}
}

// end reports to the program how the body has ended. said is whether the program has
// a way to say so to the client: tail.
func (f *flow) end(cause error) (tail []byte, said bool) {
	if f.transform == nil {
		return nil, false
	}
	return f.transform.End(cause, f.buf[:0]), !f.cut
}

// pump sends the pieces of a body and returns how it ended.
func (h *Host) pump(hr *http.Request, f *flow) error {
	small := make([]byte, smallRead)
	buf := small
	var large *[]byte
	defer func() {
		if large != nil {
			h.buffers.Put(large)
		}
	}()
	for {
		n, err := f.Read(buf)
		if n > 0 {
			over, err := f.forward(hr.Context(), buf[:n])
			if err != nil || over {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return cause(hr.Context(), err)
		case n == len(buf) && large == nil: // a full read means that more is waiting
			large = h.buffers.Get().(*[]byte)
			buf = *large
		case n < smallRead && large != nil:
			h.buffers.Put(large)
			large, buf = nil, small
		}
	}
}

// forward sends a piece of a body, and reports whether the body is over.
func (f *flow) forward(ctx context.Context, piece []byte) (over bool, err error) {
	if !f.hasMemory(ctx, piece) {
		return false, stream.ErrMemory
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.transforms() {
		f.last = time.Now()
		if cap(f.buf) > 2*largeRead { // of a long event
			f.buf = nil
		}
		f.buf = f.transform.Push(piece, f.buf[:0])
		piece, over = f.buf, f.transform.Stopped()
	}
	if f.client.write(piece) != nil {
		return false, stream.ErrClient
	}
	return over, nil
}

// hasMemory waits until there is memory for the next piece, and reports whether there is.
func (f *flow) hasMemory(ctx context.Context, piece []byte) bool {
	if !f.transforms() {
		return true
	}
	ready := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.transform.Ready(piece)
	}
	for waited := time.Duration(0); !ready(); waited += stream.ReadyAgain {
		if waited >= stream.ReadyWait || ctx.Err() != nil {
			return false
		}
		time.Sleep(stream.ReadyAgain)
	}
	return true
}

// start begins the heartbeats of a silent stream.
func (f *flow) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = time.Now()
	f.timer = time.AfterFunc(f.every, f.beat)
}

// beat sends a heartbeat if it is due, and waits for the next. A client that has left is
// noticed by the body's next piece, or its end.
func (f *flow) beat() {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() {
		if p := recover(); p != nil { // it would end the process
			f.log(2, redact.PanicLine("", p))
		}
	}()
	if f.ended {
		return
	}
	if now := time.Now(); now.Sub(f.last) >= f.every {
		f.last = now
		f.buf = f.transform.Beat(f.buf[:0])
		if f.client.write(f.buf) != nil {
			return
		}
	}
	f.timer.Reset(time.Until(f.last.Add(f.every)))
}

// stop ends the heartbeats.
func (f *flow) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	if f.timer != nil {
		f.timer.Stop()
	}
}

// cause returns how a stream has ended: nil for io.EOF. A connection that broke
// because the client left is stream.ErrClient, or stream.ErrStopping if the server did.
func cause(ctx context.Context, err error) error {
	c := stream.Cause(err)
	if (c == stream.ErrReset || c == stream.ErrClient) && ctx.Err() != nil {
		if isCut(ctx) {
			return stream.ErrStopping
		}
		return stream.ErrClient
	}
	return c
}
