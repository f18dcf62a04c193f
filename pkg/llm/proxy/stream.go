package proxy

import (
	"errors"

	"weir/pkg/accounts"
	"weir/pkg/llm"
	"weir/pkg/provider/bedrock"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/sse"
	"weir/pkg/wire/stream"
)

// outcome records how a stream ended: for the account, in the usage and in the
// log. Each stream is recorded once.
type outcome struct {
	a     *attempt
	res   *accounts.Result
	costs bool // a comment states the cost
	done  bool
}

// watched is what an Observer and a Translator know of a stream.
type watched interface {
	Complete() bool
	Failure() *apierr.Error
	Usage() llm.Usage
	Text() int
	Finish() string
}

// end records the end of a stream: complete, or with the error that it held or
// ended with.
func (m *outcome) end(cause error, s watched) {
	failure := s.Failure()
	if m.done {
		return
	}
	m.done = true
	left := errors.Is(cause, stream.ErrClient)
	m.a.Used.Tokens, m.a.parsed.text, m.a.call.Trace.Finish = s.Usage(), s.Text(), s.Finish()
	switch {
	case s.Complete():
		m.res.Done(nil)
	case left:
		m.res.Done(stream.ErrClient)
	default:
		// A failure that the upstream reported counts as its status, all others
		// as a failure of the network.
		if failure == nil {
			failure = apierr.New(502, "upstream_cut", "The provider ended the stream before the answer was complete. Try again.")
		}
		m.res.Clean(failure)
		m.a.call.Trace.Err = failure
		if cause != nil && failure.Status >= 500 {
			m.res.Done(cause)
			return
		}
		m.res.Done(failure)
	}
}

// cost appends a comment that states what the stream cost, which end has recorded. A
// client that has left gets none.
func (m *outcome) cost(cause error, out []byte) []byte {
	if !m.costs || errors.Is(cause, stream.ErrClient) {
		return out
	}
	if cost := m.a.call.Trace.Cost(); cost != "" {
		out = append(append(append(out, ": x-weir-cost "...), cost...), "\n\n"...)
	}
	return out
}

// passthrough observes a stream of the client's own dialect.
type passthrough struct {
	stream.Plain
	outcome
	o *llm.Observer
}

// maxStoredBody is the maximum length of a request that is stored until the end
// of its stream, which may not state the usage. The tokens of a longer one are estimated
// roughly at once, so that many open streams do not hold their requests.
const maxStoredBody = 16 << 10

// releaseBody releases the request when its stream begins.
func (a *attempt) releaseBody() {
	if a.input < 0 && len(a.req.Body) > maxStoredBody {
		a.input = llm.RoughEstimate(a.req.Body)
	}
	if a.input >= 0 {
		a.req.Body = nil
	}
}

// Push reads the next part, which passes.
func (w *passthrough) Push(chunk, out []byte) []byte {
	w.o.Sample(chunk)
	return append(out, chunk...)
}

// Beat appends a heartbeat.
func (w *passthrough) Beat(out []byte) []byte { return w.o.Beat(out) }

// End records how the stream ended.
func (w *passthrough) End(cause error, out []byte) []byte {
	out = append(out, w.o.End(cause)...)
	w.end(cause, w.o)
	return w.cost(cause, out)
}

// askedUsage is a stream whose usage the gateway has asked for: the client does not get
// the chunk that has it.
type askedUsage struct {
	passthrough
	filter llm.UsageFilter
}

// Push returns the next part without that chunk.
func (s *askedUsage) Push(chunk, out []byte) []byte {
	s.o.Sample(chunk)
	return s.filter.Push(chunk, out)
}

// Beat appends a heartbeat.
func (s *askedUsage) Beat(out []byte) []byte {
	if s.filter.Begun() {
		return out
	}
	return s.passthrough.Beat(out)
}

// End ends the client's stream.
func (s *askedUsage) End(cause error, out []byte) []byte {
	return s.passthrough.End(cause, s.filter.End(out))
}

// translator turns an upstream's stream into the client's.
type translator struct {
	stream.Plain
	outcome
	t  *llm.Translator
	to stream.Transform // t, behind what its events come out of
	// full reports that there will be no memory for the line that has begun.
	full bool
}

func (a *attempt) translator(m outcome) *translator {
	a.opt.Clean = m.res.Clean
	t := &translator{outcome: m, t: llm.Stream(a.api.dialect, a.req.Dialect, a.opt)}
	t.to = t.t
	if a.api.frames {
		t.to = &bedrock.Chain{First: &bedrock.Frames{}, Then: t.t}
	}
	return t
}

// Ready reports whether there is memory for the next part of a long line, or never will be:
// then Push ends the stream.
func (t *translator) Ready(chunk []byte) bool {
	l := &t.a.call.Memory
	n := len(chunk) + t.t.Buffered()
	if n <= memory.Uncounted {
		l.Drop(memory.Line)
		return true
	}
	ok, refused := l.TryGrow(memory.Line, lineMemory(int64(n), sse.LineEnd(chunk) >= 0))
	t.full = refused
	return ok || refused
}

// lineMemory returns what a line of n bytes takes: it is stored in a buffer that grows
// by quarters, and once it ends, it is read, translated, and sent by the host.
func lineMemory(n int64, ends bool) memory.Amount {
	if ends {
		return memory.Amount{Program: 4 * n, Host: n}
	}
	return memory.Amount{Program: 9 * n / 4}
}

// Push translates the next part.
func (t *translator) Push(chunk, out []byte) []byte {
	if t.full {
		return t.to.End(stream.ErrMemory, out)
	}
	return t.to.Push(chunk, out)
}

// Beat appends a heartbeat.
func (t *translator) Beat(out []byte) []byte { return t.t.Beat(out) }

// Stopped reports that the stream has failed: what the upstream goes on to send
// is not waited for (docs/reference/reliability.md, T41).
func (t *translator) Stopped() bool { return t.t.Failure() != nil }

// End ends the client's stream.
func (t *translator) End(cause error, out []byte) []byte {
	out = t.to.End(cause, out)
	t.a.call.Memory.Drop(memory.Line)
	t.end(cause, t.t)
	return t.cost(cause, out)
}
