package llm

import (
	"strconv"

	"weir/pkg/wire/apierr"
)

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

func startText(d *doc) { d.str("type", "text"); d.str("text", "") }

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
