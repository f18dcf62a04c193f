package llm

import (
	"errors"
	"strings"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/sse"
	"weir/pkg/wire/stream"
)

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
	from  ir.Source
	quick ir.QuickSource // from, or nil
	to    ir.StreamSink
	done  bool
	meter
}

// meter sees what passes and remembers what the caller wants to know.
type meter struct {
	next    ir.Sink
	usage   ir.Usage
	failure *apierr.Error
	clean   func(*apierr.Error) // Options.Clean
	ended   bool                // by the terminator or by a failure
}

func (m *meter) Event(e *ir.Event) {
	if m.ended {
		return
	}
	switch e.Kind {
	case ir.EventUsage:
		m.usage.Merge(e.Usage)
		e.Usage = m.usage
	case ir.EventEnd:
		m.ended = true
	case ir.EventFail:
		m.ended = true
		m.failure = e.Failure
		if m.clean != nil {
			m.clean(e.Failure)
		}
	}
	m.next.Event(e)
}

var _ stream.Transform = (*Translator)(nil)

// Stream makes the translator of one stream.
func Stream(from, to Dialect, opt ir.Options) *Translator {
	o := &opt
	t := &Translator{from: dialects[from].source(o), to: dialects[to].sink(o)}
	t.quick, _ = t.from.(ir.QuickSource)
	t.next, t.clean = t.to, opt.Clean
	if order := dialects[to].order; order != anyOrder {
		t.next = ir.NewSequencer(t.to, &t.meter, order == heldOrder)
	}
	t.next = o.Tools.Restorer(t.next, &t.meter)
	return t
}

// Push translates the next piece.
func (t *Translator) Push(chunk, out []byte) []byte {
	if t.ended {
		return out
	}
	before, comments, events := len(out), t.in.Comments, 0
	b := t.to.Buffer()
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
	if t.quick != nil && t.quick.ReadQuick(data, &t.meter) {
		return
	}
	if string(data) != "[DONE]" && ir.Check(data) != nil {
		t.fail(apierr.New(502, "bad_upstream_stream", "The provider sent an event that is not JSON."))
		return
	}
	t.from.Read(name, data, &t.meter)
}

func (t *Translator) fail(e *apierr.Error) { t.Event(&ir.Event{Kind: ir.EventFail, Failure: e}) }

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
	b := t.to.Buffer()
	*b = out
	if cause == nil {
		var ev sse.Event
		cut := false // within an event
		if t.in.Finish(&ev) {
			if string(ev.Data) == "[DONE]" || ir.Check(ev.Data) == nil {
				t.take(ev.Name, ev.Data)
			} else {
				cut = !strings.HasPrefix("[DONE]", string(ev.Data))
			}
		}
		if !t.ended && !cut && t.from.CleanEnd() {
			t.Event(&ir.Event{Kind: ir.EventEnd})
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
func (t *Translator) Usage() ir.Usage { return t.usage }

// Failure gives why the stream did not end well, nil while it goes on or when
// it did.
func (t *Translator) Failure() *apierr.Error { return t.failure }

// Complete tells whether the upstream's stream came to its proper end.
func (t *Translator) Complete() bool { return t.ended && t.failure == nil }

// FailureFrame is what a client's stream is ended with when it fails outside a
// Translator, as on the way to a same-dialect upstream.
func FailureFrame(dst []byte, to Dialect, e *apierr.Error) []byte {
	return dialects[to].failure(dst, e)
}
