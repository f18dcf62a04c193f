package multipart

import (
	"errors"
	"sync"

	"weir/pkg/wire/stream"
)

// Rewriter is a stream.Transform that replaces the value of one field while the form
// streams. An invalid form is cut off, so that no upstream accepts it as complete, and
// Err returns the reason.
type Rewriter struct {
	stream.Plain
	scan   *Scanner
	field  string
	value  string
	length int64 // of what comes out; -1 when not known

	insert bool // the field goes in front of all parts
	seen   bool
	drop   bool  // the content under way does not go out
	first  bool  // nothing went out yet
	owed   int64 // bytes that length promises and that were dropped
	left   int64 // bytes that may still come, -1 for any
	out    []byte

	mu  sync.Mutex // a host may still send the form when the answer comes: held by Push and End
	err error
}

// Replace makes a Rewriter for a form that is known to have the field once,
// with a value of old. inLength is the length of the form, -1 when not known.
func Replace(boundary, field, old, value string, inLength int64) *Rewriter {
	r := &Rewriter{field: field, value: value, length: inLength, left: -1}
	if inLength >= 0 {
		r.length += int64(len(value) - len(old))
	}
	r.scan = NewScanner(boundary, r)
	return r
}

// Insert makes a Rewriter that puts the field in front of the form and leaves
// out one that comes later. CRLFs after the closing delimiter, which parsers ignore
// (RFC 2046, 5.1.1), replace the removed bytes, so that the length is known before the
// form has been read.
func Insert(boundary, field, value string, inLength int64) *Rewriter {
	r := &Rewriter{field: field, insert: true, first: true, length: inLength, left: -1}
	r.value = "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + field + "\"\r\n\r\n" + value
	if inLength >= 0 {
		r.length += int64(len(r.value)) + 2
	}
	r.scan = NewScanner(boundary, r)
	return r
}

// Limit sets how many parts the form may have, instead of MaxParts.
func (r *Rewriter) Limit(parts int) *Rewriter {
	r.scan.MaxParts = parts
	return r
}

// Most sets how long the form may be, in bytes: a longer one is cut off with
// stream.ErrTooLarge.
func (r *Rewriter) Most(bytes int64) *Rewriter {
	r.left = bytes
	return r
}

// Stopped reports whether the form is too long, so that its end need not be read.
func (r *Rewriter) Stopped() bool { return r.Err() == stream.ErrTooLarge }

// Length is the length of what comes out, -1 when not known.
func (r *Rewriter) Length() int64 { return r.length }

// Err returns why the form was cut off, or nil.
func (r *Rewriter) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Push takes the next chunk.
func (r *Rewriter) Push(chunk, out []byte) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return out
	}
	if r.left >= 0 {
		if r.left -= int64(len(chunk)); r.left < 0 {
			r.err = stream.ErrTooLarge
			return out
		}
	}
	r.out = out
	r.err = r.scan.Push(chunk)
	out, r.out = r.out, nil
	return out
}

// End checks that the form was whole.
func (r *Rewriter) End(cause error, out []byte) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cause != nil {
		// The receiver closed the stream: that is not an error of the form.
		if r.err == nil && !errors.Is(cause, stream.ErrClient) {
			r.err = cause
		}
		return out
	}
	if r.err == nil {
		r.err = r.scan.End()
	}
	if r.err != nil {
		return out
	}
	for ; r.owed >= 2; r.owed -= 2 {
		out = append(out, '\r', '\n')
	}
	if r.owed == 1 {
		out = append(out, ' ')
	}
	return out
}

// Part is part of Sink.
func (r *Rewriter) Part(p *Part, raw []byte) error {
	first := r.first
	if first {
		r.first = false
		r.out = append(r.out, r.value...)
	}
	r.drop = p.Name == r.field
	if r.drop {
		if r.seen {
			return twice(r.field)
		}
		if p.File {
			return bad("the field %s is a file: send it as text", r.field)
		}
		r.seen = true
	}
	if r.insert && r.drop {
		r.owed += int64(len(raw))
		if first {
			r.owed += 2
		}
		return nil
	}
	if first {
		if raw[0] == '\r' {
			r.owed += 2
		} else {
			r.out = append(r.out, '\r', '\n')
		}
	}
	r.out = append(r.out, raw...)
	if r.drop {
		r.out = append(r.out, r.value...)
	}
	return nil
}

// Data is part of Sink.
func (r *Rewriter) Data(b []byte) error {
	switch {
	case !r.drop:
		r.out = append(r.out, b...)
	case r.insert:
		r.owed += int64(len(b))
	}
	return nil
}

// Close is part of Sink.
func (r *Rewriter) Close(raw []byte) error {
	if r.first {
		return bad("it has no parts")
	}
	r.out = append(r.out, raw...)
	return nil
}

// Rest is part of Sink.
func (r *Rewriter) Rest(b []byte) error {
	r.out = append(r.out, b...)
	return nil
}

func twice(field string) error {
	e := bad("the field %s stands in it twice: send it once", field)
	e.Param = field
	return e
}
