package host

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// bodyOf sets the body of a request: in memory if it is small, else one that the program
// reads, whose source is returned.
func bodyOf(w http.ResponseWriter, hr *http.Request, r *httpmsg.Request) (*uploadSource, *apierr.Error) {
	switch {
	case hr.ContentLength == 0:
		return nil, nil
	case hr.ContentLength > 0 && hr.ContentLength <= stream.SmallBody && hr.Header["Content-Encoding"] == nil:
		body, err := readSmall(w, hr)
		if err != nil {
			return nil, err
		}
		r.Body = body
		return nil, nil
	}
	body := newClientBody(w, hr)
	r.Body = body
	return body.source, nil
}

// readSmall returns the whole body of a request.
func readSmall(w http.ResponseWriter, hr *http.Request) (*stream.Bytes, *apierr.Error) {
	limit := http.NewResponseController(w)
	limit.SetReadDeadline(time.Now().Add(stream.UploadIdle))
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

// clientBody is the body of a request, which the program reads. A call that sends it on
// takes its source.
type clientBody struct {
	source *uploadSource
	length int64
	unread []byte
	closed bool
}

func newClientBody(w http.ResponseWriter, hr *http.Request) *clientBody {
	limit := http.NewResponseController(w)
	limit.EnableFullDuplex() // an answer may come before the end of the body
	return &clientBody{source: &uploadSource{body: hr.Body, limit: limit}, length: hr.ContentLength}
}

// Read reads the next bytes. A pause of stream.UploadIdle is stream.ErrIdle.
func (b *clientBody) Read(p []byte) (n int, err error) {
	if len(b.unread) > 0 {
		n = copy(p, b.unread)
		b.unread = b.unread[n:]
		return n, nil
	}
	if b.closed {
		return 0, io.EOF
	}
	return b.source.Read(p)
}

// Unread returns bytes to the body, to be read again.
func (b *clientBody) Unread(head []byte) { b.unread = append(head[:len(head):len(head)], b.unread...) }

// Close discards the rest.
func (b *clientBody) Close() error {
	b.closed, b.unread = true, nil
	return nil
}

// take returns a reader of the rest, and closes the body for the program.
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
	return io.MultiReader(bytes.NewReader(rest), b.source)
}

// ReadAll returns the whole body.
func (b *clientBody) ReadAll(maxBytes int64) ([]byte, error) {
	return b.ReadSteps(maxBytes, func(int64) (int64, error) { return maxBytes + 1, nil })
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
	lag, left := stream.MaxLag, stream.UploadTotal
	for {
		upTo, err := step(int64(len(all)))
		if err != nil {
			return nil, err
		}
		for int64(len(all)) < upTo {
			all = grown(all, b.length, upTo)
			asked := time.Now()
			b.source.limitNext(max(time.Millisecond, min(lag, left)))
			n, err := src.Read(all[len(all):cap(all)])
			took := time.Since(asked)
			all = all[:len(all)+n]
			left -= took
			lag = min(stream.MaxLag, lag-took+time.Duration(n)*time.Second/stream.MinRate)
			switch {
			case int64(len(all)) > maxBytes:
				return nil, stream.ErrTooLarge
			case err == io.EOF:
				return all, nil
			case err != nil:
				return nil, err
			}
		}
	}
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

// uploadSource reads a client's body. Reading it after the end
// of the request is an error.
type uploadSource struct {
	body  io.Reader
	limit *http.ResponseController

	next   time.Duration // limit of the next read, stream.UploadIdle if 0
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
		d = stream.UploadIdle
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
