package llm

import (
	"strings"

	"github.com/tidwall/gjson"
)

// messagesSource reads the events of a Messages stream
// (docs/reference/api-shapes.md, 8.3).
type messagesSource struct {
	opt     *Options
	blocks  []uint8 // by index: what kind of block it is
	stopped bool    // a stop reason came
	format  bool    // the answer comes as the input of formatTool
	e       event
	text    pattern
	sourced sourced
}

func newMessagesSource(opt *Options) source { return &messagesSource{opt: opt} }

func (s *messagesSource) clean() bool { return s.stopped }

// quick reads a piece that differs from an earlier one in its text alone.
func (s *messagesSource) quick(data []byte, to sink) bool {
	text, ok := s.text.match(data)
	if ok {
		s.e = event{kind: s.text.kind, block: s.text.block, text: view(text)}
		if s.e.kind == evText {
			s.sourced.text(s.e.text)
		}
		to.event(&s.e)
	}
	return ok
}

const (
	ignoredBlock uint8 = iota
	plainBlock
	callBlock // without arguments so far
	argsBlock // with arguments
	formatBlock
)

func (s *messagesSource) kind(i int) uint8 {
	if i < 0 || i >= len(s.blocks) {
		return ignoredBlock
	}
	return s.blocks[i]
}

func (s *messagesSource) piece(kind eventKind, index int, text string, to sink) {
	if text != "" {
		s.e = event{kind: kind, block: index, text: text}
		if kind == evText {
			s.sourced.text(text)
		}
		to.event(&s.e)
	}
}

func (s *messagesSource) read(name, data []byte, to sink) {
	if string(data) == "[DONE]" {
		return
	}
	var kind string
	var index int
	var message, content, delta, usage gjson.Result
	root := gjson.Parse(view(data))
	forEach(root, func(k, v gjson.Result) bool {
		switch k.Str {
		case "type":
			kind = str(v)
		case "index":
			index = int(v.Int())
		case "message":
			message = v
		case "content_block":
			content = v
		case "delta":
			delta = v
		case "usage":
			usage = v
		}
		return true
	})
	switch kind {
	case "content_block_delta":
		s.delta(index, delta, data, to)
	case "message_start":
		to.event(&event{kind: evStart, id: strings.TrimPrefix(str(message.Get("id")), "msg_"), name: str(message.Get("model"))})
		if u := messagesUsage(message.Get("usage")); u.Known {
			to.event(&event{kind: evUsage, usage: u})
		}
	case "content_block_start":
		s.start(index, content, to)
	case "content_block_stop":
		s.text.has = false
		if k := s.kind(index); k != ignoredBlock {
			if k == callBlock {
				s.piece(evArgs, index, "{}", to) // nothing came: no arguments
			}
			s.sourced.flush(to)
			to.event(&event{kind: evClose, block: index})
		}
	case "message_delta":
		if u := lastUsage(usage); u.Known {
			to.event(&event{kind: evUsage, usage: u})
		}
		if r := str(delta.Get("stop_reason")); r != "" {
			s.stopped = true
			f := messagesFinish(r)
			if s.format && f == finishTools {
				f = finishStop
			}
			to.event(&event{kind: evFinish, finish: f, stopSeq: str(delta.Get("stop_sequence")), explain: str(delta.Get("stop_details.explanation"))})
		}
	case "message_stop":
		to.event(&event{kind: evEnd})
	case "error":
		e := failureIn(root)
		if e == nil {
			e = ofStatus(500)
		}
		to.event(&event{kind: evFail, failure: e})
	default:
		if kind == "" && root.Get("error").Exists() {
			if e := failureIn(root); e != nil {
				to.event(&event{kind: evFail, failure: e})
			}
		}
	}
}

func (s *messagesSource) start(index int, c gjson.Result, to sink) {
	if index < 0 || index > 1<<16 {
		return
	}
	for len(s.blocks) <= index {
		s.blocks = append(s.blocks, ignoredBlock)
	}
	switch str(c.Get("type")) {
	case "text":
		s.blocks[index] = plainBlock
		s.piece(evText, index, inner(c.Get("text")), to)
	case "thinking":
		s.blocks[index] = plainBlock
		s.piece(evThinking, index, inner(c.Get("thinking")), to)
	case "redacted_thinking":
		to.event(&event{kind: evRedacted, block: index, sig: str(c.Get("data")), issuer: s.opt.issuer(issuerAnthropic)})
	case "tool_use":
		if madeByCode(c) {
			return // the pieces of the block are ignored
		}
		name := str(c.Get("name"))
		if name == formatTool {
			s.blocks[index], s.format = formatBlock, true
			return
		}
		s.blocks[index] = callBlock
		to.event(&event{kind: evTool, block: index, id: str(c.Get("id")), name: name})
		if in := c.Get("input"); in.IsObject() && len(in.Raw) > 2 {
			s.blocks[index] = argsBlock
			s.piece(evArgs, index, escape(in.Raw), to)
		}
	}
}

func (s *messagesSource) delta(index int, delta gjson.Result, data []byte, to sink) {
	kind := s.kind(index)
	if kind == ignoredBlock {
		return
	}
	forEach(delta, func(k, v gjson.Result) bool {
		switch k.Str {
		case "text":
			if v.Index+len(v.Raw) <= len(data) && kind == plainBlock && len(v.Raw) > 2 {
				s.text.learn(evText, index, data, v.Index+1, v.Index+len(v.Raw)-1)
			}
			s.piece(evText, index, inner(v), to)
		case "partial_json":
			if kind == formatBlock {
				s.piece(evText, index, inner(v), to)
			} else if t := inner(v); t != "" {
				s.blocks[index] = argsBlock
				s.piece(evArgs, index, t, to)
			}
		case "thinking":
			s.piece(evThinking, index, inner(v), to)
		case "signature":
			if sig := str(v); sig != "" {
				to.event(&event{kind: evSignature, block: index, sig: sig, issuer: s.opt.issuer(issuerAnthropic)})
			}
		case "citation":
			if c, ok := messagesCite(v); ok {
				s.sourced.cite(c)
			}
		}
		return true
	})
}
