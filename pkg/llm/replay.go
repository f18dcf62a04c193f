package llm

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
