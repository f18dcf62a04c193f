package llm

import (
	"bytes"
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
// The client's stream ends with its terminator only if the upstream's did.
// Otherwise (the stream breaks off, ends early, holds an error, invalid JSON,
// or a line or event over the limits) it ends with an error in the client's
// dialect: chat with a frame with error and [DONE], Messages with "event:
// error", Responses with "error" and, once begun, "response.failed". Events
// after the upstream's terminator are dropped.
type Translator struct {
	in sse.Reader
	stream.Plain
	from  ir.Source
	quick ir.QuickSource // from, or nil
	to    ir.StreamSink
	done  bool
	// heartbeat and noComments are those of the client's dialect.
	heartbeat  string
	noComments bool
	outcome
}

// outcome stores the usage and the failure of the events that pass.
type outcome struct {
	next    ir.Sink
	usage   ir.Usage
	text    int // length of the text so far, as in Observer.Text
	finish  ir.Finish
	failure *apierr.Error
	clean   func(*apierr.Error)  // Options.Clean
	settle  func(*ir.Usage, int) // Options.Settle
	ended   bool                 // by the terminator or by a failure
}

func (m *outcome) Event(e *ir.Event) {
	if m.ended {
		return
	}
	switch e.Kind {
	case ir.EventText, ir.EventThinking, ir.EventRefusal, ir.EventArguments:
		m.text += len(e.Text)
	case ir.EventTool:
		m.text += len(e.Name)
	case ir.EventUsage:
		m.usage.Merge(e.Usage)
		e.Usage = m.shown()
	case ir.EventFinish:
		m.finish = e.Finish
	case ir.EventEnd:
		m.ended = true
		if m.settle != nil {
			m.next.Event(&ir.Event{Kind: ir.EventUsage, Usage: m.shown()})
		}
	case ir.EventFail:
		m.ended = true
		m.failure = e.Failure
		ir.MarkOverflow(e.Failure)
		if m.clean != nil {
			m.clean(e.Failure)
		}
	}
	m.next.Event(e)
}

// shown returns the usage so far as the client gets it.
func (m *outcome) shown() ir.Usage {
	u := m.usage
	if m.settle != nil {
		m.settle(&u, m.text)
	}
	return u
}

// Stream returns the translator of one stream.
func Stream(from, to Dialect, opt ir.Options) *Translator {
	o := &opt
	t := &Translator{from: dialects[from].source(o), to: dialects[to].sink(o), heartbeat: dialects[to].heartbeat,
		noComments: dialects[to].noComments}
	t.quick, _ = t.from.(ir.QuickSource)
	t.next, t.clean, t.settle = t.to, opt.Clean, opt.Settle
	if order := dialects[to].order; order != anyOrder {
		t.next = ir.NewSequencer(t.to, &t.outcome, order == heldOrder)
	}
	t.next = o.Tools.Restorer(t.next, &t.outcome)
	return t
}

// Push translates the next part of the stream.
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
		t.fail(apierr.New(502, "bad_upstream_stream", "The provider sent an event over the size limit. Ask for a shorter answer."))
	}
	out = *b
	*b = nil
	if len(out) == before && !t.noComments && (events > 0 || t.in.Comments > comments) {
		// The upstream is alive but sent no content: keep the client's
		// connection alive as well.
		out = sse.Comment(out, "keep-alive")
	}
	return out
}

// Beat appends a heartbeat, unless the stream is over. Push returns whole events only.
func (t *Translator) Beat(out []byte) []byte {
	if t.ended || t.done {
		return out
	}
	return append(out, t.heartbeat...)
}

// Buffered returns how many bytes of a begun event are stored.
func (t *Translator) Buffered() int { return t.in.Buffered() }

func (t *Translator) take(name, data []byte) {
	if t.quick != nil && t.quick.ReadQuick(data, &t.outcome) {
		return
	}
	data = bytes.TrimSpace(data) // some servers write two spaces before [DONE]
	if string(data) != "[DONE]" && ir.Check(data) != nil {
		t.fail(apierr.New(502, "bad_upstream_stream", "The provider sent an event that is not JSON. Try again."))
		return
	}
	t.from.Read(name, data, &t.outcome)
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
			t.failure = errorOf(cause)
		}
		return out
	}
	b := t.to.Buffer()
	*b = out
	if cause == nil {
		var ev sse.Event
		cut := false // within an event
		if t.in.Finish(&ev) {
			if string(bytes.TrimSpace(ev.Data)) == "[DONE]" || ir.Check(ev.Data) == nil {
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
		t.fail(errorOf(cause))
	}
	out = *b
	*b = nil
	return out
}

// errorOf returns the client's error for a stream that did not end with its
// terminator.
func errorOf(cause error) *apierr.Error {
	switch {
	case cause == nil:
		return apierr.New(502, "upstream_cut", "The provider ended the stream before the answer was complete. Try again.")
	case errors.Is(cause, stream.ErrIdle):
		return apierr.New(504, "timeout", "The provider was silent for too long. Try again, or raise the setting idleSeconds.")
	case errors.Is(cause, stream.ErrTimeout):
		return apierr.New(504, "timeout", "The provider took too long to end its answer. Ask for a shorter one.")
	case errors.Is(cause, stream.ErrMemory):
		return apierr.New(503, "overloaded", "The gateway has no memory for the answer at the moment. Try again in a moment.")
	case errors.Is(cause, stream.ErrStopping):
		return apierr.Stopping()
	case errors.Is(cause, stream.ErrTooLarge):
		return apierr.New(502, "upstream_too_large", "The provider's answer is over the size limit. Ask for a shorter one.")
	case errors.Is(cause, stream.ErrClient):
		return apierr.New(499, "client_closed", "The client closed the connection.")
	}
	return apierr.New(502, "upstream_reset", "The connection to the provider was lost. Try again.")
}

// Usage returns the token counts that the upstream has reported so far.
func (t *Translator) Usage() ir.Usage { return t.usage }

// Finish returns the finish reason that the stream has had, or "".
func (t *Translator) Finish() string { return t.finish.Name() }

// Text returns the length of the text that the stream has had so far, with thoughts, the
// arguments of calls and the escapes of JSON.
func (t *Translator) Text() int { return t.text }

// Failure returns why the stream failed, or nil.
func (t *Translator) Failure() *apierr.Error { return t.failure }

// Complete reports whether the upstream's stream ended with its terminator.
func (t *Translator) Complete() bool { return t.ended && t.failure == nil }

// FailedStream returns a client's whole stream of an answer that failed before it
// began.
func FailedStream(to Dialect, opt ir.Options, e *apierr.Error) []byte {
	s := dialects[to].sink(&opt)
	s.Event(&ir.Event{Kind: ir.EventStart})
	s.Event(&ir.Event{Kind: ir.EventFail, Failure: e})
	return *s.Buffer()
}
