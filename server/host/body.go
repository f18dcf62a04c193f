package host

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// upstreamBody is the body of an upstream's answer. Its methods are called inside
// the cell; what reads it elsewhere takes its source.
type upstreamBody struct {
	*exchange
	body   io.ReadCloser
	length int64 // as declared, -1 if unknown
	unread []byte
	err    error

	wait    time.Duration   // limit of a Read, 0 for that of the head
	granted stream.Gathered // that its memory was acquired for
}

// LimitRead limits how long each Read may take from now on.
func (b *upstreamBody) LimitRead(d time.Duration) { b.wait = d }

// Read reads the next bytes, within the time that the head may take unless LimitRead
// has set another.
func (b *upstreamBody) Read(p []byte) (n int, err error) {
	if len(b.unread) > 0 {
		n = copy(p, b.unread)
		b.unread = b.unread[n:]
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	b.Outside(b.caller, func() {
		wait := b.wait
		if wait == 0 {
			wait = b.req.HeaderTimeout
		}
		b.limits.within(wait, upstream.ErrTimeout, stream.ErrTimeout)
		n, err = b.body.Read(p)
		b.limits.within(0, nil, stream.ErrTimeout)
		if err == nil {
			return
		}
		if err != io.EOF {
			err = b.failed(err, upstream.ErrCut)
		}
		b.release()
	})
	b.err = err
	return n, err
}

// Unread returns bytes to the body, to be read again.
func (b *upstreamBody) Unread(head []byte) {
	b.unread = append(head[:len(head):len(head)], b.unread...)
}

// ReadAll returns the whole body.
func (b *upstreamBody) ReadAll(maxBytes int64) (all []byte, err error) {
	head := b.unread
	b.unread = nil
	if b.err != nil {
		if b.err == io.EOF {
			return head, nil
		}
		return head, b.err
	}
	b.err = io.EOF
	all = head
	for done := false; !done && err == nil; {
		upTo := maxBytes + 1
		if m := b.req.Memory; m != nil {
			upTo = min(upTo, int64(len(all)+max(stream.Step, len(all)/2)))
			b.limits.within(0, nil, stream.ErrTimeout) // waiting for memory is not the upstream's silence
			next := stream.Gathered{Bytes: upTo, Of: b.length}
			if err := m.GrowAnswer(b.caller, b.granted, next); err != nil {
				b.finish()
				go b.body.Close() // as in Close
				return nil, err
			}
			b.granted = next
		}
		b.Outside(b.caller, func() { all, done, err = b.gather(all, upTo, maxBytes, b.req.Idle) })
	}
	return all, err
}

// gather reads the body up to upTo bytes, with those of head in front, outside the
// cell. done reports that it has ended. idle limits the silence within it.
func (b *upstreamBody) gather(head []byte, upTo, maxBytes int64, idle time.Duration) (all []byte, done bool, err error) {
	defer func() {
		if done || err != nil {
			b.release()
		}
	}()
	all = head
	length := b.length
	if length > maxBytes {
		return nil, false, stream.ErrTooLarge
	}
	for int64(len(all)) < upTo {
		all = grown(all, length, upTo)
		b.limits.within(idle, stream.ErrIdle, stream.ErrTimeout)
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

// Close discards the rest.
func (b *upstreamBody) Close() error {
	b.unread = nil
	if b.err == nil { // else it was released, or is read elsewhere
		b.err = io.EOF
		b.finish()
		go b.body.Close() // may wait for an HTTP/2 upstream that reads nothing
	}
	return nil
}

// release ends the call, outside the cell. A body that was not read to its end
// closes its connection, or resets its stream.
func (b *upstreamBody) release() {
	b.finish()
	b.body.Close()
}

// take returns a reader of the rest for use outside the cell, which closes the body.
func (b *upstreamBody) take() *answerSource {
	s := &answerSource{body: b, head: b.unread, end: io.EOF}
	if b.err != nil { // which may have come together with the unread bytes
		s.end = sourceError(b.err)
		s.done.Store(true)
	}
	b.unread = nil
	if b.err == nil {
		b.err = io.EOF
	}
	return s
}

// answerSource reads an upstream's body outside the cells.
type answerSource struct {
	body *upstreamBody
	head []byte
	done atomic.Bool   // net/http may close the body of a call while it reads it
	end  error         // of a body that is done
	idle time.Duration // limit of the silence, 0 for none
}

// Read returns the next bytes. Its errors are those of package stream that a body
// ends with.
func (s *answerSource) Read(p []byte) (int, error) {
	if len(s.head) > 0 {
		n := copy(p, s.head)
		s.head = s.head[n:]
		return n, nil
	}
	if s.done.Load() {
		return 0, s.end
	}
	b := s.body
	if s.idle > 0 {
		b.limits.within(s.idle, stream.ErrIdle, stream.ErrTimeout)
	}
	n, err := b.body.Read(p)
	if err != nil && err != io.EOF {
		err = sourceError(b.failed(err, stream.ErrReset))
	}
	if err != nil {
		s.Close()
	}
	return n, err
}

// sourceError returns the error of package stream for one that ended a body.
func sourceError(err error) error {
	switch {
	case err == io.EOF:
		return err
	case errors.Is(err, upstream.ErrCanceled):
		return stream.ErrClient
	case errors.Is(err, upstream.ErrTimeout):
		return stream.ErrIdle
	case errors.Is(err, upstream.ErrNetwork):
		return stream.ErrReset
	}
	return err
}

// Close ends the call.
func (s *answerSource) Close() error {
	if !s.done.Swap(true) {
		s.body.release()
	}
	return nil
}
