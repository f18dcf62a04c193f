package llm

import (
	"errors"
	"strings"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/sse"
	"weir/pkg/wire/stream"
)

// source takes the events of an upstream's stream apart.
type source interface {
	// read is given valid JSON, or a terminator such as [DONE].
	read(name, data []byte, to sink)
	// clean tells whether the stream may end here without a terminator.
	clean() bool
}

// quicker is a source that knows most events by the ones before.
type quicker interface {
	// quick reads an event that is known but for its text, checked or not,
	// and leaves all others to read.
	quick(data []byte, to sink) bool
}

// streamSink writes a client's stream.
type streamSink interface {
	sink
	buffer() *[]byte
}

// Translator turns an upstream's event stream into the client's. It is a
// stream.Transform.
//
// The client's stream ends as its dialect says only when the upstream's did.
// Whatever else happens (the stream breaks off, ends early, holds an error,
// JSON that cannot be read, or a line or event over the limits) ends it with
// an error in the client's dialect: chat a frame with error and [DONE],
// Messages "event: error", Responses "error" and, once begun,
// "response.failed". What the upstream sends after its end is dropped.
type Translator struct {
	in    sse.Reader
	from  source
	quick quicker // from, or nil
	to    streamSink
	done  bool
	meter
}

// meter sees what passes and remembers what the caller wants to know.
type meter struct {
	next    sink
	usage   Usage
	failure *apierr.Error
	clean   func(*apierr.Error) // Options.Clean
	ended   bool                // by the terminator or by a failure
}

func (m *meter) event(e *event) {
	if m.ended {
		return
	}
	switch e.kind {
	case evUsage:
		m.usage.merge(e.usage)
		e.usage = m.usage
	case evEnd:
		m.ended = true
	case evFail:
		m.ended = true
		m.failure = e.failure
		if m.clean != nil {
			m.clean(e.failure)
		}
	}
	m.next.event(e)
}

// merge takes later figures over earlier ones; streams tell them in parts.
func (u *Usage) merge(v Usage) {
	u.Known = u.Known || v.Known
	u.Input = maxInt(u.Input, v.Input)
	if u.Output = maxInt(u.Output, v.Output); v.last {
		u.Output = v.Output
	}
	u.CacheRead = maxInt(u.CacheRead, v.CacheRead)
	u.CacheWrite = maxInt(u.CacheWrite, v.CacheWrite)
	u.Reasoning = maxInt(u.Reasoning, v.Reasoning)
}

var _ stream.Transform = (*Translator)(nil)

// Stream makes the translator of one stream.
func Stream(from, to Dialect, opt Options) *Translator {
	o := &opt
	t := &Translator{from: dialects[from].source(o), to: dialects[to].sink(o)}
	t.quick, _ = t.from.(quicker)
	t.next, t.clean = t.to, opt.Clean
	if order := dialects[to].order; order != anyOrder {
		t.next = newSequencer(t.to, &t.meter, order == heldOrder)
	}
	t.next = o.Tools.restorer(t.next, &t.meter)
	return t
}

// Push translates the next piece.
func (t *Translator) Push(chunk, out []byte) []byte {
	if t.ended {
		return out
	}
	before, comments, events := len(out), t.in.Comments, 0
	b := t.to.buffer()
	*b = out
	t.in.Push(chunk)
	var ev sse.Event
	for !t.ended && t.in.Next(&ev) {
		t.take(ev.Name, ev.Data)
		events++
	}
	if err := t.in.Err(); err != nil && !t.ended {
		t.fail(apierr.New(502, "bad_upstream_stream", "The provider sent an event over the size limit."))
	}
	out = *b
	*b = nil
	if len(out) == before && (events > 0 || t.in.Comments > comments) {
		// The upstream is alive but has nothing to say: keep the client's
		// connection alive as well.
		out = sse.Comment(out, "keep-alive")
	}
	return out
}

func (t *Translator) take(name, data []byte) {
	if t.quick != nil && t.quick.quick(data, &t.meter) {
		return
	}
	if string(data) != "[DONE]" && check(data) != nil {
		t.fail(apierr.New(502, "bad_upstream_stream", "The provider sent an event that is not JSON."))
		return
	}
	t.from.read(name, data, &t.meter)
}

func (t *Translator) fail(e *apierr.Error) { t.event(&event{kind: evFail, failure: e}) }

// End ends the client's stream.
func (t *Translator) End(cause error, out []byte) []byte {
	if t.done {
		return out
	}
	t.done = true
	if t.ended || errors.Is(cause, stream.ErrClient) {
		if !t.ended {
			t.failure = causeError(cause)
		}
		return out
	}
	b := t.to.buffer()
	*b = out
	if cause == nil {
		var ev sse.Event
		cut := false // within an event
		if t.in.Finish(&ev) {
			if string(ev.Data) == "[DONE]" || check(ev.Data) == nil {
				t.take(ev.Name, ev.Data)
			} else {
				cut = !strings.HasPrefix("[DONE]", string(ev.Data))
			}
		}
		if !t.ended && !cut && t.from.clean() {
			t.event(&event{kind: evEnd})
		}
	}
	if !t.ended {
		t.fail(causeError(cause))
	}
	out = *b
	*b = nil
	return out
}

// causeError is what the client is told when a stream does not end well.
func causeError(cause error) *apierr.Error {
	switch {
	case cause == nil:
		return apierr.New(502, "upstream_cut", "The provider ended the stream before the answer was complete.")
	case errors.Is(cause, stream.ErrIdle), errors.Is(cause, stream.ErrTimeout):
		return apierr.New(504, "timeout", "The provider took too long to go on.")
	case errors.Is(cause, stream.ErrTooLarge):
		return apierr.New(502, "upstream_too_large", "The provider's answer is over the size limit.")
	case errors.Is(cause, stream.ErrClient):
		return apierr.New(499, "client_closed", "The client left.")
	}
	return apierr.New(502, "upstream_reset", "The connection to the provider broke off.")
}

// Usage gives what the upstream has told so far.
func (t *Translator) Usage() Usage { return t.usage }

// Failure gives why the stream did not end well, nil while it goes on or when
// it did.
func (t *Translator) Failure() *apierr.Error { return t.failure }

// Complete tells whether the upstream's stream came to its proper end.
func (t *Translator) Complete() bool { return t.ended && t.failure == nil }

// FirstFailure judges one event of an upstream's stream: the failure that it
// reports, or nil. The first event decides whether another account is tried.
func FirstFailure(from Dialect, name, data []byte) *apierr.Error {
	if string(data) == "[DONE]" {
		return apierr.New(502, "upstream_cut", "The provider ended the stream without an answer.")
	}
	if check(data) != nil {
		return apierr.New(502, "bad_upstream_stream", "The provider sent an event that is not JSON.")
	}
	var c catcher
	dialects[from].source(&Options{}).read(name, data, &c)
	return c.failure
}

// catcher keeps the failure out of a few events.
type catcher struct{ failure *apierr.Error }

func (c *catcher) event(e *event) {
	if e.kind == evFail && c.failure == nil {
		c.failure = e.failure
	}
}
