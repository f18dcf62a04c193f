package gemini

import (
	"strings"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// sink writes the events of a client's stream: each is a GenerateContentResponse
// with the next parts. The last one has the finish reason and the usage. Its events
// come from a sequencer, so that the arguments of a call are in a row.
type sink struct {
	out       []byte
	writer    ir.Writer // of the open event
	opt       *ir.Options
	id, model string

	thought ir.Block // the last thinking block since the last call
	thinks  thinking
	text    []byte // of the thought, escaped

	call   ir.Block
	args   []byte // of the call, escaped
	isCall bool   // the open block is a call
	isText bool   // the open block is a text
	calls  int

	logprobs    []string // of the next event
	sources     grounded
	finish      ir.Finish
	explanation string
	usage       ir.Usage
}

// thinking is the state of a thinking block.
type thinking uint8

const (
	noThought thinking = iota
	openThought
	wholeThought   // its signature is not written yet
	writtenThought // its signature is written
)

// maxLogprobs is the maximum number of an upstream's events with logprobs that wait for
// the next one with a part.
const maxLogprobs = 256

// NewSink returns the sink of a client's stream.
func NewSink(opt *ir.Options) ir.StreamSink { return &sink{opt: opt} }

func (s *sink) Buffer() *[]byte { return &s.out }

// part begins an event with a part.
func (s *sink) part() *ir.Writer {
	s.writer = ir.Writer{Buf: append(s.out, `data: {"candidates":[{"content":{"parts":[`...)}
	return &s.writer
}

// done ends the event of a part. last is whether it is the last of the answer.
func (s *sink) done(d *ir.Writer, last bool) {
	d.Buf = append(d.Buf, `],"role":"model"}`...)
	if last {
		d.Str("finishReason", finishReason(ir.SettleFinish(s.finish, s.calls > 0)))
		d.OptStr("finishMessage", s.explanation)
	}
	d.Int("index", 0)
	if last {
		s.sources.write(d)
	}
	if len(s.logprobs) > 0 {
		writeLogprobs(d, s.logprobs)
		s.logprobs = s.logprobs[:0]
	}
	d.Buf = append(d.Buf, "}]"...)
	if last {
		writeUsage(d, &s.usage)
	}
	d.Str("modelVersion", s.opt.ModelOr(s.model))
	d.Str("responseId", s.opt.AnswerID("", s.id))
	s.out = append(d.Buf, "}\n\n"...)
	d.Buf = nil
}

func (s *sink) Event(e *ir.Event) {
	from := len(s.out)
	s.event(e)
	s.out = escapeSeparators(s.out, from)
}

// escapeSeparators escapes U+2028 and U+2029 behind from, as Google does. npm:@google/generative-ai
// reads an event with a pattern whose dot matches neither.
func escapeSeparators(out []byte, from int) []byte {
	for i := from; i+2 < len(out); i++ {
		if out[i] != 0xE2 || out[i+1] != 0x80 || out[i+2]|1 != 0xA9 {
			continue
		}
		fresh := append(make([]byte, 0, len(out)+64), out[:i]...)
		for ; i < len(out); i++ {
			if i+2 < len(out) && out[i] == 0xE2 && out[i+1] == 0x80 && out[i+2]|1 == 0xA9 {
				fresh = append(fresh, `\u202`...)
				fresh = append(fresh, '8'+out[i+2]-0xA8)
				i += 2
			} else {
				fresh = append(fresh, out[i])
			}
		}
		return fresh
	}
	return out
}

func (s *sink) event(e *ir.Event) {
	switch e.Kind {
	case ir.EventStart:
		s.id, s.model = strings.Clone(e.ID), strings.Clone(e.Name)
	case ir.EventText, ir.EventRefusal:
		s.flushThought()
		if !s.isText {
			s.isText = true
			s.sources.begin()
		}
		s.sources.add(ir.Unescape(e.Text))
		s.textPart(e.Text, false)
	case ir.EventThinking:
		s.think()
		if len(s.text)+len(e.Text) <= 2*maxThought {
			s.text = append(s.text, e.Text...)
		}
		if !s.opt.HideThoughts {
			s.textPart(e.Text, true)
		}
	case ir.EventSignature:
		s.think()
		s.thought.Signature, s.thought.Issuer = strings.Clone(e.Signature), strings.Clone(e.Issuer)
	case ir.EventRedacted:
		s.flushThought()
		s.text = s.text[:0]
		s.thought = ir.Block{Kind: ir.ThinkingBlock, Redacted: true, Signature: strings.Clone(e.Signature),
			Issuer: strings.Clone(e.Issuer)}
		s.thinks = wholeThought
	case ir.EventTool:
		if e.Signature != "" {
			s.flushThought()
		}
		s.call = ir.Block{Kind: ir.ToolCallBlock, ID: strings.Clone(e.ID), Name: strings.Clone(e.Name),
			Signature: strings.Clone(e.Signature), Issuer: strings.Clone(e.Issuer)}
		s.args, s.isCall = s.args[:0], true
	case ir.EventArguments:
		s.args = append(s.args, e.Text...)
	case ir.EventLogprobs:
		if len(s.logprobs) < maxLogprobs {
			s.logprobs = append(s.logprobs, strings.Clone(e.Signature))
		}
	case ir.EventCitation:
		s.sources.cite(e.Citation.Clone())
	case ir.EventImage:
		s.flushThought()
		var b ir.Block
		if b.SetSource("", e.Signature) == nil {
			d := s.part()
			writeMedia(d, &b)
			s.done(d, false)
		}
	case ir.EventClose:
		s.close()
	case ir.EventUsage:
		s.usage = e.Usage
	case ir.EventFinish:
		s.finish, s.explanation = e.Finish, strings.Clone(e.Explanation)
	case ir.EventEnd:
		s.flushThought()
		d := s.part()
		writeText(d, "")
		s.done(d, true)
	case ir.EventFail:
		s.out = AppendFailure(s.out, e.Failure)
	}
}

// textPart writes the event of every delta, so it is put together by hand.
func (s *sink) textPart(escaped string, thought bool) {
	if escaped == "" {
		return
	}
	d := s.part()
	d.Buf = append(append(append(d.Buf, `{"text":"`...), escaped...), '"')
	if thought {
		d.Buf = append(d.Buf, `,"thought":true`...)
	}
	d.Buf = append(d.Buf, '}')
	s.done(d, false)
}

// think begins a thought, or continues it.
func (s *sink) think() {
	if s.thinks != openThought {
		s.flushThought()
		s.thought, s.thinks, s.text = ir.Block{Kind: ir.ThinkingBlock}, openThought, s.text[:0]
	}
}

// flushThought writes the signature of a thought that no call follows at once.
func (s *sink) flushThought() {
	if s.thinks != openThought && s.thinks != wholeThought {
		return
	}
	s.thinks = writtenThought
	if !s.opt.HideThoughts {
		d := s.part()
		d.Buf = append(d.Buf, `{"text":"","thought":true`...)
		d.Str("thoughtSignature", encodeSignature(&s.thought, ""))
		d.Buf = append(d.Buf, '}')
		s.done(d, false)
	}
}

// close ends the open block. A call is written whole.
func (s *sink) close() {
	s.isText = false
	if s.thinks == openThought {
		s.thinks = wholeThought
	}
	if !s.isCall {
		return
	}
	s.isCall = false
	s.call.Arguments = ir.Unescape(ir.View(s.args))
	var before *ir.Block
	if s.thinks != noThought {
		before = &s.thought
		before.Text = ir.Unescape(string(s.text))
	}
	d := s.part()
	writeCall(d, &s.call, callSignature(&s.call, before, s.calls == 0))
	s.done(d, false)
	s.calls++
	s.thinks = noThought
}

// Heartbeat is an event with an empty text. A comment is no heartbeat for these clients:
// @google/generative-ai reads nothing behind one.
const Heartbeat = `data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"index":0}]}` + "\n\n"

// AppendFailure ends a stream with an error, as an event and then as a bare object. The
// event is what npm:@google/genai and readers of event streams take for an error;
// npm:@google/generative-ai reads it as an answer without candidates, and reports the
// object that is left at the end.
func AppendFailure(out []byte, e *apierr.Error) []byte {
	shown := *e
	shown.Message = ir.GeminiText(e)
	out = append(out, "data: "...)
	from := len(out)
	out = shown.AppendGemini(out)
	text := out[from:]
	out = append(out, "\n\n"...)
	return append(append(out, text...), '\n')
}
