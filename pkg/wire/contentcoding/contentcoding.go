// Package contentcoding decodes request bodies: gzip, br and zstd (RFC 9110,
// 8.4.1).
package contentcoding

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
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

// Known reports whether a content coding can be decoded.
func Known(coding string) bool {
	switch coding {
	case "gzip", "x-gzip", "br", "zstd":
		return true
	}
	return false
}

// NewReader returns body decoded. The coding is one that Known knows. acquire is
// called once before the decoder takes more than 64 KiB of memory, with the number
// of bytes; its error ends the body. release is called after the last byte, or when
// the body is closed, if acquire was called.
//
// A read fails with ErrInvalid or ErrWindow for a bad body, and otherwise as body
// does. What comes out is not limited; the caller reads no more than it wants.
func NewReader(coding string, body io.ReadCloser, acquire func(bytes int64) error, release func()) io.ReadCloser {
	d := &decoder{coding: coding, acquire: acquire, release: release}
	d.src.ReadCloser = body
	d.in = bufio.NewReader(&d.src)
	return d
}

// source is the encoded body, which remembers how it failed: decoders wrap errors.
type source struct {
	io.ReadCloser
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		s.err = err
	}
	return n, err
}

type decoder struct {
	coding   string
	src      source
	in       *bufio.Reader
	out      io.Reader
	acquire  func(bytes int64) error
	release  func()
	acquired bool
	err      error
}

func (d *decoder) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if d.out == nil {
		if d.err = d.open(); d.err != nil {
			d.end()
			return 0, d.err
		}
	}
	n, err := d.out.Read(p)
	if err != nil {
		d.err = d.failure(err)
		d.end()
	}
	return n, d.err
}

// open reads the head of the body, which states the window, and begins to decode.
func (d *decoder) open() error {
	window := int64(small)
	switch d.coding {
	case "br":
		head, err := d.in.Peek(1)
		if err != nil {
			return d.failure(err)
		}
		window = brotliWindow(head[0])
	case "zstd":
		var h zstd.Header
		head, err := d.in.Peek(zstd.HeaderMaxSize)
		if len(head) == 0 {
			return d.failure(err)
		}
		if err := h.Decode(head); err != nil {
			return d.failure(err)
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
	if window > small && d.acquire != nil {
		if err := d.acquire(window); err != nil {
			return err
		}
		d.acquired = true
	}
	switch d.coding {
	case "br":
		d.out = brotli.NewReader(d.in)
	case "zstd":
		// One decoder works within the calls of Read, without goroutines. A later
		// frame gets no larger window than the first.
		z, err := zstd.NewReader(d.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(max(window, zstd.MinWindowSize))))
		if err != nil {
			return d.failure(err)
		}
		d.out = z
	default:
		z, err := gzip.NewReader(d.in)
		if err != nil {
			return d.failure(err)
		}
		d.out = z
	}
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
func (d *decoder) failure(err error) error {
	switch {
	case d.src.err != nil:
		return d.src.err
	case err == io.EOF && d.out != nil:
		return io.EOF
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return ErrWindow
	}
	return ErrInvalid
}

// end releases the decoder's memory.
func (d *decoder) end() {
	if z, ok := d.out.(*zstd.Decoder); ok {
		z.Close()
	}
	d.out = nil
	if d.acquired && d.release != nil {
		d.acquired = false
		d.release()
	}
}

// Close closes the encoded body.
func (d *decoder) Close() error {
	if d.err == nil {
		d.err = io.ErrClosedPipe
	}
	d.end()
	return d.src.Close()
}
