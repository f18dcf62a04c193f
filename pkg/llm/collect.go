package llm

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// Collect turns an upstream's whole event stream into the JSON answer of the
// client's dialect: for clients that want JSON of upstreams that only stream.
// A stream without its proper end gives an *apierr.Error.
func Collect(from, to Dialect, body []byte, opt ir.Options) ([]byte, ir.Usage, error) {
	c := &collector{}
	t := &Translator{from: dialects[from].source(&opt), to: c}
	t.next = ir.NewSequencer(c, &t.meter, true)
	t.next = opt.Tools.Restorer(t.next, &t.meter)
	t.Push(body, nil)
	t.End(nil, nil)
	if t.failure != nil {
		return nil, t.usage, t.failure
	}
	c.a.Usage = t.usage
	c.a.Logprobs = joinLogprobs(c.logprobs)
	var d ir.Writer
	dialects[to].writeAnswer(&c.a, &d, &opt)
	return d.B, t.usage, nil
}

// collector makes an answer of events, which come from a sequencer.
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

// last gives the open block, or begins one.
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
		c.a.Id, c.a.Model = own(e.Id), own(e.Name)
	case ir.EventText, ir.EventThinking, ir.EventRefusal, ir.EventArguments:
		c.last([...]ir.BlockKind{ir.EventText: ir.TextBlock, ir.EventThinking: ir.ThinkingBlock, ir.EventRefusal: ir.RefusalBlock, ir.EventArguments: ir.ToolCallBlock}[e.Kind])
		c.text = append(c.text, e.Text...)
	case ir.EventSignature:
		b := c.last(ir.ThinkingBlock)
		b.Sig, b.Issuer = own(e.Sig), own(e.Issuer)
	case ir.EventRedacted:
		c.begin(ir.Block{Kind: ir.ThinkingBlock, Redacted: true, Sig: own(e.Sig), Issuer: own(e.Issuer)})
		c.open = false
	case ir.EventTool:
		c.begin(ir.Block{Kind: ir.ToolCallBlock, Id: own(e.Id), Name: own(e.Name), Space: own(e.Space), Custom: e.Custom, Built: e.Built, Old: e.Old, Sig: own(e.Sig), Issuer: own(e.Issuer)})
	case ir.EventCitation:
		for i := len(c.a.Blocks) - 1; i >= 0; i-- {
			if b := &c.a.Blocks[i]; b.Kind == ir.TextBlock {
				b.Cites = append(b.Cites, e.Cite.Clone())
				break
			}
		}
	case ir.EventImage:
		c.open = false
		c.a.Blocks = append(c.a.Blocks, ir.Block{Kind: ir.ImageBlock, Url: own(e.Sig)})
	case ir.EventLogprobs:
		c.logprobs = append(c.logprobs, ir.OneLine(own(e.Sig)))
	case ir.EventClose:
		if !c.open {
			return
		}
		c.open = false
		if b := &c.a.Blocks[len(c.a.Blocks)-1]; b.Kind == ir.ToolCallBlock {
			b.Args = ir.Unescape(string(c.text))
		} else {
			b.Text = ir.Unescape(string(c.text))
		}
	case ir.EventFinish:
		c.a.Finish, c.a.StopSeq, c.a.Explain = e.Finish, own(e.StopSeq), own(e.Explain)
	}
}

// joinLogprobs joins the logprobs objects of a stream's pieces.
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
			d.Raw(name, string(list.B))
		} else {
			d.Null(name)
		}
	}
	d.Close('}')
	return string(d.B)
}
