package llm

import "weir/pkg/wire/apierr"

// responsesSink writes the events of a Responses stream. What it is given
// comes from a sequencer. Each block is an item of the output; the texts of
// the done events are kept, escaped.
type responsesSink struct {
	out     []byte
	opt     *Options
	began   bool
	id      string
	model   string
	seq     int64
	items   [][]byte // finished items
	open    bool
	kind    eventKind // evText, evRefusal, evThinking, evTool
	call    event     // the open tool call
	thought block     // signature of the open thought
	text    []byte
	cites   []citation
	probs   []byte // of the text that comes next, see contentProbs
	all     []byte // of the open text so far
	cut     bool   // all would be too long
	finish  finish
	usage   Usage
}

func newResponsesSink(opt *Options) streamSink { return &responsesSink{opt: opt} }

func (s *responsesSink) buffer() *[]byte { return &s.out }

// frame opens an event.
func (s *responsesSink) frame(name string) *doc {
	s.out = append(append(append(s.out, "event: "...), name...), "\ndata: {\"type\":\""...)
	d := &doc{b: append(append(s.out, name...), '"')}
	d.int("sequence_number", s.seq)
	s.seq++
	return d
}

func (s *responsesSink) done(d *doc) { s.out = append(d.b, "}\n\n"...) }

func (s *responsesSink) response(name, status string, f finish, failure *apierr.Error) {
	d := s.frame(name)
	d.key("response")
	responseHead(d, s.id, s.model, status, failure, s.opt)
	d.open("output", '[')
	if status != "in_progress" {
		for _, item := range s.items {
			d.raw("", string(item))
		}
	}
	d.close(']')
	responseTail(d, f, &s.usage, "")
	s.done(d)
}

func (s *responsesSink) begin(e *event) {
	if s.began {
		return
	}
	s.began = true
	id, model := "", ""
	if e.kind == evStart {
		id, model = string([]byte(e.id)), string([]byte(e.name))
	}
	s.id, s.model = s.opt.made("resp_", id), s.opt.shown(model)
	s.response("response.created", "in_progress", finishStop, nil)
	s.response("response.in_progress", "in_progress", finishStop, nil)
}

func (s *responsesSink) index() int64 { return int64(len(s.items)) }

func (s *responsesSink) itemID() string {
	prefix := "msg_"
	switch s.kind {
	case evThinking:
		prefix = "rs_"
	case evTool:
		prefix = callPrefix(&s.call)
	}
	return itemID(s.opt, prefix, len(s.items))
}

// place writes the fields that tell where a piece belongs.
func (s *responsesSink) place(d *doc, part string) {
	d.str("item_id", s.itemID())
	d.int("output_index", s.index())
	if part != "" {
		d.int(part, 0)
	}
}

// added begins an item.
func (s *responsesSink) added(kind eventKind) {
	s.open, s.kind, s.text, s.cites, s.all = true, kind, s.text[:0], nil, s.all[:0]
	s.cut = false
	d := s.frame("response.output_item.added")
	d.int("output_index", s.index())
	d.key("item")
	s.item(d, "in_progress")
	s.done(d)
	switch kind {
	case evText, evRefusal:
		d := s.frame("response.content_part.added")
		s.place(d, "content_index")
		d.key("part")
		s.part(d, "")
		s.done(d)
	case evThinking:
		d := s.frame("response.reasoning_summary_part.added")
		s.place(d, "summary_index")
		d.raw("part", `{"type":"summary_text","text":""}`)
		s.done(d)
	}
}

// part writes the part of a message.
func (s *responsesSink) part(d *doc, text string) {
	d.b = append(d.b, '{')
	if s.kind == evRefusal {
		d.str("type", "refusal")
		d.esc("refusal", text)
	} else {
		d.str("type", "output_text")
		d.esc("text", text)
		d.open("annotations", '[')
		for _, c := range s.cites {
			writeResponsesCite(d, c)
		}
		d.close(']')
		writeProbs(d, s.all)
	}
	d.close('}')
}

