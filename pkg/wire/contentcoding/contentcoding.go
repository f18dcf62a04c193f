// Package contentcoding decodes request bodies: gzip, br and zstd (RFC 9110,
// 8.4.1). It compresses what the gateway sends by gzip.
package contentcoding

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"

	"weir/pkg/wire/stream"
)

// ErrInvalid reports a body that is not of its coding.
var ErrInvalid = errors.New("contentcoding: invalid body")

// ErrWindow reports a body whose decoder would need more than maxWindow bytes.
var ErrWindow = errors.New("contentcoding: window too large")

// maxWindow is the most bytes of earlier output that a decoder may refer to, which
// it has in memory: what RFC 8878, 3.1.1.1.2 asks every decoder of zstd to support
// is 8 MiB, and brotli has at most 16 MiB.
const maxWindow = 16 << 20

// small is the window of a decoder that is not counted: gzip has 32 KiB.
const small = 64 << 10

// Decoder decodes bodies. The zero value does not know br.
type Decoder struct {
	// Brotli returns a reader of what a stream of brotli stands for. It comes from
	// the platform, since the library for it imports net/http.
	Brotli func(io.Reader) io.Reader
}

// Knows reports whether a content coding can be decoded.
func (d Decoder) Knows(coding string) bool {
	switch coding {
	case "gzip", "x-gzip", "zstd":
		return true
	}
	return coding == "br" && d.Brotli != nil
}

// Call is what a body needs of the call that it belongs to. Each may be nil.
type Call struct {
	// MaxEncoded is the most bytes of the encoded body; 0 is no limit. A body can be
	// endless without a byte of output: members and blocks may be empty.
	MaxEncoded int64
	// Whole reads the encoded body to its end, and returns it. It is called before Acquire:
	// a client that sends a head of a few bytes, and nothing more, shall not have the
	// memory of a decoder.
	Whole func(body io.ReadCloser) ([]byte, error)
	// Acquire is called once before the decoder takes more than 64 KiB of memory, with
	// the number of bytes; its error ends the body. Release is called after the last
	// byte, or when the body is closed, if Acquire or Whole was called.
	Acquire func(bytes int64) error
	Release func()
	// Pause is called after each MiB that was decoded, and lets other calls run.
	Pause func()
}

// pauseAfter is the number of decoded bytes after which other calls may run.
const pauseAfter = 1 << 20

// NewReader returns body decoded, of a coding that d knows.
//
// A read fails with ErrInvalid or ErrWindow for a bad body, with stream.ErrTooLarge for
// one that is longer than MaxEncoded, and otherwise as body does. The decoded length is not
// limited: the caller reads as much as it allows.
func (d Decoder) NewReader(coding string, body io.ReadCloser, c Call) io.ReadCloser {
	r := &reader{coding: coding, brotli: d.Brotli, call: c}
	r.src.ReadCloser, r.src.max = body, c.MaxEncoded
	r.in = bufio.NewReader(&r.src)
	return r
}

// source is the encoded body, which remembers how it failed: decoders wrap errors.
type source struct {
	io.ReadCloser
	max, n int64 // bytes; n were read
	err    error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		s.err = err
	}
	if s.n += int64(n); s.max > 0 && s.n > s.max {
		s.err = stream.ErrTooLarge
		return 0, s.err
	}
	return n, err
}

type reader struct {
	coding   string
	brotli   func(io.Reader) io.Reader
	src      source
	in       *bufio.Reader
	out      io.Reader
	call     Call
	whole    []byte // the encoded body, if it was read to its end
	acquired bool
	again    bool // it is decoded once more after its end
	decoded  int  // since the last pause
	err      error
}

// inOnePass is the length up to which ReadSteps decodes a body once, in bytes.
const inOnePass = 1 << 20

// ReadSteps returns the whole body, of at most maxBytes. A long one is decoded twice, the
// first time for its length: a buffer that grows with it would take several times as much.
// step returns the number of bytes up to which to read next.
func (r *reader) ReadSteps(maxBytes int64, step func(have int64) (int64, error)) ([]byte, error) {
	if r.call.Whole != nil && r.whole == nil {
		if err := r.readWhole(); err != nil {
			return nil, err
		}
	}
	r.again = r.whole != nil
	all, n, err := r.measure(maxBytes, step)
	if r.again = false; err != nil {
		return nil, err
	}
	defer r.end()
	if int64(len(all)) == n {
		return all, nil
	}
	all = make([]byte, n)
	r.err, r.src.max, r.in = nil, 0, bufio.NewReader(bytes.NewReader(r.whole))
	_, err = io.ReadFull(r, all)
	return all, err
}

