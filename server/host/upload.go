package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
	"weir/server/cell"
)

// A body of up to smallBody declared bytes is read before the program is entered,
// for up to smallBodyTime.
const (
	smallBody     = 64 << 10
	smallBodyTime = 20 * time.Second
)

// The limits of reading a client's body (docs/reference/reliability.md, T38).
const (
	uploadIdle  = 20 * time.Second
	uploadTotal = 120 * time.Second
	minRate     = 64 << 10 // bytes a second that a body in memory must have
	maxLag      = 5 * time.Second
)

// readSmall returns the whole body of a request.
func readSmall(w http.ResponseWriter, hr *http.Request) (*stream.Bytes, *apierr.Error) {
	limit := http.NewResponseController(w)
	limit.SetReadDeadline(time.Now().Add(smallBodyTime))
	all := make([]byte, hr.ContentLength)
	_, err := io.ReadFull(hr.Body, all)
	switch {
	case err == nil:
		limit.SetReadDeadline(time.Time{}) // net/http goes on reading, to notice that the client leaves
		return stream.FromBytes(all), nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		// The deadline stays: net/http reads the rest of the body before it answers.
		return nil, apierr.New(408, "", "The request body did not arrive in time.")
	}
	return nil, apierr.New(400, "", "The connection closed before the request body was complete.")
}

// clientBody is the body of a request, which the program reads. Its methods are
// called inside the cell; what reads it elsewhere takes its source.
type clientBody struct {
	source *uploadSource
	leaver cell.Leaver
	ctx    context.Context
	length int64
	unread []byte
	closed bool
}

func newClientBody(l cell.Leaver, w http.ResponseWriter, hr *http.Request) *clientBody {
	limit := http.NewResponseController(w)
	limit.EnableFullDuplex() // an answer may come before the end of the body
	return &clientBody{source: &uploadSource{body: hr.Body, limit: limit}, leaver: l, ctx: hr.Context(), length: hr.ContentLength}
}

// Read reads the next bytes. A pause of uploadIdle is stream.ErrIdle.
func (b *clientBody) Read(p []byte) (n int, err error) {
	if len(b.unread) > 0 {
		n = copy(p, b.unread)
		b.unread = b.unread[n:]
		return n, nil
	}
	if b.closed {
		return 0, io.EOF
	}
	b.leaver.Outside(b.ctx, func() { n, err = b.source.Read(p) })
	return n, err
}

// Unread returns bytes to the body, to be read again.
func (b *clientBody) Unread(head []byte) { b.unread = append(head[:len(head):len(head)], b.unread...) }

// Close discards the rest.
func (b *clientBody) Close() error {
	b.closed, b.unread = true, nil
	return nil
}

// end is called when the request is over: nothing reads the body any more.
func (b *clientBody) end() { b.source.end() }

// take returns a reader of the rest for use outside the cell.
func (b *clientBody) take() io.Reader {
	rest := b.unread
	b.unread = nil
	if b.closed {
		return http.NoBody
	}
	b.closed = true
	if len(rest) == 0 {
		return b.source
	}
	return &prefixed{rest, b.source}
}

// ReadAll returns the whole body.
func (b *clientBody) ReadAll(maxBytes int64) ([]byte, error) {
	return b.ReadSteps(maxBytes, func(int64) (int64, error) { return maxBytes + 1, nil })
}

// Hold stores the whole body.
func (b *clientBody) Hold(maxBytes int64) (stream.Held, error) {
	all, err := b.ReadAll(maxBytes)
	if err != nil {
		return nil, err
	}
	return b.held(all), nil
}

// HoldSteps is Hold in steps as those of ReadSteps.
func (b *clientBody) HoldSteps(maxBytes int64, step func(have int64) (int64, error)) (stream.Held, error) {
	all, err := b.ReadSteps(maxBytes, step)
	if err != nil {
		return nil, err
	}
	return b.held(all), nil
}