// item writes the open item as it is so far.
func (s *responsesSink) item(d *doc, status string) {
	whole := status != "in_progress"
	text := ""
	if whole {
		text = string(s.text)
	}
	switch s.kind {
	case evThinking:
		var b *block
		if whole {
			b = &s.thought
		}
		writeReasoningItem(d, s.itemID(), text, b)
	case evTool:
		writeCallItem(d, s.itemID(), &s.call, text, status)
	default:
		d.b = append(d.b, '{')
		d.str("id", s.itemID())
		d.str("type", "message")
		d.str("status", status)
		d.str("role", "assistant")
		d.open("content", '[')
		if whole {
			d.key("")
			s.part(d, text)
		}
		d.close(']')
		d.close('}')
	}
}

// stop ends the open item with its done events.
func (s *responsesSink) stop() {
	if !s.open {
		return
	}
	text := string(s.text)
	switch s.kind {
	case evText, evRefusal:
		name, field := "response.output_text.done", "text"
		if s.kind == evRefusal {
			name, field = "response.refusal.done", "refusal"
		}
		d := s.frame(name)
		s.place(d, "content_index")
		d.esc(field, text)
		if s.kind == evText {
			writeProbs(d, s.all)
		}
		s.done(d)
		d = s.frame("response.content_part.done")
		s.place(d, "content_index")
		d.key("part")
		s.part(d, text)
		s.done(d)
	case evThinking:
		d := s.frame("response.reasoning_summary_text.done")
		s.place(d, "summary_index")
		d.esc("text", text)
		s.done(d)
		d = s.frame("response.reasoning_summary_part.done")
		s.place(d, "summary_index")
		d.open("part", '{')
		d.str("type", "summary_text")
		d.esc("text", text)
		d.close('}')
		s.done(d)
	case evTool:
		if s.call.built != 0 {
			break
		}
		name, field := "response.function_call_arguments.done", "arguments"
		if s.call.custom {
			name, field = "response.custom_tool_call_input.done", "input"
		} else if text == "" {
			text = "{}"
		}
		d := s.frame(name)
		s.place(d, "")
		d.esc(field, text)
		s.done(d)
	}
	d := s.frame("response.output_item.done")
	d.int("output_index", s.index())
	d.key("item")
	start := len(d.b)
	s.item(d, "completed")
	item := append([]byte(nil), d.b[start:]...)
	s.done(d)
	s.items = append(s.items, item)
	s.open, s.thought = false, block{}
}

// piece writes a delta and remembers its text.
func (s *responsesSink) piece(name, part, text string) {
	s.text = append(s.text, text...)
	d := s.frame(name)
	s.place(d, part)
	d.esc("delta", text)
	if s.kind == evText {
		writeProbs(d, s.probs)
		if s.cut = s.cut || len(s.all)+len(s.probs) > maxProbs; s.cut {
			s.all = s.all[:0]
		} else {
			s.all = addProbs(s.all, view(s.probs))
		}
		s.probs = s.probs[:0]
	}
	s.done(d)
}

// maxProbs is how many bytes of a text's token chances are kept, to be told
// again at its end. Of a longer text the pieces alone tell them.
const maxProbs = 4 << 20

func addProbs(to []byte, more string) []byte {
	if len(to) > 0 && more != "" {
		to = append(to, ',')
	}
	return append(to, more...)
}

func writeProbs(d *doc, list []byte) {
	d.key("logprobs")
	d.b = append(append(append(d.b, '['), list...), ']')
}

