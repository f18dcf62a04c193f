package proxy

import (
	"bytes"
	"errors"

	"weir/pkg/accounts"
	"weir/pkg/llm"
	"weir/pkg/provider/bedrock"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
)

// meter notes how a stream ended: with the account, in the usage and in the
// log. Each stream is noted once.
type meter struct {
	a    *attempt
	res  *accounts.Result
	done bool
}

// end is called with what the stream was seen to come to: complete, or the
// error that it held or ended with.
func (m *meter) end(cause error, complete bool, failure *apierr.Error, u llm.Usage) {
	if m.done {
		return
	}
	m.done = true
	left := errors.Is(cause, stream.ErrClient)
	m.a.Used.Tokens = u
	switch {
	case complete:
		m.res.Done(nil)
	case left:
		m.res.Done(stream.ErrClient)
	default:
		// A failure that the upstream told of counts as its status, all
		// others as a failure of the network.
		if failure == nil {
			failure = apierr.New(502, "upstream_cut", "The provider's stream ended early.")
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

// watcher reads along with a stream of the client's own dialect.
type watcher struct {
	meter
	o *llm.Observer
	// Where the client did not ask for usage, the upstream does not tell it:
	// the stream passes byte for byte, so nothing could be taken out of it
	// that was added for our sake. The usage is estimated then.
	estimate bool
	written  written
}

var _ stream.Watcher = (*watcher)(nil)

// keptForEstimate is how long a request may be to be kept until the end of its
// stream. The tokens of a longer one are estimated at once, so that many open
// streams do not hold their requests.
const keptForEstimate = 16 << 10

func (w *watcher) begin() {
	a := w.a
	w.estimate = a.ask.Dialect == llm.Chat && !a.ask.Usage
	if w.estimate && len(a.ask.Body) > keptForEstimate {
		a.found.input = llm.Estimate(a.ask.Dialect, a.ask.Body)
	}
	if !w.estimate || a.found.input >= 0 {
		a.ask.Body = nil
	}
}

// Sample sees the next piece.
func (w *watcher) Sample(piece []byte) {
	w.o.Sample(piece)
	if w.estimate {
		w.written.add(piece)
	}
}

// End tells how the stream ended.
func (w *watcher) End(cause error) []byte {
	tail := w.o.End(cause)
	u := w.o.Usage()
	if w.estimate && !u.Known && !w.done {
		u = w.estimated()
	}
	w.end(cause, w.o.Complete(), w.o.Failure(), u)
	return tail
}

// estimated is the usage of a stream that did not tell it.
func (w *watcher) estimated() llm.Usage {
	in := w.a.found.input
	if in < 0 {
		in = llm.Estimate(w.a.ask.Dialect, w.a.ask.Body)
	}
	return llm.Usage{Input: in, Output: int64(w.written.bytes+3) / 4, Known: true}
}

// written counts about how many bytes of text the chunks of a chat stream hold,
// without parsing them. Chunks of a stream look alike, so the place of the
// delta in the last one is where it is looked for first.
type written struct {
	bytes int
	at    int    // of the delta within a line
	begun []byte // of the line that the last piece ended in
}

// maxBegun is how much of such a line is kept; a longer one counts for that.
const maxBegun = 8 << 10

var (
	delta = []byte(`"delta":{`)
	// texts are how a delta begins whose first field is the text, and others
	// where it comes later.
	texts = [...][]byte{[]byte(`"content":"`), []byte(`"reasoning_content":"`), []byte(`"reasoning":"`)}
	later = [...][]byte{[]byte(`"content":"`), []byte(`"arguments":"`)}
)

func (t *written) add(piece []byte) {
	for {
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			t.begun = append(t.begun, piece[:min(len(piece), maxBegun-len(t.begun))]...)
			return
		}
		line := piece[:end]
		if len(t.begun) > 0 {
			t.begun = append(t.begun, line[:min(end, maxBegun-len(t.begun))]...)
			line, t.begun = t.begun, t.begun[:0]
		}
		if len(line) > 0 && line[0] == 'd' {
			t.line(line)
		}
		piece = piece[end+1:]
	}
}

func (t *written) line(line []byte) {
	if t.at > len(line) || !bytes.HasPrefix(line[t.at:], delta) {
		at := bytes.Index(line, delta)
		if at < 0 {
			return
		}
		t.at = at
	}
	line = line[t.at+len(delta):]
	for _, name := range texts {
		if bytes.HasPrefix(line, name) {
			t.bytes += quoted(line[len(name):])
			return
		}
	}
	for _, name := range later {
		if at := bytes.Index(line, name); at >= 0 {
			t.bytes += quoted(line[at+len(name):])
			return
		}
	}
}

// quoted is how long a JSON string is whose first quote is past.
func quoted(s []byte) int {
	n := 0
	for n < len(s) && s[n] != '"' {
		if s[n] == '\\' {
			n++
		}
		n++
	}
	return n
}

// unframed takes a stream of the client's own dialect out of Amazon's frames.
type unframed struct {
	watcher
	frames bedrock.Frames
}

var _ stream.Transform = (*unframed)(nil)

// Push returns the events of the next piece.
func (u *unframed) Push(chunk, out []byte) []byte {
	from := len(out)
	out = u.frames.Push(chunk, out)
	u.Sample(out[from:])
	return out
}

// End ends the client's stream.
func (u *unframed) End(cause error, out []byte) []byte {
	return append(out, u.watcher.End(cause)...)
}

// translator turns an upstream's stream into the client's.
type translator struct {
	meter
	t  *llm.Translator
	to stream.Transform // t, behind what its events come out of
}

var _ stream.Transform = (*translator)(nil)

func (a *attempt) translator(m meter) *translator {
	a.opt.Clean = m.res.Clean
	t := &translator{meter: m, t: llm.Stream(a.way.dialect, a.ask.Dialect, a.opt)}
	t.to = t.t
	if a.way.frames {
		t.to = &bedrock.Chain{First: &bedrock.Frames{}, Then: t.t}
	}
	a.ask.Body = nil
	return t
}

// Push translates the next piece.
func (t *translator) Push(chunk, out []byte) []byte { return t.to.Push(chunk, out) }

// Stopped reports that the stream has failed: what the upstream goes on to send
// is not waited for (docs/reference/reliability.md, T41).
func (t *translator) Stopped() bool { return t.t.Failure() != nil }

// End ends the client's stream.
func (t *translator) End(cause error, out []byte) []byte {
	out = t.to.End(cause, out)
	t.end(cause, t.t.Complete(), t.t.Failure(), t.t.Usage())
	return out
}