// ReadSteps returns the whole body, read in steps, each up to the number of bytes
// that step returns. The error is stream.ErrTooLarge for more than maxBytes, and
// stream.ErrIdle for a body that arrives too slowly.
func (b *clientBody) ReadSteps(maxBytes int64, step func(have int64) (int64, error)) ([]byte, error) {
	if b.length > maxBytes {
		return nil, stream.ErrTooLarge
	}
	src := b.take()
	all := []byte(nil)
	lag, left := maxLag, uploadTotal
	for done := false; !done; {
		upTo, err := step(int64(len(all)))
		if err != nil {
			return nil, err
		}
		b.leaver.Outside(b.ctx, func() {
			for !done && err == nil && int64(len(all)) < upTo {
				all = grown(all, b.length, upTo)
				asked := time.Now()
				b.source.limitNext(max(time.Millisecond, min(lag, left)))
				var n int
				n, err = src.Read(all[len(all):cap(all)])
				took := time.Since(asked)
				all = all[:len(all)+n]
				left -= took
				lag = min(maxLag, lag-took+time.Duration(n)*time.Second/minRate)
				if err == io.EOF {
					done, err = true, nil
				}
			}
		})
		switch {
		case err != nil:
			return nil, err
		case int64(len(all)) > maxBytes:
			return nil, stream.ErrTooLarge
		}
	}
	return all, nil
}

// grown returns b with capacity for at least one more byte: for the declared
// length and the end after it, but never beyond upTo.
func grown(b []byte, length, upTo int64) []byte {
	if len(b) < cap(b) {
		return b
	}
	size := max(int64(2*len(b)), pieceSize)
	if length >= 0 {
		size = max(length, int64(len(b))) + 1
	}
	// append rounds the capacity up to what is allocated in any case.
	next := append([]byte(nil), make([]byte, max(min(size, upTo), int64(len(b))+1))...)
	return next[:copy(next, b)]
}

// pieceSize is the first size of a buffer for a body of unknown length.
const pieceSize = 32 << 10

// uploadSource reads a client's body outside the cells. Reading it after the end
// of the request is an error.
type uploadSource struct {
	body  io.Reader
	limit *http.ResponseController

	next   time.Duration // limit of the next read, uploadIdle if 0
	read   int64         // bytes
	failed atomic.Bool   // the body did not arrive
	whole  atomic.Bool   // it was read to its end

	mu    sync.Mutex
	ended bool
}

// limitNext limits the next Read.
func (s *uploadSource) limitNext(d time.Duration) { s.next = d }

func (s *uploadSource) Read(p []byte) (int, error) {
	d := s.next
	if s.next = 0; d == 0 {
		d = uploadIdle
	}
	if !s.deadline(time.Now().Add(d)) {
		return 0, stream.ErrClient
	}
	n, err := s.body.Read(p)
	s.read += int64(n)
	s.deadline(time.Time{})
	if err == io.EOF {
		s.whole.Store(true)
	}
	if err == nil || err == io.EOF {
		return n, err
	}
	s.failed.Store(true)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, stream.ErrIdle
	}
	return n, stream.ErrReset
}

// deadline sets the time limit of reads, unless the request is over: the
// connection may have another one.
func (s *uploadSource) deadline(at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.limit.SetReadDeadline(at)
	return true
}

func (s *uploadSource) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if !s.whole.Load() {
		s.limit.SetReadDeadline(time.Now().Add(discardTime))
	}
}

// held is a whole body in memory.
type held struct {
	all    []byte
	leaver cell.Leaver
	ctx    context.Context
}

func (b *clientBody) held(all []byte) *held { return &held{all, b.leaver, b.ctx} }

// Size returns the number of bytes.
func (h *held) Size() int64 { return int64(len(h.all)) }

// Open returns the body from its start.
func (h *held) Open() io.ReadCloser { return stream.FromBytes(h.all) }

// Release frees the bytes.
func (h *held) Release() { h.all = nil }

// SHA256 returns the digest of the bytes.
func (h *held) SHA256() (sum [32]byte, err error) {
	h.leaver.Outside(h.ctx, func() { sum = sha256.Sum256(h.all) })
	return sum, nil
}

// prefixed reads head, then rest.
type prefixed struct {
	head []byte
	rest io.Reader
}

func (p *prefixed) Read(d []byte) (int, error) {
	if len(p.head) > 0 {
		n := copy(d, p.head)
		p.head = p.head[n:]
		return n, nil
	}
	return p.rest.Read(d)
}
