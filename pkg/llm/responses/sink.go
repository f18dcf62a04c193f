package responses

import (
	"slices"
	"strings"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// sink writes the events of a Responses stream. Its events come from a
// sequencer. Each block is an item of the output. The texts of the done events
// are stored, escaped.
type sink struct {
	out         []byte
	writer      ir.Writer // of the open event
	opt         *ir.Options
	began       bool
	id          string
	model       string
	seq         int64
	items       [][]byte // finished items
	openID      string   // of the item after idOf-1 finished ones
	idOf        int
	open        bool
	kind        ir.EventKind // EventText, EventRefusal, EventThinking or EventTool
	call        ir.Event     // the open tool call
	thought     ir.Block     // signature of the open thought
	text        []byte
	citations   []ir.Citation
	logprobs    []byte // of the next text, see contentLogprobs
	allLogprobs []byte // of the open text so far
	logprobsCut bool   // allLogprobs would be too long
	finish      ir.Finish
	usage       ir.Usage
}

// NewSink returns the sink of a client's stream.
func NewSink(opt *ir.Options) ir.StreamSink { return &sink{opt: opt} }

func (s *sink) Buffer() *[]byte { return &s.out }

// frame opens an event.
func (s *sink) frame(name string) *ir.Writer {
	s.out = append(append(append(s.out, "event: "...), name...), "\ndata: {\"type\":\""...)
	s.writer = ir.Writer{Buf: append(append(s.out, name...), '"')}
	s.writer.Int("sequence_number", s.seq)
	s.seq++
	return &s.writer
}

func (s *sink) done(d *ir.Writer) {
	s.out = append(d.Buf, "}\n\n"...)
	d.Buf = nil
}

func (s *sink) response(name, status string, f ir.Finish, failure *apierr.Error) {
	d := s.frame(name)
	d.Key("response")
	openResponse(d, s.id, s.model, status, failure, s.opt)
	d.Open("output", '[')
	if status != "in_progress" {
		for _, item := range s.items {
			d.Raw("", string(item))
		}
	}
	d.Close(']')
	closeResponse(d, f, &s.usage, "")
	s.done(d)
}

func (s *sink) begin(e *ir.Event) {
	if s.began {
		return
	}
	s.began = true
	id, model := "", ""
	if e.Kind == ir.EventStart {
		id, model = string([]byte(e.ID)), string([]byte(e.Name))
	}
	s.id, s.model = s.opt.AnswerID("resp_", id), s.opt.ModelOr(model)
	s.response("response.created", "in_progress", ir.FinishStop, nil)
	s.response("response.in_progress", "in_progress", ir.FinishStop, nil)
}

func (s *sink) index() int64 { return int64(len(s.items)) }

func (s *sink) itemID() string {
	prefix := "msg_"
	switch s.kind {
	case ir.EventThinking:
		prefix = "rs_"
	case ir.EventTool:
		prefix = callPrefix(&s.call)
	}
	if n := len(s.items) + 1; s.idOf != n || !strings.HasPrefix(s.openID, prefix) {
		s.idOf, s.openID = n, itemID(s.opt, prefix, n-1)
	}
	return s.openID
}

// place writes the fields that locate a delta.
func (s *sink) place(d *ir.Writer, part string) {
	d.Str("item_id", s.itemID())
	d.Int("output_index", s.index())
	if part != "" {
		d.Int(part, 0)
	}
}

// added begins an item.
func (s *sink) added(kind ir.EventKind) {
	s.open, s.kind, s.text, s.citations, s.allLogprobs = true, kind, s.text[:0], nil, s.allLogprobs[:0]
	s.logprobsCut = false
	d := s.frame("response.output_item.added")
	d.Int("output_index", s.index())
	d.Key("item")
	s.item(d, "in_progress")
	s.done(d)
	switch kind {
	case ir.EventText, ir.EventRefusal:
		d := s.frame("response.content_part.added")
		s.place(d, "content_index")
		d.Key("part")
		s.part(d, "")
		s.done(d)
	case ir.EventThinking:
		d := s.frame("response.reasoning_summary_part.added")
		s.place(d, "summary_index")
		d.Raw("part", `{"type":"summary_text","text":""}`)
		s.done(d)
	}
}

// part writes the part of a message.
func (s *sink) part(d *ir.Writer, text string) {
	d.Buf = append(d.Buf, '{')
	if s.kind == ir.EventRefusal {
		d.Str("type", "refusal")
		d.Escaped("refusal", text)
	} else {
		d.Str("type", "output_text")
		d.Escaped("text", text)
		d.Open("annotations", '[')
		for _, c := range s.citations {
			writeCitation(d, c)
		}
		d.Close(']')
		writeLogprobs(d, s.allLogprobs)
	}
	d.Close('}')
}

// item writes the open item in its current state.
func (s *sink) item(d *ir.Writer, status string) {
	whole := status != "in_progress"
	text := ""
	if whole {
		text = string(s.text)
	}
	switch s.kind {
	case ir.EventThinking:
		var b *ir.Block
		if whole {
			b = &s.thought
		}
		writeReasoningItem(d, s.itemID(), text, b)
	case ir.EventTool:
		writeCallItem(d, s.itemID(), &s.call, text, status)
	default:
		d.Buf = append(d.Buf, '{')
		d.Str("id", s.itemID())
		d.Str("type", "message")
		d.Str("status", status)
		d.Str("role", "assistant")
		d.Open("content", '[')
		if whole {
			d.Key("")
			s.part(d, text)
		}
		d.Close(']')
		d.Close('}')
	}
}

// stop ends the open item with its done events.
func (s *sink) stop() {
	if !s.open {
		return
	}
	text := string(s.text)
	switch s.kind {
	case ir.EventText, ir.EventRefusal:
		name, field := "response.output_text.done", "text"
		if s.kind == ir.EventRefusal {
			name, field = "response.refusal.done", "refusal"
		}
		d := s.frame(name)
		s.place(d, "content_index")
		d.Escaped(field, text)
		if s.kind == ir.EventText {
			writeLogprobs(d, s.allLogprobs)
		}
		s.done(d)
		d = s.frame("response.content_part.done")
		s.place(d, "content_index")
		d.Key("part")
		s.part(d, text)
		s.done(d)
	case ir.EventThinking:
		d := s.frame("response.reasoning_summary_text.done")
		s.place(d, "summary_index")
		d.Escaped("text", text)
		s.done(d)
		d = s.frame("response.reasoning_summary_part.done")
		s.place(d, "summary_index")
		d.Open("part", '{')
		d.Str("type", "summary_text")
		d.Escaped("text", text)
		d.Close('}')
		s.done(d)
	case ir.EventTool:
		if s.call.Builtin != 0 {
			break
		}
		name, field := "response.function_call_arguments.done", "arguments"
		if s.call.Custom {
			name, field = "response.custom_tool_call_input.done", "input"
		} else if text == "" {
			text = "{}"
		}
		d := s.frame(name)
		s.place(d, "")
		d.Escaped(field, text)
		s.done(d)
	}
	s.items = append(s.items, s.whole("response.output_item.done"))
	s.open, s.thought = false, ir.Block{}
}

// whole writes an event of the open item as it is completed, and returns the item.
func (s *sink) whole(event string) []byte {
	d := s.frame(event)
	d.Int("output_index", s.index())
	d.Key("item")
	start := len(d.Buf)
	s.item(d, "completed")
	item := slices.Clone(d.Buf[start:])
	s.done(d)
	return item
}

// piece writes a delta and stores its text.
func (s *sink) piece(name, part, text string) {
	s.text = append(s.text, text...)
	d := s.frame(name)
	s.place(d, part)
	d.Escaped("delta", text)
	if s.kind == ir.EventText {
		writeLogprobs(d, s.logprobs)
		if s.logprobsCut = s.logprobsCut || len(s.allLogprobs)+len(s.logprobs) > maxLogprobs; s.logprobsCut {
			s.allLogprobs = s.allLogprobs[:0]
		} else {
			s.allLogprobs = appendLogprobs(s.allLogprobs, ir.View(s.logprobs))
		}
		s.logprobs = s.logprobs[:0]
	}
	s.done(d)
}

// maxLogprobs is the maximum number of bytes of a text's logprobs that are
// repeated at its end. Those of a longer text are only in its deltas.
const maxLogprobs = 4 << 20

func appendLogprobs(to []byte, more string) []byte {
	if len(to) > 0 && more != "" {
		to = append(to, ',')
	}
	return append(to, more...)
}

func writeLogprobs(d *ir.Writer, list []byte) {
	d.Key("logprobs")
	d.Buf = append(append(append(d.Buf, '['), list...), ']')
}

func (s *sink) Event(e *ir.Event) {
	if e.Kind != ir.EventFail && e.Kind != ir.EventUsage {
		s.begin(e)
	}
	if s.opt.Compacts() && e.Kind != ir.EventUsage && e.Kind != ir.EventFail {
		s.compacted(e)
		return
	}
	switch e.Kind {
	case ir.EventUsage:
		s.usage = e.Usage
	case ir.EventText, ir.EventRefusal:
		if !s.open {
			s.added(e.Kind)
		}
		if e.Kind == ir.EventText {
			s.piece("response.output_text.delta", "content_index", e.Text)
		} else {
			s.piece("response.refusal.delta", "content_index", e.Text)
		}
	case ir.EventThinking:
		if !s.open {
			s.added(ir.EventThinking)
		}
		if e.Text != "" {
			s.piece("response.reasoning_summary_text.delta", "summary_index", e.Text)
		}
	case ir.EventSignature:
		if !s.open {
			s.added(ir.EventThinking)
		}
		s.thought.Signature, s.thought.Issuer = string([]byte(e.Signature)), string([]byte(e.Issuer))
	case ir.EventRedacted:
		s.signed(e, true)
	case ir.EventTool:
		if e.Signature != "" {
			s.signed(e, false)
		}
		s.call = ir.Event{ID: string([]byte(e.ID)), Name: string([]byte(e.Name)), Namespace: string([]byte(e.Namespace)),
			Custom: e.Custom, Builtin: e.Builtin}
		if s.call.ID == "" {
			s.call.ID = s.opt.CallID(len(s.items))
		}
		s.added(ir.EventTool)
	case ir.EventArguments:
		if s.call.Builtin != 0 { // the item is sent when it is complete
			s.text = append(s.text, e.Text...)
			return
		}
		name := "response.function_call_arguments.delta"
		if s.call.Custom {
			name = "response.custom_tool_call_input.delta"
		}
		s.piece(name, "", e.Text)
	case ir.EventLogprobs:
		if len(s.logprobs) < maxLogprobs { // more have no text
			s.logprobs = appendLogprobs(s.logprobs, contentLogprobs(e.Signature))
		}
	case ir.EventCitation:
		if s.open && s.kind == ir.EventText {
			d := s.frame("response.output_text.annotation.added")
			s.place(d, "content_index")
			d.Int("annotation_index", int64(len(s.citations)))
			d.Key("annotation")
			s.citations = append(s.citations, e.Citation.Clone())
			writeCitation(d, e.Citation)
			s.done(d)
		}
	case ir.EventImage:
		s.image(e.Signature)
	case ir.EventClose:
		s.stop()
	case ir.EventFinish:
		s.finish = e.Finish
		if e.Explanation != "" {
			s.added(ir.EventRefusal)
			s.piece("response.refusal.delta", "content_index", ir.Escape(e.Explanation))
			s.stop()
		}
	case ir.EventEnd:
		s.stop()
		status := statusName(s.finish)
		s.response("response."+status, status, s.finish, nil)
	case ir.EventFail:
		s.fail(e.Failure)
	}
}

// signed writes an item that is only a signature.
func (s *sink) signed(e *ir.Event, redacted bool) {
	s.stop()
	s.open, s.kind, s.text = true, ir.EventThinking, s.text[:0]
	s.thought = ir.Block{Signature: string([]byte(e.Signature)), Issuer: string([]byte(e.Issuer)), Redacted: redacted}
	s.whole("response.output_item.added")
	s.items = append(s.items, s.whole("response.output_item.done"))
	s.open, s.thought = false, ir.Block{}
}

// image writes an item that is an image.
func (s *sink) image(uri string) {
	s.stop()
	id := itemID(s.opt, "ig_", len(s.items))
	for _, name := range [...]string{"response.output_item.added", "response.image_generation_call.completed",
		"response.output_item.done"} {
		d := s.frame(name)
		d.Int("output_index", s.index())
		status := "completed"
		switch name {
		case "response.image_generation_call.completed":
			d.Str("item_id", id)
			s.done(d)
			continue
		case "response.output_item.added":
			status = "in_progress"
		}
		d.Key("item")
		start := len(d.Buf)
		writeImageItem(d, id, uri, status)
		item := append([]byte(nil), d.Buf[start:]...)
		s.done(d)
		if status == "completed" {
			s.items = append(s.items, item)
		}
	}
}

// fail writes an error event, and the failed response if one has begun. The event
// has the error twice: as OpenAI documents it, and in an object, as OpenAI sends it
// and the AI SDK reads it.
func (s *sink) fail(e *apierr.Error) {
	d := s.frame("error")
	d.StrOrNull("code", e.Code)
	d.Str("message", ir.OpenAIText(e))
	d.StrOrNull("param", e.Param)
	d.Open("error", '{')
	ir.WriteOpenAIError(d, e)
	d.Close('}')
	s.done(d)
	if s.began {
		s.response("response.failed", "failed", ir.FinishStop, e)
	}
}

// AppendFailure ends a stream with an error event.
func AppendFailure(out []byte, e *apierr.Error) []byte {
	s := sink{out: out, opt: &ir.Options{}}
	s.fail(e)
	return s.out
}
