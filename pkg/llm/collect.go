package llm

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/llm/responses"
)

// Collect turns an upstream's whole event stream into the JSON answer of the
// client's dialect, for clients that want JSON from upstreams that only stream.
// For a stream without its terminator it returns an *apierr.Error.
func Collect(from, to Dialect, body []byte, opt ir.Options) ([]byte, ir.Usage, error) {
	c, t := collect(from, body, &opt)
	if t.failure != nil {
		return nil, t.usage, t.failure
	}
	if opt.Compacts() {
		if e := responses.CheckSummary(&c.a); e != nil {
			return nil, t.usage, e
		}
	}
	if c.a.Usage = t.usage; opt.Settle != nil {
		opt.Settle(&c.a.Usage, t.text)
	}
	c.a.Logprobs = joinLogprobs(c.logprobs)
	var d ir.Writer
	dialects[to].writeAnswer(&c.a, &d, &opt)
	return d.Buf, t.usage, nil
}

// collect reads a whole event stream.
func collect(from Dialect, body []byte, opt *ir.Options) (*collector, *Translator) {
	c := &collector{}
	t := &Translator{from: dialects[from].source(opt), to: c}
	t.next = ir.NewSequencer(c, &t.outcome, true)
	t.next = opt.Tools.Restorer(t.next, &t.outcome)
	t.Push(body, nil)
	t.End(nil, nil)
	return c, t
}

// collector builds an answer from the events of a sequencer.
type collector struct {
	out      []byte
	a        ir.Answer
	open     bool
	text     []byte // of the open block, escaped
	logprobs []string
}

func (c *collector) Buffer() *[]byte { return &c.out }

func (c *collector) begin(b ir.Block) *ir.Block {
	c.a.Blocks = append(c.a.Blocks, b)
	c.open, c.text = true, c.text[:0]
	return &c.a.Blocks[len(c.a.Blocks)-1]
}

// last returns the open block, or begins one.
func (c *collector) last(k ir.BlockKind) *ir.Block {
	if c.open {
		return &c.a.Blocks[len(c.a.Blocks)-1]
	}
	return c.begin(ir.Block{Kind: k})
}

func (c *collector) Event(e *ir.Event) {
	own := func(s string) string { return string([]byte(s)) }
	switch e.Kind {
	case ir.EventStart:
		c.a.ID, c.a.Model = own(e.ID), own(e.Name)
	case ir.EventText, ir.EventThinking, ir.EventRefusal, ir.EventArguments:
		c.last([...]ir.BlockKind{ir.EventText: ir.TextBlock, ir.EventThinking: ir.ThinkingBlock,
			ir.EventRefusal: ir.RefusalBlock, ir.EventArguments: ir.ToolCallBlock}[e.Kind])
		c.text = append(c.text, e.Text...)
	case ir.EventSignature:
		b := c.last(ir.ThinkingBlock)
		b.Signature, b.Issuer = own(e.Signature), own(e.Issuer)
	case ir.EventRedacted:
		c.begin(ir.Block{Kind: ir.ThinkingBlock, Redacted: true, Signature: own(e.Signature), Issuer: own(e.Issuer)})
		c.open = false
	case ir.EventTool:
		c.begin(ir.Block{Kind: ir.ToolCallBlock, ID: own(e.ID), Name: own(e.Name), Namespace: own(e.Namespace),
			Custom: e.Custom, Builtin: e.Builtin, Legacy: e.Legacy, Signature: own(e.Signature), Issuer: own(e.Issuer)})
	case ir.EventCitation:
		for i := len(c.a.Blocks) - 1; i >= 0; i-- {
			if b := &c.a.Blocks[i]; b.Kind == ir.TextBlock {
				b.Citations = append(b.Citations, e.Citation.Clone())
				break
			}
		}
	case ir.EventImage:
		c.open = false
		c.a.Blocks = append(c.a.Blocks, ir.Block{Kind: ir.ImageBlock, URL: own(e.Signature)})
	case ir.EventLogprobs:
		c.logprobs = append(c.logprobs, ir.OneLine(own(e.Signature)))
	case ir.EventClose:
		if !c.open {
			return
		}
		c.open = false
		if b := &c.a.Blocks[len(c.a.Blocks)-1]; b.Kind == ir.ToolCallBlock {
			b.Arguments = ir.Unescape(string(c.text))
		} else {
			b.Text = ir.Unescape(string(c.text))
		}
	case ir.EventFinish:
		c.a.Finish, c.a.StopSequence, c.a.Explanation = e.Finish, own(e.StopSequence), own(e.Explanation)
	}
}

// joinLogprobs joins the logprobs objects of a stream's chunks.
func joinLogprobs(pieces []string) string {
	if len(pieces) == 0 {
		return ""
	}
	d := ir.Writer{}
	d.Open("", '{')
	for _, name := range [...]string{"content", "refusal"} {
		list := ir.Writer{}
		list.Open("", '[')
		some := false
		for _, s := range pieces {
			ir.Each(gjson.Get(s, name), func(_, v gjson.Result) bool {
				if v.IsObject() {
					list.Raw("", v.Raw)
					some = true
				}
				return true
			})
		}
		list.Close(']')
		if some {
			d.Raw(name, string(list.Buf))
		} else {
			d.Null(name)
		}
	}
	d.Close('}')
	return string(d.Buf)
}
