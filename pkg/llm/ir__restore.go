package llm

import "weir/pkg/wire/apierr"

// restore replaces the names and kinds of an answer's calls with those of the
// client's request.
func (t *Tools) restore(a *answer) {
	if !t.Changed() {
		return
	}
	for i := range a.blocks {
		b := &a.blocks[i]
		if b.kind != toolUseBlock {
			continue
		}
		b.old = b.old || t.old
		c, ok := t.sent[b.name]
		if !ok {
			continue
		}
		b.name, b.space, b.built = c.name, c.space, c.built
		if c.wrapped && !b.custom {
			var in freeform
			text := append([]byte(nil), in.add(b.args)...)
			b.custom, b.args = true, unescape(string(append(text, in.end()...)))
		}
	}
}

// restorer does the same for the events of a stream.
type restorer struct {
	next  sink
	tools *Tools
	fail  sink              // gets the failure of an answer that is too long
	calls map[int]*freeform // by block; nil for calls whose arguments stay
	order []int
	e     event
}

// restorer returns next if no call has to be changed.
func (t *Tools) restorer(next, fail sink) sink {
	if !t.Changed() {
		return next
	}
	return &restorer{next: next, tools: t, fail: fail}
}

func (r *restorer) event(e *event) {
	switch e.kind {
	case evTool:
		r.e = *e
		r.e.old = e.old || r.tools.old
		c, ok := r.tools.sent[e.name]
		if ok {
			r.e.name, r.e.space, r.e.built = c.name, c.space, c.built
			if c.wrapped && !e.custom {
				r.e.custom = true
				r.begin(e.block)
			}
		}
		r.next.event(&r.e)
	case evArgs:
		in := r.calls[e.block]
		if in == nil {
			r.next.event(e)
			return
		}
		before := in.whole()
		text := in.add(unescape(e.text))
		if len(in.seen) > maxHeld {
			r.fail.event(&event{kind: evFail, failure: apierr.New(502, "upstream_too_large", "The provider's answer is over the size limit.")})
			return
		}
		r.args(e.block, text)
		if in.whole() && !before {
			r.next.event(&event{kind: evClose, block: e.block})
		}
	case evClose:
		r.end(e.block)
		r.next.event(e)
	case evFinish, evEnd:
		for _, block := range r.order {
			r.end(block)
		}
		r.order = r.order[:0]
		r.next.event(e)
	default:
		r.next.event(e)
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
		r.next.event(&event{kind: evArgs, block: block, custom: true, text: view(text)})
	}
}

// end passes on the rest of a call's input.
func (r *restorer) end(block int) {
	if in := r.calls[block]; in != nil {
		r.args(block, in.end())
	}
}