func (s *responsesSink) event(e *event) {
	if e.kind != evFail && e.kind != evUsage {
		s.begin(e)
	}
	switch e.kind {
	case evUsage:
		s.usage = e.usage
	case evText, evRefusal:
		if !s.open {
			s.added(e.kind)
		}
		if e.kind == evText {
			s.piece("response.output_text.delta", "content_index", e.text)
		} else {
			s.piece("response.refusal.delta", "content_index", e.text)
		}
	case evThinking:
		if !s.open {
			s.added(evThinking)
		}
		if e.text != "" {
			s.piece("response.reasoning_summary_text.delta", "summary_index", e.text)
		}
	case evSignature:
		if !s.open {
			s.added(evThinking)
		}
		s.thought.sig, s.thought.issuer = string([]byte(e.sig)), string([]byte(e.issuer))
	case evRedacted:
		s.signed(e, true)
	case evTool:
		if e.sig != "" {
			s.signed(e, false)
		}
		s.call = event{id: string([]byte(e.id)), name: string([]byte(e.name)), space: string([]byte(e.space)), custom: e.custom, built: e.built}
		if s.call.id == "" {
			s.call.id = s.opt.callID(len(s.items))
		}
		s.added(evTool)
	case evArgs:
		if s.call.built != 0 { // the item is sent whole
			s.text = append(s.text, e.text...)
			return
		}
		name := "response.function_call_arguments.delta"
		if s.call.custom {
			name = "response.custom_tool_call_input.delta"
		}
		s.piece(name, "", e.text)
	case evLogprobs:
		if len(s.probs) < maxProbs { // more would be of no text
			s.probs = addProbs(s.probs, contentProbs(e.sig))
		}
	case evCite:
		if s.open && s.kind == evText {
			d := s.frame("response.output_text.annotation.added")
			s.place(d, "content_index")
			d.int("annotation_index", int64(len(s.cites)))
			d.key("annotation")
			s.cites = append(s.cites, e.cite.own())
			writeResponsesCite(d, e.cite)
			s.done(d)
		}
	case evImage:
		s.image(e.sig)
	case evClose:
		s.stop()
	case evFinish:
		s.finish = e.finish
		if e.explain != "" {
			s.added(evRefusal)
			s.piece("response.refusal.delta", "content_index", escape(e.explain))
			s.stop()
		}
	case evEnd:
		s.stop()
		status := statusName(s.finish)
		s.response("response."+status, status, s.finish, nil)
	case evFail:
		s.fail(e.failure)
	}
}

// signed writes an item that is nothing but a signature.
func (s *responsesSink) signed(e *event, redacted bool) {
	s.stop()
	s.open, s.kind, s.text = true, evThinking, s.text[:0]
	s.thought = block{sig: string([]byte(e.sig)), issuer: string([]byte(e.issuer)), redacted: redacted}
	for _, name := range [...]string{"response.output_item.added", "response.output_item.done"} {
		d := s.frame(name)
		d.int("output_index", s.index())
		d.key("item")
		start := len(d.b)
		s.item(d, "completed")
		item := append([]byte(nil), d.b[start:]...)
		s.done(d)
		if name == "response.output_item.done" {
			s.items = append(s.items, item)
		}
	}
	s.open, s.thought = false, block{}
}

// image writes an item that is a picture.
func (s *responsesSink) image(uri string) {
	s.stop()
	id := itemID(s.opt, "ig_", len(s.items))
	for _, name := range [...]string{"response.output_item.added", "response.image_generation_call.completed", "response.output_item.done"} {
		d := s.frame(name)
		d.int("output_index", s.index())
		status := "completed"
		switch name {
		case "response.image_generation_call.completed":
			d.str("item_id", id)
			s.done(d)
			continue
		case "response.output_item.added":
			status = "in_progress"
		}
		d.key("item")
		start := len(d.b)
		writeImageItem(d, id, uri, status)
		item := append([]byte(nil), d.b[start:]...)
		s.done(d)
		if status == "completed" {
			s.items = append(s.items, item)
		}
	}
}

// fail writes an error event, and the failed response when one had begun.
func (s *responsesSink) fail(e *apierr.Error) {
	d := s.frame("error")
	if e.Code != "" {
		d.str("code", e.Code)
	} else {
		d.null("code")
	}
	d.str("message", e.Message)
	if e.Param != "" {
		d.str("param", e.Param)
	} else {
		d.null("param")
	}
	s.done(d)
	if s.began {
		s.response("response.failed", "failed", finishStop, e)
	}
}

// appendResponsesFailure ends a stream with an error event.
func appendResponsesFailure(out []byte, e *apierr.Error) []byte {
	s := responsesSink{out: out, opt: &Options{}}
	s.fail(e)
	return s.out
}
