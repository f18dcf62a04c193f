package llm

import "github.com/tidwall/gjson"

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

// joinLogprobs joins the logprobs objects of a stream's pieces.
func joinLogprobs(pieces []string) string {
	if len(pieces) == 0 {
		return ""
	}
	d := doc{}
	d.open("", '{')
	for _, name := range [...]string{"content", "refusal"} {
		list := doc{}
		list.open("", '[')
		some := false
		for _, s := range pieces {
			forEach(gjson.Get(s, name), func(_, v gjson.Result) bool {
				if v.IsObject() {
					list.raw("", v.Raw)
					some = true
				}
				return true
			})
		}
		list.close(']')
		if some {
			d.raw(name, string(list.b))
		} else {
			d.null(name)
		}
	}
	d.close('}')
	return string(d.b)
}
