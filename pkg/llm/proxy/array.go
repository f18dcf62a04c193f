package proxy

import (
	"bytes"
	"errors"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/sse"
	"weir/pkg/wire/stream"
)

// arrayForm writes the events of a Gemini client's stream as one JSON array, as the
// client wants it without ?alt=sse:
//
//	[{…}
//	,
//	{…}
//	]
//
// A comment becomes a blank line, which is allowed between any two elements.
type arrayForm struct {
	in     sse.Reader
	begun  bool // the array is open
	failed bool // nothing follows
}

// push appends the elements of the next events.
func (f *arrayForm) push(events, out []byte) []byte {
	before, comments := len(out), f.in.Comments
	var ev sse.Event
	f.in.Push(events)
	for !f.failed && f.in.Next(&ev) {
		out = f.element(ev.Data, out)
	}
	if f.in.Err() != nil && !f.failed {
		out = f.fail(apierr.New(502, "bad_upstream_stream",
			"The provider sent an event over the size limit. Ask for a shorter answer.").AppendGemini(nil), out)
	}
	if len(out) == before && f.in.Comments > comments {
		out = append(out, '\n')
	}
	return out
}

// element appends an element, unless the event was cut and its data is not JSON.
func (f *arrayForm) element(data, out []byte) []byte {
	if ir.Check(data) != nil {
		return out
	}
	if f.begun {
		out = append(out, ",\n"...)
	} else {
		f.begun = true
		out = append(out, '[')
	}
	return append(append(out, data...), '\n')
}

// fail appends the error that ends a stream, unless it came as an event too.
func (f *arrayForm) fail(failure, out []byte) []byte {
	if len(failure) == 0 || f.failed {
		return out
	}
	if !bytes.HasSuffix(bytes.TrimRight(out, "\n"), failure) {
		out = f.element(failure, out)
	}
	f.failed = true
	return out
}

// end closes the array.
func (f *arrayForm) end(out []byte) []byte {
	if !f.begun {
		out = append(out, '[')
	}
	return append(out, "]\n"...)
}

// failureIn returns the object that ends the events of a failed stream, a line without
// the name of a field, or nil.
func failureIn(events []byte) []byte {
	events = bytes.TrimRight(events, "\n")
	if last := events[bytes.LastIndexByte(events, '\n')+1:]; bytes.HasPrefix(last, []byte(`{"error":`)) {
		return last
	}
	return nil
}

// arrayOf returns the array of a whole stream.
func arrayOf(events []byte) []byte {
	var f arrayForm
	return f.end(f.push(events, make([]byte, 0, len(events))))
}

// arrayed writes the events of another Transform in the form of an array.
type arrayed struct {
	stream.Plain
	events stream.Transform
	form   arrayForm
	buf    []byte
	ended  bool
}

// Ready reports whether the events' Transform has memory for the next chunk.
func (t *arrayed) Ready(chunk []byte) bool {
	return t.events.Ready(chunk)
}

// Stopped reports that the stream has failed.
func (t *arrayed) Stopped() bool {
	return t.form.failed || t.events.Stopped()
}

// Beat appends a blank line, which may be between any two elements.
func (t *arrayed) Beat(out []byte) []byte {
	if t.ended || t.form.failed {
		return out
	}
	return append(out, '\n')
}

// Push returns the elements of the next piece.
func (t *arrayed) Push(chunk, out []byte) []byte {
	t.buf = t.events.Push(chunk, t.buf[:0])
	out = t.form.push(t.buf, out)
	if t.Stopped() {
		out = t.form.fail(failureIn(t.buf), out)
	}
	return out
}

// End ends the array.
func (t *arrayed) End(cause error, out []byte) []byte {
	t.ended = true
	t.buf = t.events.End(cause, t.buf[:0])
	if errors.Is(cause, stream.ErrClient) {
		return out
	}
	out = t.form.push(t.buf, out)
	return t.form.end(t.form.fail(failureIn(t.buf), out))
}
