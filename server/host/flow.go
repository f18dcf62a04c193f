package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
	"weir/server/cell"
)

// Bytes of a read while little flows, and otherwise. A stream that waits holds a
// small buffer.
const (
	smallRead = 4 << 10
	largeRead = 32 << 10
)

// source is a body outside the cells.
type source struct {
	io.Reader
	close  func() error
	length int64         // -1 if unknown
	ready  bool          // a part is in memory
	upload *uploadSource // where the bytes are a client's
}

func (s source) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// open returns a body for use outside the cells. It is called inside.
func open(body io.ReadCloser, idle time.Duration) source {
	switch b := body.(type) {
	case *stream.Bytes:
		return source{Reader: b, length: int64(b.Len()), ready: true}
	case *stream.Parts:
		return source{Reader: b, length: b.Size(), ready: true}
	case *upstreamBody:
		length := b.length
		if len(b.unread) > 0 || b.err != nil {
			length = -1
		}
		s := b.take()
		s.idle = idle
		return source{Reader: s, close: s.Close, length: length, ready: len(s.head) > 0}
	case *clientBody:
		length := b.length
		if length >= 0 {
			length += int64(len(b.unread)) - b.source.read
		}
		return source{Reader: b.take(), length: length, upload: b.source}
	case *stream.Prefix:
		if b.Rest == nil {
			return source{Reader: b, length: int64(len(b.Head)), ready: true}
		}
		rest := open(b.Rest, idle)
		if rest.length >= 0 {
			rest.length += int64(len(b.Head))
		}
		rest.Reader, rest.ready = &prefixed{b.Head, rest.Reader}, true
		return rest
	}
	panic(fmt.Sprintf("host: a body of type %T cannot be sent", body))
}

// outside returns a body of a call as net/http sends it, and its length, -1 if
// unknown. It is called inside the cell.
func (x *exchange) outside(body io.ReadCloser) (io.ReadCloser, int64) {
	t, ok := body.(*stream.Through)
	if !ok {
		s := open(body, 0)
		x.upload = s.upload
		return s, s.length
	}
	length := int64(-1)
	if l, ok := t.T.(interface{ Length() int64 }); ok {
		length = l.Length()
	}
	s := open(t.Src, t.Idle)
	x.upload = s.upload
	return &transformed{source: s, t: t.T, leaver: x.Leaver, log: x.log}, length
}

// transformed is the body of a call that a transform changes. net/http reads it in
// a goroutine of its own, and over HTTP/2 may close it in another meanwhile.
type transformed struct {
	source
	t      stream.Transform
	leaver cell.Leaver
	log    func(level int, line string)
	ended  bool // of t; used inside the cell

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
	defer b.recover(&end)
	b.leaver.Inside(func() {
		if b.ended { // closed meanwhile
			err = stream.ErrClient
			return
		}
		b.out = b.out[:0]
		if len(piece) > 0 {
			b.out = b.t.Push(piece, b.out)
			if stopped(b.t) {
				err = io.EOF
			}
		}
		if err != nil {
			b.ended = true
			b.out = b.t.End(stream.Cause(err), b.out)
		}
	})
	return err
}

// Close ends the transform of a body that was not read to its end.
func (b *transformed) Close() error {
	var failed error
	func() {
		defer b.recover(&failed)
		b.leaver.Inside(func() {
			if !b.ended {
				b.ended = true
				b.t.End(stream.ErrClient, nil)
			}
		})
	}()
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

func stopped(t stream.Transform) bool {
	s, ok := t.(stream.Stopper)
	return ok && s.Stopped()
}

// observer is what Go does with a stream while it flows to the client. It is used
// outside the cells and enters them.
type observer struct {
	*instance
	transform stream.Transform
	watcher   stream.Watcher
	beater    stream.Beater // of one of them, or nil
	every     time.Duration // between its heartbeats
	cut       bool
	sample    []byte // seen, but not yet shown to watcher, up to sampleSize
	out       []byte
}

// sampleSize is how much of a watched stream is collected, so that the cell is not
// entered for each piece. Every open stream has a buffer of this size.
const sampleSize = 2 << 10

// push returns what the client receives for a piece of the stream, and whether the
// stream is over.
func (o *observer) push(piece []byte) (out []byte, over bool) {
	switch {
	case o.transform != nil:
		o.Enter()
		defer o.Exit()
		if cap(o.out) > 2*largeRead { // of a long event
			o.out = nil
		}
		o.out = o.transform.Push(piece, o.out[:0])
		return o.out, stopped(o.transform)
	case o.cut:
	case len(o.sample)+len(piece) > sampleSize:
		o.Enter()
		defer o.Exit()
		o.flush()
		o.watcher.Sample(piece)
	default:
		if o.sample == nil {
			o.sample = make([]byte, 0, sampleSize)
		}
		o.sample = append(o.sample, piece...)
	}
	return piece, false
}

// ready waits until there is memory for the next chunk, and reports whether there is.
func (o *observer) ready(ctx context.Context, chunk []byte) bool {
	w, ok := o.transform.(stream.Waiter)
	if !ok {
		return true
	}
	for waited := time.Duration(0); !o.has(w, chunk); waited += stream.ReadyAgain {
		if waited >= stream.ReadyWait || ctx.Err() != nil {
			return false
		}
		time.Sleep(stream.ReadyAgain)
	}
	return true
}

func (o *observer) has(w stream.Waiter, chunk []byte) bool {
	o.Enter()
	defer o.Exit()
	return w.Ready(chunk)
}

// beat returns a heartbeat for the client, nothing within an event.
func (o *observer) beat() []byte {
	o.Enter()
	defer o.Exit()
	if o.watcher != nil {
		o.flush()
	}
	o.out = o.beater.Beat(o.out[:0])
	return o.out
}

// flush shows the collected pieces to the watcher. It is called inside the cell.
func (o *observer) flush() {
	if len(o.sample) > 0 {
		o.watcher.Sample(o.sample)
		o.sample = o.sample[:0]
	}
}

// end returns the last bytes for the client.
func (o *observer) end(cause error) []byte {
	o.Enter()
	defer o.Exit()
	if o.transform != nil {
		return o.transform.End(cause, o.out[:0])
	}
	o.flush()
	return o.watcher.End(cause)
}

// observe returns the source of an answer's body and what Go does with it. It is
// called inside the cell.
func (i *instance) observe(body io.ReadCloser) (source, *observer) {
	switch b := body.(type) {
	case *stream.Through:
		o := &observer{instance: i, transform: b.T, every: stream.BeatEvery(b.Idle)}
		o.beater, _ = b.T.(stream.Beater)
		return open(b.Src, b.Idle), o
	case *stream.Watched:
		o := &observer{instance: i, watcher: b.W, cut: b.Cut, every: stream.BeatEvery(b.Idle)}
		o.beater, _ = b.W.(stream.Beater)
		return open(b.Src, b.Idle), o
	case *stream.Pieces:
		return source{Reader: pieces{i, b}, length: -1, ready: true}, nil
	}
	return open(body, 0), nil
}

// pieces is a body that the program makes, read outside the cell.
type pieces struct {
	*instance
	body io.Reader
}

func (b pieces) Read(p []byte) (n int, err error) {
	b.Inside(func() { n, err = b.body.Read(p) })
	return n, err
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
