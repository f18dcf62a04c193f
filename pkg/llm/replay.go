package llm

import "weir/pkg/llm/ir"

// Replay turns an upstream's JSON answer into the client's event stream: for
// clients that want a stream of upstreams that answered with JSON all the same.
func Replay(from, to Dialect, body []byte, opt ir.Options) ([]byte, ir.Usage, error) {
	a := &ir.Answer{}
	if err := readAnswer(a, from, body, &opt); err != nil {
		return nil, ir.Usage{}, err
	}
	if dialects[to].objectArguments {
		objectArguments(a)
	}
	w := dialects[to].sink(&opt)
	replay(a, w)
	return *w.Buffer(), a.Usage, nil
}

// wellFormed makes an object of arguments that are none, for the dialect whose
// clients parse them.
func objectArguments(a *ir.Answer) {
	for i := range a.Blocks {
		if b := &a.Blocks[i]; b.Kind == ir.ToolCallBlock {
			args, ok := ir.Object(b.Args)
			if !ok {
				args = `{"_raw":` + ir.Quote(b.Args) + `}`
			}
			b.Args = args
		}
	}
}

func replay(a *ir.Answer, to ir.Sink) {
	to.Event(&ir.Event{Kind: ir.EventStart, Id: a.Id, Name: a.Model})
	if a.Usage.Known {
		to.Event(&ir.Event{Kind: ir.EventUsage, Usage: a.Usage})
	}
	if a.Logprobs != "" {
		to.Event(&ir.Event{Kind: ir.EventLogprobs, Sig: a.Logprobs})
	}
	for i := range a.Blocks {
		b := &a.Blocks[i]
		switch b.Kind {
		case ir.TextBlock, ir.RefusalBlock:
			kind := ir.EventText
			if b.Kind == ir.RefusalBlock {
				kind = ir.EventRefusal
			}
			to.Event(&ir.Event{Kind: kind, Text: ir.Escape(b.Text)})
			for _, c := range b.Cites {
				to.Event(&ir.Event{Kind: ir.EventCitation, Cite: c})
			}
		case ir.ImageBlock:
			to.Event(&ir.Event{Kind: ir.EventImage, Sig: b.URI()})
		case ir.ThinkingBlock:
			if b.Redacted {
				to.Event(&ir.Event{Kind: ir.EventRedacted, Sig: b.Sig, Issuer: b.Issuer})
				continue
			}
			if b.Text != "" {
				to.Event(&ir.Event{Kind: ir.EventThinking, Text: ir.Escape(b.Text)})
			}
			if b.Sig != "" {
				to.Event(&ir.Event{Kind: ir.EventSignature, Sig: b.Sig, Issuer: b.Issuer})
			}
		case ir.ToolCallBlock:
			to.Event(&ir.Event{Kind: ir.EventTool, Block: i, Id: b.Id, Name: b.Name, Space: b.Space, Custom: b.Custom, Built: b.Built, Old: b.Old, Sig: b.Sig, Issuer: b.Issuer})
			to.Event(&ir.Event{Kind: ir.EventArguments, Block: i, Text: ir.Escape(b.Args), Custom: b.Custom})
		}
		to.Event(&ir.Event{Kind: ir.EventClose, Block: i})
	}
	to.Event(&ir.Event{Kind: ir.EventFinish, Finish: a.Finish, StopSeq: a.StopSeq, Explain: a.Explain})
	to.Event(&ir.Event{Kind: ir.EventEnd})
}
