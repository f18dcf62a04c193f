package llm

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
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

func newMessagesSource(opt *Options) source { return &messagesSource{opt: opt} }

func (s *messagesSource) clean() bool { return s.stopped }

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

// messagesSink writes the events of a Messages stream. What it is given comes
// from a sequencer.
type messagesSink struct {
	out     []byte
	opt     *Options
	began   bool
	open    bool
	index   int // of the open block, or of the next
	kind    eventKind
	signed  bool
	calls   bool
	finish  finish
	stopSeq string
	explain string
	usage   Usage
}

func newMessagesSink(opt *Options) streamSink { return &messagesSink{opt: opt} }

func (s *messagesSink) buffer() *[]byte { return &s.out }

func (s *messagesSink) frame(name string) *doc {
	s.out = append(append(append(s.out, "event: "...), name...), "\ndata: {\"type\":\""...)
	s.out = append(append(s.out, name...), '"')
	return &doc{b: s.out}
}

func (s *messagesSink) done(d *doc) { s.out = append(d.b, "}\n\n"...) }

func (s *messagesSink) begin(e *event) {
	if s.began {
		return
	}
	s.began = true
	id, model := "", ""
	if e.kind == evStart {
		id, model = e.id, e.name
	}
	d := s.frame("message_start")
	d.open("message", '{')
	d.str("id", s.opt.made("msg_", id))
	d.str("type", "message")
	d.str("role", "assistant")
	d.str("model", s.opt.shown(model))
	d.raw("content", "[]")
	d.null("stop_reason")
	d.null("stop_sequence")
	d.null("stop_details")
	d.key("usage")
	writeMessagesUsage(d, &s.usage)
	d.close('}')
	s.done(d)
	s.out = append(s.out, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
}

func (s *messagesSink) start(kind eventKind, block func(d *doc)) {
	s.open, s.kind, s.signed = true, kind, false
	d := s.frame("content_block_start")
	d.int("index", int64(s.index))
	d.open("content_block", '{')
	block(d)
	d.close('}')
	s.done(d)
}

func (s *messagesSink) stop() {
	if !s.open {
		return
	}
	if s.kind == evThinking && !s.signed {
		// An unsigned thought is marked as such, or it would be taken for the
		// vendor's own on its way back.
		s.signature(wrapMessages(issuerChat, ""))
	}
	s.open = false
	d := s.frame("content_block_stop")
	d.int("index", int64(s.index))
	s.done(d)
	s.index++
}

func (s *messagesSink) signature(sig string) {
	s.signed = true
	d := s.frame("content_block_delta")
	d.int("index", int64(s.index))
	d.open("delta", '{')
	d.str("type", "signature_delta")
	d.str("signature", sig)
	d.close('}')
	s.done(d)
}

func startText(d *doc)     { d.str("type", "text"); d.str("text", "") }
func startThinking(d *doc) { d.str("type", "thinking"); d.str("thinking", ""); d.str("signature", "") }

// delta is the event of every piece, so it is put together by hand.
func (s *messagesSink) delta(kind, text string) {
	s.out = append(s.out, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	s.out = strconv.AppendInt(s.out, int64(s.index), 10)
	s.out = append(append(s.out, `,"delta":{"type":"`...), kind...)
	s.out = append(append(s.out, text...), "\"}}\n\n"...)
}

func (s *messagesSink) event(e *event) {
	if e.kind == evUsage {
		s.usage = e.usage
	}
	// The usage of a stream's first events belongs into message_start.
	if e.kind != evFail && e.kind != evStart && e.kind != evUsage {
		s.begin(e)
	}
	switch e.kind {
	case evStart:
		s.begin(e)
	case evText, evRefusal:
		if !s.open {
			s.start(evText, startText)
		}
		s.delta(`text_delta","text":"`, e.text)
	case evThinking:
		if !s.open {
			s.start(evThinking, startThinking)
		}
		if e.text != "" {
			s.delta(`thinking_delta","thinking":"`, e.text)
		}
	case evSignature:
		if !s.open {
			s.start(evThinking, startThinking)
		}
		if s.kind == evThinking {
			s.signature(wrapMessages(e.issuer, e.sig))
		}
	case evRedacted:
		s.stop()
		s.start(evRedacted, func(d *doc) { d.str("type", "redacted_thinking"); d.str("data", wrapMessages(e.issuer, e.sig)) })
		s.stop()
	case evTool:
		if e.sig != "" {
			s.start(evThinking, startThinking)
			s.signature(wrapMessages(e.issuer, e.sig))
			s.stop()
		}
		s.calls = true
		id := e.id
		if id == "" {
			id = s.opt.callID(s.index)
		}
		s.start(evTool, func(d *doc) {
			d.str("type", "tool_use")
			d.str("id", messagesID(id))
			d.str("name", e.name)
			d.raw("input", "{}")
		})
	case evArgs:
		s.delta(`input_json_delta","partial_json":"`, e.text)
	case evCite:
		if s.open && s.kind == evText {
			d := s.frame("content_block_delta")
			d.int("index", int64(s.index))
			d.open("delta", '{')
			d.str("type", "citations_delta")
			d.key("citation")
			writeMessagesCite(d, e.cite)
			d.close('}')
			s.done(d)
		}
	case evClose:
		s.stop()
	case evFinish:
		s.finish, s.stopSeq, s.explain = e.finish, string([]byte(e.stopSeq)), string([]byte(e.explain))
	case evEnd:
		s.stop()
		f := settle(s.finish, s.calls)
		d := s.frame("message_delta")
		d.open("delta", '{')
		d.str("stop_reason", stopReason(f))
		if f == finishSequence && s.stopSeq != "" {
			d.str("stop_sequence", s.stopSeq)
		} else {
			d.null("stop_sequence")
		}
		writeStopDetails(d, f, s.explain)
		d.close('}')
		d.key("usage")
		writeMessagesUsage(d, &s.usage)
		s.done(d)
		s.done(s.frame("message_stop"))
	case evFail:
		s.out = appendMessagesFailure(s.out, e.failure)
	}
}

// appendMessagesFailure ends a stream with an error event.
func appendMessagesFailure(out []byte, e *apierr.Error) []byte {
	d := doc{b: append(out, "event: error\ndata: "...)}
	d.open("", '{')
	d.str("type", "error")
	d.open("error", '{')
	d.str("type", apierr.MessagesType(e.Status))
	d.str("message", e.Message)
	d.close('}')
	d.close('}')
	return append(d.b, "\n\n"...)
}
