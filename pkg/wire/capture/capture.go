// Package capture collects the beginning of the bodies of a call, for machines whose
// owner has asked to store them (docs/guides/captured-bodies.md).
//
// A body is collected while it passes: nothing is delayed, and what finds no memory is
// not collected. Document masks credentials and encodes the bodies; it is sealed before
// it leaves the gateway.
package capture

import (
	"io"
	"strings"
	"sync"

	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
)

// MaxBody is the number of bytes of a body that are stored. Both bodies, sealed and in
// base64, fit into a row of 1 MiB.
const MaxBody = 256 << 10

// overlap is what is collected beyond MaxBody, so that no credential is cut in two
// before it is masked.
const overlap = 16 << 10

// maxCollected is the limit of what all calls of a Collector have collected, in bytes.
const maxCollected = 12 << 20

// A byte that is collected takes up to two while its buffer grows. While a document is
// built of it, sealed and sent, the program has it six times, and as much again for the
// strings of events, of which there are few in real ones.
const (
	perByte = 2
	sealing = 12
)

// Collector begins the captures of an instance of the program and bounds their memory.
type Collector struct {
	Memory *memory.Budget // may be nil

	mu        sync.Mutex
	collected int64
}

// take adds n bytes, if there is room for them.
func (c *Collector) take(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.collected+n > maxCollected {
		return false
	}
	c.collected += n
	return true
}

// release removes n bytes.
func (c *Collector) release(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collected -= n
}

// Begin begins the capture of a call of who, a machine.
func (c *Collector) Begin(who string) *Bodies {
	b := &Bodies{of: c}
	c.Memory.Start(&b.lease, who, 0)
	return b
}

// Bodies are those of one call. A nil Bodies collects nothing.
type Bodies struct {
	of              *Collector
	lease           memory.Lease
	size            int64 // of the buffers
	refused         bool  // there was no memory
	request, answer body
}

// body is the beginning of a body.
type body struct {
	mediaType string
	size      int64 // bytes that have passed
	data      []byte
	omitted   bool // it is not text, or passes unseen
}

// Request collects a request's body.
func (b *Bodies) Request(contentType string, all []byte) {
	if b != nil {
		b.request = body{mediaType: mediaType(contentType)}
		b.add(&b.request, all)
	}
}

// Answer collects an answer's body while it is sent, and returns the body to send.
func (b *Bodies) Answer(contentType string, sent io.ReadCloser) io.ReadCloser {
	if b == nil || sent == nil {
		return sent
	}
	b.answer = body{mediaType: mediaType(contentType), omitted: !isText(contentType)}
	switch s := sent.(type) {
	case *stream.Bytes:
		b.add(&b.answer, s.All())
	case *stream.Parts:
		for _, part := range s.All() {
			b.add(&b.answer, part)
		}
	case *stream.Through:
		if s.Cut { // the host alone sees it
			b.answer.omitted = true
			break
		}
		s.T = &transform{s.T, b}
	default:
		b.answer.omitted = true
	}
	return sent
}

// add collects the next piece of a body.
func (b *Bodies) add(to *body, piece []byte) {
	to.size += int64(len(piece))
	if to.omitted || b.refused {
		return
	}
	piece = piece[:min(len(piece), MaxBody+overlap-len(to.data))]
	need := len(to.data) + len(piece)
	if need > cap(to.data) {
		size := min(max(need, 2*cap(to.data), 1<<10), MaxBody+overlap)
		if !b.grow(int64(size - cap(to.data))) {
			return
		}
		to.data = append(make([]byte, 0, size), to.data...)
	}
	to.data = append(to.data, piece...)
}

// grow acquires memory for n more bytes. Without it nothing of the call is stored.
func (b *Bodies) grow(n int64) bool {
	if b.of.take(n) {
		if b.lease.TryAcquire(memory.Work, memory.Amount{Program: perByte * (b.size + n)}) {
			b.size += n
			return true
		}
		b.of.release(n)
	}
	b.Release()
	b.refused = true
	return false
}

// Ready reports whether there is something to store, and the memory to seal it.
func (b *Bodies) Ready() bool {
	if b == nil || b.refused {
		return false
	}
	if b.lease.TryAcquire(memory.Work, memory.Amount{Program: sealing * b.size, Host: 2 * b.size}) {
		return true
	}
	b.Release()
	b.refused = true
	return false
}

// Release drops what was collected. It may be called more than once.
func (b *Bodies) Release() {
	if b == nil {
		return
	}
	b.of.release(b.size)
	b.size, b.request.data, b.answer.data = 0, nil, nil
	b.lease.Release()
}

func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// isText reports whether a body of a content type can be shown.
func isText(contentType string) bool {
	media := mediaType(contentType)
	return media == "" || strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "json") ||
		strings.HasSuffix(media, "xml") || media == "application/x-ndjson"
}

// transform collects what a stream.Transform returns, but for heartbeats.
type transform struct {
	stream.Transform
	b *Bodies
}

func (t *transform) Push(chunk, out []byte) []byte {
	from := len(out)
	out = t.Transform.Push(chunk, out)
	t.b.add(&t.b.answer, out[from:])
	return out
}

func (t *transform) End(cause error, out []byte) []byte {
	from := len(out)
	out = t.Transform.End(cause, out)
	if cause != stream.ErrClient {
		t.b.add(&t.b.answer, out[from:])
	}
	return out
}
