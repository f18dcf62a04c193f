// Package sse reads and writes event streams (text/event-stream, WHATWG HTML
// 9.2.6) in pieces, as they arrive.
package sse

import (
	"bytes"
	"errors"
	"slices"
)

// Limits of a Reader.
const (
	MaxLine  = 4 << 20 // bytes of one line, without its end
	MaxEvent = 8 << 20 // bytes of the data of one event
)

// The errors of a Reader. Neither is a regular end of the stream.
var (
	ErrLine  = errors.New("sse: line over 4 MiB")
	ErrEvent = errors.New("sse: event over 8 MiB")
)

// Event is one event. Both slices are valid until the next call of the Reader.
type Event struct {
	Name []byte // of the event field; empty when there was none
	Data []byte // the data lines, joined by line feeds
}

// Reader reads an event stream. Pieces may be cut anywhere, also within
// a line end, a character or the byte order mark. Lines end with LF, CR or
// both. Comments and the fields id and retry are passed over, as are events
// without data.
//
//	r.Push(chunk)
//	for r.Next(&ev) { … }
//
// An event that lies within one piece and has one data line is not copied.
type Reader struct {
	Comments int // comment lines passed over so far

	chunk []byte // bytes from Push that Next has not read
	held  []byte // the begun line
	data  []byte // joined data lines, when copied
	name  []byte
	one   []byte // the only data line so far, within chunk
	lines int    // data lines of the event so far
	bom   uint8  // bytes of the byte order mark seen; 3 and more: the start is past
	lf    bool   // a CR ended the last line: an LF that follows belongs to it
	fresh bool   // the last event was returned: start again
	err   error
}

var mark = [3]byte{0xEF, 0xBB, 0xBF}

// Push returns the next piece to a Reader whose last Next was false. It must not
// change until Next is false again.
func (r *Reader) Push(chunk []byte) {
	r.chunk = chunk
	for r.bom < 3 && len(r.chunk) > 0 {
		if r.chunk[0] != mark[r.bom] {
			r.held = append(r.held, mark[:r.bom]...)
			r.bom = 4
			return
		}
		r.bom++
		r.chunk = r.chunk[1:]
	}
}

// Err returns why the reader has stopped, or nil. It stays stopped.
func (r *Reader) Err() error { return r.err }

// Buffered returns how many bytes of the begun line and event are stored.
func (r *Reader) Buffered() int { return len(r.held) + len(r.data) }

// Next returns the next event that is complete, and false when another piece is
// needed or the stream is given up.
func (r *Reader) Next(ev *Event) bool {
	if r.fresh {
		r.fresh = false
		r.name, r.data, r.one, r.lines = r.name[:0], emptied(r.data), nil, 0
	}
	for r.err == nil {
		line, ok := r.line()
		if !ok {
			break
		}
		if len(line) > 0 {
			r.field(line)
			r.held = emptied(r.held)
			continue
		}
		if r.lines == 0 {
			r.name = r.name[:0]
			continue
		}
		r.emit(ev)
		return true
	}
	r.retain()
	return false
}

// Finish is called instead of Push when the stream has ended: the begun line
// and event count as complete. Their content may be cut.
func (r *Reader) Finish(ev *Event) bool {
	if r.fresh {
		r.fresh = false
		r.name, r.data, r.one, r.lines = r.name[:0], r.data[:0], nil, 0
	}
	if r.err == nil && len(r.held) > 0 {
		r.field(r.held)
		r.retain()
		r.held = r.held[:0]
	}
	if r.err != nil || r.lines == 0 {
		return false
	}
	r.emit(ev)
	return true
}

// emptied returns a buffer to be filled again: none instead of a large one, which a stream
// that stays open would keep.
func emptied(b []byte) []byte {
	if cap(b) > maxKept {
		return nil
	}
	return b[:0]
}

const maxKept = 64 << 10

func (r *Reader) emit(ev *Event) {
	ev.Name = r.name
	if r.one != nil {
		ev.Data = r.one
	} else {
		ev.Data = r.data
	}
	r.fresh = true
}

// retain copies the parts that point into the piece, which becomes invalid.
func (r *Reader) retain() {
	if r.one != nil {
		r.data = append(r.data[:0], r.one...)
		r.one = nil
	}
	if r.err != nil {
		r.chunk, r.held, r.data = nil, nil, nil
	}
}

// line returns the next line. A line that began in an earlier piece lies in held.
func (r *Reader) line() ([]byte, bool) {
	c := r.chunk
	if r.lf && len(c) > 0 {
		if c[0] == '\n' {
			c = c[1:]
		}
		r.lf = false
	}
	end := LineEnd(c)
	if end < 0 {
		if len(r.held)+len(c) > MaxLine {
			r.err = ErrLine
			return nil, false
		}
		r.held = append(r.held, c...)
		r.chunk = nil
		return nil, false
	}
	line := c[:end]
	r.chunk, r.lf = c[end+1:], c[end] == '\r'
	if len(r.held)+len(line) > MaxLine {
		r.err = ErrLine
		return nil, false
	}
	if len(r.held) > 0 {
		r.held = append(r.held, line...)
		return r.held, true
	}
	return line, true
}

// field reads one line that is not empty.
func (r *Reader) field(line []byte) {
	if line[0] == ':' {
		r.Comments++
		return
	}
	name, value := line, []byte(nil)
	if i := bytes.IndexByte(line, ':'); i >= 0 {
		name, value = line[:i], line[i+1:]
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
	}
	switch string(name) {
	case "data":
		r.lines++
		// Only a line that lies within the piece may be pointed at.
		if r.lines == 1 && len(r.held) == 0 {
			r.one = value
			if r.one == nil {
				r.one = []byte{}
			}
			return
		}
		if r.one != nil {
			r.data = append(r.data[:0], r.one...)
			r.one = nil
		}
		if r.lines > 1 {
			r.data = append(r.data, '\n')
		}
		if len(r.data)+len(value) > MaxEvent {
			r.err = ErrEvent
			return
		}
		if cap(r.data)-len(r.data) < len(value) { // twice as much: append's quarter leaves four times the event as garbage
			r.data = slices.Grow(r.data, max(len(value), min(len(r.data), MaxEvent-len(r.data))))
		}
		r.data = append(r.data, value...)
	case "event":
		r.name = append(r.name[:0], value...)
	}
}
