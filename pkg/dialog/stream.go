package dialog

import (
	"bytes"
	"errors"

	"weir/pkg/accounts"
	"weir/pkg/apierr"
	"weir/pkg/bedrock"
	"weir/pkg/stream"
	"weir/pkg/translate"
)

// meter notes how a stream ended: with the account, in the usage and in the
// log. Each stream is noted once.
type meter struct {
	x    *exchange
	res  *accounts.Result
	done bool
}

// end is called with what the stream was seen to come to: complete, or the
// error that it held or ended with.
func (m *meter) end(cause error, complete bool, failure *apierr.Error, u translate.Usage) {
	if m.done {
		return
	}
	m.done = true
	left := errors.Is(cause, stream.ErrClient)
	m.x.used(u, !complete && !left)
	switch {
	case complete:
		m.res.Done(nil)
	case left:
		m.res.Done(stream.ErrClient)
	default:
		// A failure that the upstream told of counts as its status, all
		// others as a failure of the network.
		if failure == nil {
			failure = apierr.New(502, "upstream_cut", "the provider's stream ended early")
		}
		m.x.call.Trace.Err = failure
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
	o *translate.Observer
	// Where the client did not ask for usage, the upstream does not tell it:
	// the stream passes byte for byte, so nothing could be taken out of it
	// that was added for our sake. The usage is estimated then.
	estimate bool
	output   int // bytes of text seen
}

var _ stream.Watcher = (*watcher)(nil)

// keptForEstimate is how long a request may be to be kept until the end of its
// stream. The tokens of a longer one are estimated at once, so that many open
// streams do not hold their requests.
const keptForEstimate = 16 << 10

func (w *watcher) begin() {
	x := w.x
	w.estimate = x.ask.Dialect == translate.Chat && !x.ask.Usage
	if len(x.ask.Body) > keptForEstimate {
		if w.estimate {
			x.found.input = translate.Estimate(x.ask.Dialect, x.ask.Body)
		}
		x.ask.Body = nil
	}
}

// Sample sees the next piece.
func (w *watcher) Sample(piece []byte) {
	w.o.Sample(piece)
	if w.estimate {
		w.output += textIn(piece)
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
func (w *watcher) estimated() translate.Usage {
	in := w.x.found.input
	if in < 0 {
		in = translate.Estimate(w.x.ask.Dialect, w.x.ask.Body)
	}
	return translate.Usage{Input: in, Output: int64(w.output+3) / 4, Known: true}
}

// texts are the fields of a chunk that hold what the model wrote.
var texts = [...][]byte{[]byte(`"content":"`), []byte(`"reasoning_content":"`), []byte(`"arguments":"`)}

// textIn counts the bytes of text in a piece of a chat stream, roughly: what
// is cut by the border of a piece is not counted.
func textIn(piece []byte) (n int) {
	for _, name := range texts {
		for rest := piece; ; {
			at := bytes.Index(rest, name)
			if at < 0 {
				break
			}
			rest = rest[at+len(name):]
			end := bytes.IndexByte(rest, '"')
			for end > 0 && rest[end-1] == '\\' {
				next := bytes.IndexByte(rest[end+1:], '"')
				if next < 0 {
					end = -1
					break
				}
				end += next + 1
			}
			if end < 0 {
				break
			}
			n += end
			rest = rest[end:]
		}
	}
	return n
}

// translator turns an upstream's stream into the client's.
type translator struct {
	meter
	t  *translate.Translator
	to stream.Transform // t, behind what its events come out of
}

var _ stream.Transform = (*translator)(nil)

func (x *exchange) translator(m meter) *translator {
	t := &translator{meter: m, t: translate.Stream(x.way.dialect, x.ask.Dialect, x.opt)}
	t.to = t.t
	if x.way.frames {
		t.to = &bedrock.Chain{First: &bedrock.Frames{}, Then: t.t}
	}
	x.ask.Body = nil
	return t
}

// Push translates the next piece.
func (t *translator) Push(chunk, out []byte) []byte { return t.to.Push(chunk, out) }

// End ends the client's stream.
func (t *translator) End(cause error, out []byte) []byte {
	out = t.to.End(cause, out)
	t.end(cause, t.t.Complete(), t.t.Failure(), t.t.Usage())
	return out
}
