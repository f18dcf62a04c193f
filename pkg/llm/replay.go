package llm

import "weir/pkg/llm/ir"

// Replay turns an upstream's JSON answer into the client's event stream, for
// clients that want a stream from upstreams that answered with JSON.
func Replay(from, to Dialect, body []byte, opt ir.Options) ([]byte, ir.Usage, error) {
	a := &ir.Answer{}
	if err := readAnswer(a, from, body, len(body), &opt); err != nil {
		return nil, ir.Usage{}, err
	}
	if dialects[to].objectArguments {
		objectArguments(a)
	}
	w := dialects[to].sink(&opt)
	replay(a, w)
	return *w.Buffer(), a.Usage, nil
}

// objectArguments replaces arguments that are not an object with one, for the
// dialect whose clients parse them.
func objectArguments(a *ir.Answer) {
	for i := range a.Blocks {
		if b := &a.Blocks[i]; b.Kind == ir.ToolCallBlock {
			b.Arguments = ir.ObjectArguments(b.Arguments)
		}
	}
}

func replay(a *ir.Answer, to ir.Sink) {
	to.Event(&ir.Event{Kind: ir.EventStart, ID: a.ID, Name: a.Model})
	if a.Usage.Known {
		to.Event(&ir.Event{Kind: ir.EventUsage, Usage: a.Usage})
	}
	if a.Logprobs != "" {
		to.Event(&ir.Event{Kind: ir.EventLogprobs, Signature: a.Logprobs})
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
			for _, c := range b.Citations {
				to.Event(&ir.Event{Kind: ir.EventCitation, Citation: c})
			}
		case ir.ImageBlock:
			to.Event(&ir.Event{Kind: ir.EventImage, Signature: b.URI()})
		case ir.ThinkingBlock:
			if b.Redacted {
				to.Event(&ir.Event{Kind: ir.EventRedacted, Signature: b.Signature, Issuer: b.Issuer})
				continue
			}
			if b.Text != "" {
				to.Event(&ir.Event{Kind: ir.EventThinking, Text: ir.Escape(b.Text)})
			}
			if b.Signature != "" {
				to.Event(&ir.Event{Kind: ir.EventSignature, Signature: b.Signature, Issuer: b.Issuer})
			}
		case ir.ToolCallBlock:
			to.Event(&ir.Event{Kind: ir.EventTool, Block: i, ID: b.ID, Name: b.Name, Namespace: b.Namespace, Custom: b.Custom,
				Builtin: b.Builtin, Legacy: b.Legacy, Signature: b.Signature, Issuer: b.Issuer})
			to.Event(&ir.Event{Kind: ir.EventArguments, Block: i, Text: ir.Escape(b.Arguments), Custom: b.Custom})
		}
		to.Event(&ir.Event{Kind: ir.EventClose, Block: i})
	}
	to.Event(&ir.Event{Kind: ir.EventFinish, Finish: a.Finish, StopSequence: a.StopSequence, Explanation: a.Explanation})
	to.Event(&ir.Event{Kind: ir.EventEnd})
}
