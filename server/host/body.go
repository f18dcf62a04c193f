package host

import (
	"cmp"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// upstreamBody is the body of an upstream's answer: one goroutine reads it, the program
// or what sends it on. Over HTTP/2, net/http may close a body that it sends meanwhile.
type upstreamBody struct {
	*exchange
	body   io.ReadCloser
	length int64 // as declared, -1 if unknown
	unread []byte
	err    error       // that the body has ended with
	done   atomic.Bool // it has ended, or was closed

	wait    time.Duration   // limit of a Read, 0 for that of the head
	flows   bool            // it is sent on: Read has the errors of package stream
	idle    time.Duration   // limit of the silence then, 0 for none
	granted stream.Gathered // that its memory was acquired for
}

// LimitRead limits how long each Read may take from now on.
func (b *upstreamBody) LimitRead(d time.Duration) { b.wait = d }

// flow prepares the body to be sent on, with a limit of the silence in it.
func (b *upstreamBody) flow(idle time.Duration) { b.flows, b.idle = true, idle }

// Read reads the next bytes, within the time that the head may take unless LimitRead
// has set another. When the body flows, its errors are those of package stream.
func (b *upstreamBody) Read(p []byte) (n int, err error) {
	if len(b.unread) > 0 {
		n = copy(p, b.unread)
		b.unread = b.unread[n:]
		return n, nil
	}
	if b.done.Load() {
		return 0, b.ended()
	}
	if b.flows {
		if b.idle > 0 {
			b.limits.within(b.idle, stream.ErrIdle, stream.ErrTimeout)
		}
		n, err = b.body.Read(p)
	} else {
		wait := cmp.Or(b.wait, b.req.HeaderTimeout)
		b.limits.within(wait, upstream.ErrTimeout, stream.ErrTimeout)
		n, err = b.body.Read(p)
		b.limits.within(0, nil, stream.ErrTimeout)
	}
	if err == nil {
		return n, nil
	}
	b.err = err
	if err != io.EOF {
		b.err = b.failed(err, upstream.ErrCut)
	}
	b.release()
	return n, b.ended()
}

// ended returns the error of a body that has ended.
func (b *upstreamBody) ended() error {
	switch {
	case b.err == nil:
		return io.EOF // it was closed
	case b.err == io.EOF, !b.flows:
		return b.err
	case errors.Is(b.err, upstream.ErrCanceled):
		return stream.ErrClient
	case errors.Is(b.err, upstream.ErrTimeout):
		return stream.ErrIdle
	case errors.Is(b.err, upstream.ErrNetwork):
		return stream.ErrReset
	}
	return b.err
}

// Unread returns bytes to the body, to be read again.
func (b *upstreamBody) Unread(head []byte) {
	b.unread = append(head[:len(head):len(head)], b.unread...)
}

// ReadAll returns the whole body.
func (b *upstreamBody) ReadAll(maxBytes int64) (all []byte, err error) {
	all, b.unread = b.unread, nil
	if b.done.Load() {
		if err = b.ended(); err == io.EOF {
			err = nil
		}
		return all, err
	}
	for done := false; !done && err == nil; {
		upTo := maxBytes + 1
		if m := b.req.Memory; m != nil {
			upTo = min(upTo, int64(len(all)+max(stream.Step, len(all)/2)))
			b.limits.within(0, nil, stream.ErrTimeout) // waiting for memory is not the upstream's silence
			next := stream.Gathered{Bytes: upTo, Of: b.length}
			if err := m.GrowAnswer(b.caller, b.granted, next); err != nil {
				b.Close()
				return nil, err
			}
			b.granted = next
		}
		all, done, err = b.gather(all, upTo, maxBytes)
	}
	return all, err
}

// gather reads the body up to upTo bytes, with those of all in front. done reports that
// it has ended. The body is closed then, or after an error.
func (b *upstreamBody) gather(all []byte, upTo, maxBytes int64) (_ []byte, done bool, err error) {
	defer func() {
		if done || err != nil {
			b.release()
		}
	}()
	if b.length > maxBytes {
		return nil, false, stream.ErrTooLarge
	}
	for int64(len(all)) < upTo {
		all = grown(all, b.length, upTo)
		b.limits.within(b.req.Idle, stream.ErrIdle, stream.ErrTimeout)
		n, err := b.body.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		switch {
		case int64(len(all)) > maxBytes:
			return nil, false, stream.ErrTooLarge
		case err == io.EOF:
			return all, true, nil
		case err != nil:
			return nil, false, b.failed(err, upstream.ErrCut)
		}
	}
	return all, false, nil
}

// Close ends the call, and discards the rest.
func (b *upstreamBody) Close() error {
	if !b.flows {
		b.unread = nil
	}
	if !b.done.Swap(true) {
		b.finish()
		go b.body.Close() // may wait for an HTTP/2 upstream that reads nothing
	}
	return nil
}

// release ends the call. A body that was not read to its end closes its connection, or
// resets its stream.
func (b *upstreamBody) release() {
	if !b.done.Swap(true) {
		b.finish()
		b.body.Close()
	}
}
