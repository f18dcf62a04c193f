package messages

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// source reads the events of a Messages stream
// (docs/reference/api-shapes.md, 8.3).
type source struct {
	opt     *ir.Options
	blocks  []uint8 // by index: what kind of block it is
	stopped bool    // a stop reason arrived
	format  bool    // the answer is the input of ir.FormatTool
	calls   bool    // the client has a tool to call
	e       ir.Event
	text    ir.Pattern
	sourced ir.CitationQueue
}

// NewSource returns the source of an upstream's stream.
func NewSource(opt *ir.Options) ir.Source { return &source{opt: opt} }

func (s *source) CleanEnd() bool { return s.stopped }

// ReadQuick reads an event that differs from an earlier one in its text only.
func (s *source) ReadQuick(data []byte, to ir.Sink) bool {
	text, ok := s.text.Match(data)
	if ok {
		s.e = ir.Event{Kind: s.text.Kind, Block: s.text.Block, Text: ir.View(text)}
		if s.e.Kind == ir.EventText {
			s.sourced.Text(s.e.Text)
		}
		to.Event(&s.e)
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

func (s *source) kind(i int) uint8 {
	if i < 0 || i >= len(s.blocks) {
		return ignoredBlock
	}
	return s.blocks[i]
}

func (s *source) piece(kind ir.EventKind, index int, text string, to ir.Sink) {
	if text != "" {
		s.e = ir.Event{Kind: kind, Block: index, Text: text}
		if kind == ir.EventText {
			s.sourced.Text(text)
		}
		to.Event(&s.e)
	}
}

func (s *source) Read(name, data []byte, to ir.Sink) {
	if string(data) == "[DONE]" {
		return
	}
	var kind string
	var index int
	var message, content, delta, usage gjson.Result
	root := gjson.Parse(ir.View(data))
	ir.Each(root, func(k, v gjson.Result) bool {
		switch k.Str {
		case "type":
			kind = ir.Str(v)
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
		to.Event(&ir.Event{Kind: ir.EventStart, ID: strings.TrimPrefix(ir.Str(message.Get("id")), "msg_"),
			Name: ir.Str(message.Get("model"))})
		if u := usageOf(message.Get("usage")); u.Known {
			u.Begun = true
			to.Event(&ir.Event{Kind: ir.EventUsage, Usage: u})
		}
	case "content_block_start":
		s.start(index, content, to)
	case "content_block_stop":
		s.text.Has = false
		if k := s.kind(index); k != ignoredBlock {
			if k == callBlock {
				s.piece(ir.EventArguments, index, "{}", to) // no arguments arrived
			}
			s.sourced.Flush(to)
			to.Event(&ir.Event{Kind: ir.EventClose, Block: index})
		}
	case "message_delta":
		if u := lastUsage(usage, delta); u.Known {
			to.Event(&ir.Event{Kind: ir.EventUsage, Usage: u})
		}
		if r := ir.Str(delta.Get("stop_reason")); r != "" {
			s.stopped = true
			f := finish(r, s.calls && !s.format)
			to.Event(&ir.Event{Kind: ir.EventFinish, Finish: f, StopSequence: ir.Str(delta.Get("stop_sequence")),
				Explanation: ir.Str(delta.Get("stop_details.explanation"))})
		}
	case "message_stop":
		to.Event(&ir.Event{Kind: ir.EventEnd})
	case "error":
		e := ir.ErrorIn(root)
		if e == nil {
			e = ir.StatusError(500)
		}
		to.Event(&ir.Event{Kind: ir.EventFail, Failure: e})
	default:
		if kind == "" && root.Get("error").Exists() {
			if e := ir.ErrorIn(root); e != nil {
				to.Event(&ir.Event{Kind: ir.EventFail, Failure: e})
			}
		}
	}
}

func (s *source) start(index int, c gjson.Result, to ir.Sink) {
	if index < 0 || index > 1<<16 {
		return
	}
	for len(s.blocks) <= index {
		s.blocks = append(s.blocks, ignoredBlock)
	}
	switch ir.Str(c.Get("type")) {
	case "text":
		s.blocks[index] = plainBlock
		s.piece(ir.EventText, index, ir.EscapedText(c.Get("text")), to)
	case "thinking":
		s.blocks[index] = plainBlock
		s.piece(ir.EventThinking, index, ir.EscapedText(c.Get("thinking")), to)
	case "redacted_thinking":
		to.Event(&ir.Event{Kind: ir.EventRedacted, Block: index, Signature: ir.Str(c.Get("data")),
			Issuer: s.opt.IssuerOr(ir.IssuerAnthropic)})
	case "tool_use":
		if calledByCode(c) {
			return // the deltas of the block are ignored
		}
		name := ir.Str(c.Get("name"))
		if name == ir.FormatTool {
			s.blocks[index], s.format = formatBlock, true
			return
		}
		s.blocks[index], s.calls = callBlock, true
		to.Event(&ir.Event{Kind: ir.EventTool, Block: index, ID: ir.Str(c.Get("id")), Name: name})
		if in := c.Get("input"); in.IsObject() && len(in.Raw) > 2 {
			s.blocks[index] = argsBlock
			s.piece(ir.EventArguments, index, ir.Escape(in.Raw), to)
		}
	}
}

// learn learns the pattern of an event with a text.
func (s *source) learn(kind ir.EventKind, index int, data []byte, text gjson.Result) {
	if text.Type == gjson.String && len(text.Raw) > 2 && text.Index+len(text.Raw) <= len(data) {
		s.text.Learn(kind, index, data, text.Index+1, text.Index+len(text.Raw)-1)
	}
}

func (s *source) delta(index int, delta gjson.Result, data []byte, to ir.Sink) {
	kind := s.kind(index)
	if kind == ignoredBlock {
		return
	}
	ir.Each(delta, func(k, v gjson.Result) bool {
		switch k.Str {
		case "text":
			if kind == plainBlock {
				s.learn(ir.EventText, index, data, v)
			}
			s.piece(ir.EventText, index, ir.EscapedText(v), to)
		case "partial_json":
			if kind == formatBlock {
				s.piece(ir.EventText, index, ir.EscapedText(v), to)
			} else if t := ir.EscapedText(v); t != "" {
				s.blocks[index] = argsBlock
				s.learn(ir.EventArguments, index, data, v)
				s.piece(ir.EventArguments, index, t, to)
			}
		case "thinking":
			s.learn(ir.EventThinking, index, data, v)
			s.piece(ir.EventThinking, index, ir.EscapedText(v), to)
		case "signature":
			if sig := ir.Str(v); sig != "" {
				to.Event(&ir.Event{Kind: ir.EventSignature, Block: index, Signature: sig,
					Issuer: s.opt.IssuerOr(ir.IssuerAnthropic)})
			}
		case "citation":
			if c, ok := readCitation(v); ok {
				s.sourced.Add(c)
			}
		}
		return true
	})
}
