package ir

import "weir/pkg/wire/apierr"

// Restore replaces the names and kinds of an answer's calls with those of the
// client's request.
func (t *Tools) Restore(a *Answer) {
	if !t.Changed() {
		return
	}
	for i := range a.Blocks {
		b := &a.Blocks[i]
		if b.Kind != ToolCallBlock {
			continue
		}
		b.Legacy = b.Legacy || t.legacy
		c, ok := t.sent[b.Name]
		if !ok {
			continue
		}
		b.Name, b.Namespace, b.Builtin = c.Name, c.namespace, c.builtin
		if c.Wrapped && !b.Custom {
			var in freeform
			text := append([]byte(nil), in.add(b.Arguments)...)
			b.Custom, b.Arguments = true, Unescape(string(append(text, in.end()...)))
		}
	}
}

// restorer does the same for the events of a stream.
type restorer struct {
	next  Sink
	tools *Tools
	fail  Sink              // receives the failure of an answer that is too long
	calls map[int]*freeform // by block; nil for calls with unchanged arguments
	order []int
	e     Event
}

// Restorer returns next if no call has to be changed.
func (t *Tools) Restorer(next, fail Sink) Sink {
	if !t.Changed() {
		return next
	}
	return &restorer{next: next, tools: t, fail: fail}
}

func (r *restorer) Event(e *Event) {
	switch e.Kind {
	case EventTool:
		r.e = *e
		r.e.Legacy = e.Legacy || r.tools.legacy
		c, ok := r.tools.sent[e.Name]
		if ok {
			r.e.Name, r.e.Namespace, r.e.Builtin = c.Name, c.namespace, c.builtin
			if c.Wrapped && !e.Custom {
				r.e.Custom = true
				r.begin(e.Block)
			}
		}
		r.next.Event(&r.e)
	case EventArguments:
		in := r.calls[e.Block]
		if in == nil {
			r.next.Event(e)
			return
		}
		before := in.whole()
		text := in.add(Unescape(e.Text))
		if len(in.seen) > maxHeld {
			r.fail.Event(&Event{Kind: EventFail, Failure: apierr.New(502, "upstream_too_large",
				"The provider's answer is over the size limit. Ask for a shorter one.")})
			return
		}
		r.args(e.Block, text)
		if in.whole() && !before {
			r.next.Event(&Event{Kind: EventClose, Block: e.Block})
		}
	case EventClose:
		r.end(e.Block)
		r.next.Event(e)
	case EventFinish, EventEnd:
		for _, block := range r.order {
			r.end(block)
		}
		r.order = r.order[:0]
		r.next.Event(e)
	default:
		r.next.Event(e)
	}
}

func (r *restorer) begin(block int) {
	if r.calls == nil {
		r.calls = map[int]*freeform{}
	}
	if r.calls[block] == nil && len(r.calls) < maxWaiting {
		r.calls[block] = &freeform{}
		r.order = append(r.order, block)
	}
}

func (r *restorer) args(block int, text []byte) {
	if len(text) > 0 {
		r.next.Event(&Event{Kind: EventArguments, Block: block, Custom: true, Text: View(text)})
	}
}

// end sends the rest of a call's input.
func (r *restorer) end(block int) {
	if in := r.calls[block]; in != nil {
		r.args(block, in.end())
	}
}
