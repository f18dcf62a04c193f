package messages

import (
	"strconv"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// sink writes the events of a Messages stream. Its events come from a
// sequencer.
type sink struct {
	out          []byte
	writer       ir.Writer // of the open event
	opt          *ir.Options
	began        bool
	open         bool
	index        int // of the open block, or of the next
	kind         ir.EventKind
	signed       bool
	calls        bool
	finish       ir.Finish
	stopSequence string
	explanation  string
	usage        ir.Usage
}

// NewSink returns the sink of a client's stream.
func NewSink(opt *ir.Options) ir.StreamSink { return &sink{opt: opt} }

func (s *sink) Buffer() *[]byte { return &s.out }

func (s *sink) frame(name string) *ir.Writer {
	s.out = append(append(append(s.out, "event: "...), name...), "\ndata: {\"type\":\""...)
	s.out = append(append(s.out, name...), '"')
	s.writer = ir.Writer{Buf: s.out}
	return &s.writer
}

func (s *sink) done(d *ir.Writer) {
	s.out = append(d.Buf, "}\n\n"...)
	d.Buf = nil
}

func (s *sink) begin(e *ir.Event) {
	if s.began {
		return
	}
	s.began = true
	id, model := "", ""
	if e.Kind == ir.EventStart {
		id, model = e.ID, e.Name
	}
	d := s.frame("message_start")
	d.Open("message", '{')
	d.Str("id", s.opt.AnswerID("msg_", id))
	d.Str("type", "message")
	d.Str("role", "assistant")
	d.Str("model", s.opt.ModelOr(model))
	d.Raw("content", "[]")
	d.Null("stop_reason")
	d.Null("stop_sequence")
	d.Null("stop_details")
	d.Key("usage")
	writeUsage(d, &s.usage)
	d.Close('}')
	s.done(d)
	s.out = append(s.out, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
}

func (s *sink) start(kind ir.EventKind, block func(d *ir.Writer)) {
	s.open, s.kind, s.signed = true, kind, false
	d := s.frame("content_block_start")
	d.Int("index", int64(s.index))
	d.Open("content_block", '{')
	block(d)
	d.Close('}')
	s.done(d)
}

func (s *sink) stop() {
	if !s.open {
		return
	}
	if s.kind == ir.EventThinking && !s.signed {
		// Unsigned thinking is marked, because the vendor would take it for its
		// own when the client sends it back.
		s.signature(wrapSignature(ir.IssuerChat, ""))
	}
	s.open = false
	d := s.frame("content_block_stop")
	d.Int("index", int64(s.index))
	s.done(d)
	s.index++
}

func (s *sink) signature(sig string) {
	s.signed = true
	d := s.frame("content_block_delta")
	d.Int("index", int64(s.index))
	d.Open("delta", '{')
	d.Str("type", "signature_delta")
	d.Str("signature", sig)
	d.Close('}')
	s.done(d)
}

func startText(d *ir.Writer) { d.Str("type", "text"); d.Str("text", "") }

func startThinking(d *ir.Writer) {
	d.Str("type", "thinking")
	d.Str("thinking", "")
	d.Str("signature", "")
}

// delta writes the event of every delta, so it is put together by hand.
func (s *sink) delta(kind, text string) {
	s.out = append(s.out, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	s.out = strconv.AppendInt(s.out, int64(s.index), 10)
	s.out = append(append(s.out, `,"delta":{"type":"`...), kind...)
	s.out = append(append(s.out, text...), "\"}}\n\n"...)
}

func (s *sink) Event(e *ir.Event) {
	if e.Kind == ir.EventUsage {
		s.usage = e.Usage
	}
	// The usage of a stream's first events belongs in message_start.
	if e.Kind != ir.EventFail && e.Kind != ir.EventStart && e.Kind != ir.EventUsage {
		s.begin(e)
	}
	switch e.Kind {
	case ir.EventStart:
		s.begin(e)
	case ir.EventText, ir.EventRefusal:
		if !s.open {
			s.start(ir.EventText, startText)
		}
		s.delta(`text_delta","text":"`, e.Text)
	case ir.EventThinking:
		if !s.open {
			s.start(ir.EventThinking, startThinking)
		}
		if e.Text != "" {
			s.delta(`thinking_delta","thinking":"`, e.Text)
		}
	case ir.EventSignature:
		if !s.open {
			s.start(ir.EventThinking, startThinking)
		}
		if s.kind == ir.EventThinking {
			s.signature(wrapSignature(e.Issuer, e.Signature))
		}
	case ir.EventRedacted:
		s.stop()
		s.start(ir.EventRedacted, func(d *ir.Writer) {
			d.Str("type", "redacted_thinking")
			d.Str("data", wrapSignature(e.Issuer, e.Signature))
		})
		s.stop()
	case ir.EventTool:
		if e.Signature != "" {
			s.start(ir.EventThinking, startThinking)
			s.signature(wrapSignature(e.Issuer, e.Signature))
			s.stop()
		}
		s.calls = true
		id := e.ID
		if id == "" {
			id = s.opt.CallID(s.index)
		}
		s.start(ir.EventTool, func(d *ir.Writer) {
			d.Str("type", "tool_use")
			d.Str("id", ir.SafeCallID(id))
			d.Str("name", e.Name)
			d.Raw("input", "{}")
		})
	case ir.EventArguments:
		s.delta(`input_json_delta","partial_json":"`, e.Text)
	case ir.EventCitation:
		if s.open && s.kind == ir.EventText {
			d := s.frame("content_block_delta")
			d.Int("index", int64(s.index))
			d.Open("delta", '{')
			d.Str("type", "citations_delta")
			d.Key("citation")
			writeCitation(d, e.Citation)
			d.Close('}')
			s.done(d)
		}
	case ir.EventClose:
		s.stop()
	case ir.EventFinish:
		s.finish, s.stopSequence, s.explanation = e.Finish, string([]byte(e.StopSequence)), string([]byte(e.Explanation))
	case ir.EventEnd:
		s.stop()
		f := ir.SettleFinish(s.finish, s.calls)
		d := s.frame("message_delta")
		d.Open("delta", '{')
		d.Str("stop_reason", stopReason(f))
		if f == ir.FinishSequence && s.stopSequence != "" {
			d.Str("stop_sequence", s.stopSequence)
		} else {
			d.Null("stop_sequence")
		}
		writeStopDetails(d, f, s.explanation)
		d.Close('}')
		d.Key("usage")
		writeUsage(d, &s.usage)
		s.done(d)
		s.done(s.frame("message_stop"))
	case ir.EventFail:
		s.out = AppendFailure(s.out, e.Failure)
	}
}

// AppendFailure ends a stream with an error event.
func AppendFailure(out []byte, e *apierr.Error) []byte {
	d := ir.Writer{Buf: append(out, "event: error\ndata: "...)}
	d.Open("", '{')
	d.Str("type", "error")
	d.Open("error", '{')
	d.Str("type", apierr.MessagesType(e.Status))
	d.Str("message", ir.MessagesText(e))
	d.Close('}')
	d.Close('}')
	return append(d.Buf, "\n\n"...)
}
