package llm

import (
	"weir/pkg/wire/apierr"
)

// Collect turns an upstream's whole event stream into the JSON answer of the
// client's dialect: for clients that want JSON of upstreams that only stream.
// A stream without its proper end gives an *apierr.Error.
func Collect(from, to Dialect, body []byte, opt Options) ([]byte, Usage, error) {
	c := &collector{}
	t := &Translator{from: dialects[from].source(&opt), to: c}
	t.next = newSequencer(c, &t.meter, true)
	t.next = opt.Tools.restorer(t.next, &t.meter)
	t.Push(body, nil)
	t.End(nil, nil)
	if t.failure != nil {
		return nil, t.usage, t.failure
	}
	c.a.usage = t.usage
	c.a.logprobs = joinLogprobs(c.logprobs)
	var d doc
	dialects[to].writeAnswer(&c.a, &d, &opt)
	return d.b, t.usage, nil
}

// collector makes an answer of events, which come from a sequencer.
type collector struct {
	out      []byte
	a        answer
	open     bool
	text     []byte // of the open block, escaped
	logprobs []string
}

func (c *collector) buffer() *[]byte { return &c.out }

func (c *collector) begin(b block) *block {
	c.a.blocks = append(c.a.blocks, b)
	c.open, c.text = true, c.text[:0]
	return &c.a.blocks[len(c.a.blocks)-1]
}

// last gives the open block, or begins one.
func (c *collector) last(k blockKind) *block {
	if c.open {
		return &c.a.blocks[len(c.a.blocks)-1]
	}
	return c.begin(block{kind: k})
}

func (c *collector) event(e *event) {
	own := func(s string) string { return string([]byte(s)) }
	switch e.kind {
	case evStart:
		c.a.id, c.a.model = own(e.id), own(e.name)
	case evText, evThinking, evRefusal, evArgs:
		c.last([...]blockKind{evText: textBlock, evThinking: thinkingBlock, evRefusal: refusalBlock, evArgs: toolUseBlock}[e.kind])
		c.text = append(c.text, e.text...)
	case evSignature:
		b := c.last(thinkingBlock)
		b.sig, b.issuer = own(e.sig), own(e.issuer)
	case evRedacted:
		c.begin(block{kind: thinkingBlock, redacted: true, sig: own(e.sig), issuer: own(e.issuer)})
		c.open = false
	case evTool:
		c.begin(block{kind: toolUseBlock, id: own(e.id), name: own(e.name), space: own(e.space), custom: e.custom, built: e.built, old: e.old, sig: own(e.sig), issuer: own(e.issuer)})
	case evCite:
		for i := len(c.a.blocks) - 1; i >= 0; i-- {
			if b := &c.a.blocks[i]; b.kind == textBlock {
				b.cites = append(b.cites, e.cite.own())
				break
			}
		}
	case evImage:
		c.open = false
		c.a.blocks = append(c.a.blocks, block{kind: imageBlock, url: own(e.sig)})
	case evLogprobs:
		c.logprobs = append(c.logprobs, oneLine(own(e.sig)))
	case evClose:
		if !c.open {
			return
		}
		c.open = false
		if b := &c.a.blocks[len(c.a.blocks)-1]; b.kind == toolUseBlock {
			b.args = unescape(string(c.text))
		} else {
			b.text = unescape(string(c.text))
		}
	case evFinish:
		c.a.finish, c.a.stopSeq, c.a.explain = e.finish, own(e.stopSeq), own(e.explain)
	}
}

// Replay turns an upstream's JSON answer into the client's event stream: for
// clients that want a stream of upstreams that answered with JSON all the same.
func Replay(from, to Dialect, body []byte, opt Options) ([]byte, Usage, error) {
	a := &answer{}
	if err := readAnswer(a, from, body, &opt); err != nil {
		return nil, Usage{}, err
	}
	if dialects[to].objectArguments {
		objectArguments(a)
	}
	w := dialects[to].sink(&opt)
	replay(a, w)
	return *w.buffer(), a.usage, nil
}

// wellFormed makes an object of arguments that are none, for the dialect whose
// clients parse them.
func objectArguments(a *answer) {
	for i := range a.blocks {
		if b := &a.blocks[i]; b.kind == toolUseBlock {
			args, ok := object(b.args)
			if !ok {
				args = `{"_raw":` + quoted(b.args) + `}`
			}
			b.args = args
		}
	}
}

func replay(a *answer, to sink) {
	to.event(&event{kind: evStart, id: a.id, name: a.model})
	if a.usage.Known {
		to.event(&event{kind: evUsage, usage: a.usage})
	}
	if a.logprobs != "" {
		to.event(&event{kind: evLogprobs, sig: a.logprobs})
	}
	for i := range a.blocks {
		b := &a.blocks[i]
		switch b.kind {
		case textBlock, refusalBlock:
			kind := evText
			if b.kind == refusalBlock {
				kind = evRefusal
			}
			to.event(&event{kind: kind, text: escape(b.text)})
			for _, c := range b.cites {
				to.event(&event{kind: evCite, cite: c})
			}
		case imageBlock:
			to.event(&event{kind: evImage, sig: b.uri()})
		case thinkingBlock:
			if b.redacted {
				to.event(&event{kind: evRedacted, sig: b.sig, issuer: b.issuer})
				continue
			}
			if b.text != "" {
				to.event(&event{kind: evThinking, text: escape(b.text)})
			}
			if b.sig != "" {
				to.event(&event{kind: evSignature, sig: b.sig, issuer: b.issuer})
			}
		case toolUseBlock:
			to.event(&event{kind: evTool, block: i, id: b.id, name: b.name, space: b.space, custom: b.custom, built: b.built, old: b.old, sig: b.sig, issuer: b.issuer})
			to.event(&event{kind: evArgs, block: i, text: escape(b.args), custom: b.custom})
		}
		to.event(&event{kind: evClose, block: i})
	}
	to.event(&event{kind: evFinish, finish: a.finish, stopSeq: a.stopSeq, explain: a.explain})
	to.event(&event{kind: evEnd})
}

// FailureFrame is what a client's stream is ended with when it fails outside a
// Translator, as on the way to a same-dialect upstream.
func FailureFrame(dst []byte, to Dialect, e *apierr.Error) []byte {
	return dialects[to].failure(dst, e)
}
