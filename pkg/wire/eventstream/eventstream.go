// Package eventstream reads and writes application/vnd.amazon.eventstream, the
// binary framing of AWS's streaming answers.
//
//	uint32 length of the message | uint32 length of the headers | uint32 CRC of these 8 bytes
//	headers: uint8 length, name, uint8 type, value | … | payload | uint32 CRC of all before
//
// Numbers are big-endian, both checksums are CRC-32 (IEEE). Source: AWS's
// "Amazon Event Stream" specification in smithy.io; checked against the test
// vectors of AWS's SDKs.
package eventstream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Type is the type of a header's value.
type Type uint8

// The types. The two boolean types are their own value.
const (
	True      Type = iota
	False          // no bytes, as True
	Byte           // 1 byte
	Int16          // 2
	Int32          // 4
	Int64          // 8
	Bytes          // a length of 2 bytes before it
	String         // UTF-8, a length of 2 bytes before it
	Timestamp      // 8, Unix milliseconds
	UUID           // 16
	types
)

// sizes of the values by type; -1 has its length before it.
var sizes = [types]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

// Header is one header of a message. Value has the bytes of the wire, without
// the length of Bytes and String.
type Header struct {
	Name  []byte
	Type  Type
	Value []byte
}

// Message is one message. It is valid until the next call of its Reader.
type Message struct {
	Headers []Header
	Payload []byte
}

// Get returns the value of the first string header of the name, or nil. Of
// Bedrock's messages :message-type is "event", "exception" or "error",
// :event-type and :exception-type name what the payload is, and an error has
// :error-code and :error-message.
func (m *Message) Get(name string) []byte {
	for i := range m.Headers {
		if m.Headers[i].Type == String && string(m.Headers[i].Name) == name {
			return m.Headers[i].Value
		}
	}
	return nil
}

const (
	preludeLen = 12
	frameLen   = preludeLen + 4 // and the checksum at the end
	// maxHeaders is the format's own limit.
	maxHeaders = 128 << 10
	// maxMessage is the default limit, that of an event elsewhere
	// (docs/reference/reliability.md, T41). The format allows 24 MiB.
	maxMessage = 8 << 20
)

// The errors of a broken stream. No message follows them.
var (
	ErrCorrupt  = errors.New("eventstream: the stream is corrupt")
	ErrTooLarge = errors.New("eventstream: message over the limit")
)

// Reader reads the messages of a stream that arrives in pieces cut anywhere:
//
//	r.Push(piece)
//	for r.Next(&m) {
//	}
//
// The zero value is ready.
type Reader struct {
	// MaxMessage limits a message with its framing, in bytes; 0 means 8 MiB.
	MaxMessage int

	in   []byte // not read yet: of the last piece, or of rest
	rest []byte // what earlier pieces left
	err  error
}

// Push adds a piece. It must not change until Next returns false.
func (r *Reader) Push(piece []byte) {
	if r.err != nil {
		return
	}
	if len(r.in) == 0 {
		r.in = piece
		return
	}
	// The rest of earlier pieces is at the beginning of rest.
	r.retain()
	r.rest = append(r.rest, piece...)
	r.in = r.rest
}

// Next reads the next whole message into m, whose header list it uses again.
// False means that more is needed, or that the stream is broken: see Err.
func (r *Reader) Next(m *Message) bool {
	if r.err != nil {
		return false
	}
	n, err := r.length()
	if err == nil && n > 0 && n <= len(r.in) {
		if err = parse(m, r.in[:n]); err == nil {
			r.in = r.in[n:]
			return true
		}
	}
	if err != nil {
		r.err, r.in, r.rest = err, nil, nil
		return false
	}
	r.retain()
	return false
}

// Err returns why the stream is broken, or nil.
func (r *Reader) Err() error { return r.err }

// retain copies the unread bytes to the reader's own memory.
func (r *Reader) retain() {
	if len(r.in) == 0 {
		r.in, r.rest = nil, r.rest[:0]
		if cap(r.rest) > 64<<10 {
			r.rest = nil
		}
		return
	}
	if len(r.rest) == len(r.in) && &r.rest[0] == &r.in[0] {
		return
	}
	r.rest = append(r.rest[:0], r.in...) // a move within itself is fine
	r.in = r.rest
}

// length returns the length of the message that begins the input, 0 when it is
// not known yet.
func (r *Reader) length() (int, error) {
	if len(r.in) < preludeLen {
		return 0, nil
	}
	if crc32.ChecksumIEEE(r.in[:8]) != binary.BigEndian.Uint32(r.in[8:]) {
		return 0, fmt.Errorf("checksum of a prelude: %w", ErrCorrupt)
	}
	total, headers := binary.BigEndian.Uint32(r.in), binary.BigEndian.Uint32(r.in[4:])
	limit := r.MaxMessage
	if limit <= 0 {
		limit = maxMessage
	}
	switch {
	case total < frameLen || headers > total-frameLen:
		return 0, fmt.Errorf("lengths of a message: %w", ErrCorrupt)
	case uint64(total) > uint64(limit) || headers > maxHeaders:
		return 0, ErrTooLarge
	}
	return int(total), nil
}

// parse reads one message, whose prelude has been checked.
func parse(m *Message, b []byte) error {
	end := len(b) - 4
	if crc32.ChecksumIEEE(b[:end]) != binary.BigEndian.Uint32(b[end:]) {
		return fmt.Errorf("checksum of a message: %w", ErrCorrupt)
	}
	body := preludeLen + int(binary.BigEndian.Uint32(b[4:]))
	m.Headers = m.Headers[:0]
	for rest := b[preludeLen:body]; len(rest) > 0; {
		var h Header
		var ok bool
		if h, rest, ok = header(rest); !ok {
			return fmt.Errorf("headers of a message: %w", ErrCorrupt)
		}
		m.Headers = append(m.Headers, h)
	}
	m.Payload = b[body:end:end]
	return nil
}

func header(b []byte) (h Header, rest []byte, ok bool) {
	n := int(b[0])
	if n == 0 || len(b) < 1+n+1 {
		return h, nil, false
	}
	h.Name, h.Type = b[1:1+n:1+n], Type(b[1+n])
	b = b[2+n:]
	if h.Type >= types {
		return h, nil, false
	}
	if n = sizes[h.Type]; n < 0 {
		if len(b) < 2 {
			return h, nil, false
		}
		n = int(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) < n {
		return h, nil, false
	}
	h.Value = b[:n:n]
	return h, b[n:], true
}