// measure decodes the body to its end and returns its length, and the body itself unless it
// is long and can be decoded again. Such a body takes memory when its length is known:
// those that wait with a part of it would wait for each other.
func (r *reader) measure(maxBytes int64, step func(have int64) (int64, error)) (all []byte, n int64, err error) {
	part := make([]byte, 32<<10)
	for upTo := int64(0); ; {
		m, end := r.Read(part)
		n += int64(m)
		if n > maxBytes {
			return nil, 0, stream.ErrTooLarge
		}
		measured := r.again && n > inOnePass
		for upTo < n && (!measured || end == io.EOF) {
			if upTo, err = step(n); err != nil {
				return nil, 0, err
			}
		}
		if measured {
			all = nil
		} else {
			all = append(all, part[:m]...)
		}
		if end == io.EOF {
			return all, n, nil
		}
		if end != nil {
			return nil, 0, end
		}
	}
}

func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.out == nil {
		if r.err = r.open(); r.err != nil {
			r.end()
			return 0, r.err
		}
	}
	n, err := r.out.Read(p)
	if err != nil {
		r.err = r.failure(err)
		r.end()
	}
	if r.decoded += n; r.decoded >= pauseAfter && r.call.Pause != nil {
		r.decoded = 0
		r.call.Pause()
	}
	return n, r.err
}

// open reads the head of the body, which states the window, and begins to decode.
func (r *reader) open() error {
	window := int64(small)
	switch r.coding {
	case "br":
		head, err := r.in.Peek(1)
		if err != nil {
			return r.failure(err)
		}
		window = brotliWindow(head[0])
	case "zstd":
		var h zstd.Header
		head, err := r.in.Peek(zstd.HeaderMaxSize)
		if len(head) == 0 {
			return r.failure(err)
		}
		if err := h.Decode(head); err != nil {
			return r.failure(err)
		}
		switch {
		case h.Skippable:
			return ErrInvalid
		case h.SingleSegment:
			window = int64(min(h.FrameContentSize, maxWindow+1))
		default:
			window = int64(min(h.WindowSize, maxWindow+1))
		}
	}
	if window > maxWindow {
		return ErrWindow
	}
	if window > small && r.call.Whole != nil && r.whole == nil {
		if err := r.readWhole(); err != nil {
			return err
		}
	}
	if window > small && r.call.Acquire != nil && !r.acquired {
		if err := r.call.Acquire(window); err != nil {
			return err
		}
		r.acquired = true
	}
	switch r.coding {
	case "br":
		r.out = r.brotli(r.in)
	case "zstd":
		// One decoder works within the calls of Read, without goroutines. A later
		// frame gets no larger window than the first.
		z, err := zstd.NewReader(r.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(uint64(max(window, zstd.MinWindowSize))))
		if err != nil {
			return r.failure(err)
		}
		r.out = z
	default:
		z, err := gzip.NewReader(r.in)
		if err != nil {
			return r.failure(err)
		}
		r.out = z
	}
	return nil
}

// readWhole replaces the encoded body by all that is left of it.
func (r *reader) readWhole() error {
	head, _ := r.in.Peek(r.in.Buffered())
	rest, err := r.call.Whole(r.src.ReadCloser)
	if err != nil {
		return err
	}
	if r.src.max > 0 && r.src.n+int64(len(rest)) > r.src.max {
		return stream.ErrTooLarge
	}
	r.whole = append(bytes.Clone(head), rest...)
	r.in = bufio.NewReader(bytes.NewReader(r.whole))
	return nil
}

// brotliWindow returns the window that the first byte of a stream states (RFC 7932,
// 9.1). One that the format does not have is refused by the decoder.
func brotliWindow(first byte) int64 {
	bits := 17
	switch {
	case first&1 == 0:
		bits = 16
	case first>>1&7 != 0:
		bits = 17 + int(first>>1&7)
	case first>>4&7 > 1:
		bits = 8 + int(first>>4&7)
	}
	return 1 << bits
}

// failure returns the error of a body that the decoder has failed to read.
func (r *reader) failure(err error) error {
	switch {
	case r.src.err != nil:
		return r.src.err
	case err == io.EOF && r.out != nil:
		return io.EOF
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return ErrWindow
	}
	return ErrInvalid
}

// end releases the decoder's memory.
func (r *reader) end() {
	if z, ok := r.out.(*zstd.Decoder); ok {
		z.Close()
	}
	r.out = nil
	if r.again {
		return
	}
	if (r.acquired || r.whole != nil) && r.call.Release != nil {
		r.call.Release()
	}
	r.acquired, r.whole = false, nil
}

// Close closes the encoded body.
func (r *reader) Close() error {
	r.again = false
	if r.err == nil {
		r.err = io.ErrClosedPipe
	}
	r.end()
	return r.src.Close()
}
