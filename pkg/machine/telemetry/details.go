package telemetry

import (
	"strings"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/capture"
	"weir/pkg/wire/otlp"
	"weir/pkg/wire/tracecontext"
)

// detailsEvent is the event of the GenAI conventions that has what was asked and answered.
const detailsEvent = "gen_ai.client.inference.operation.details"

// Details returns the event with the bodies of a captured request, in the span of the attempt
// that answered. room is the number of bytes that its texts may have; if they are cut, the event
// has the attribute weir.bodies.cut.
func (f *Fold) Details(r *store.Request, doc *capture.Document, room int) otlp.Log {
	c := tracecontext.ForRequest(r.ID, r.TraceParent)
	n := len(f.attrs)
	f.caller(r)
	span := f.attempt(r, r.Attempts, r.ConnectionID, r.Provider, r.Model)
	if r.Finish != "" {
		f.add(otlp.List("gen_ai.response.finish_reasons", []string{r.Finish}))
	}
	w := words{room: room / 2, cut: doc.Request.Cut || doc.Answer.Cut}
	q, a := llm.Dialogue(r.Endpoint, doc.Request.Text, doc.Answer.Text)
	switch {
	case a != nil:
		f.answer(r, w.message("assistant", w.parts(a.Blocks)), a.FinishReason().Name())
	case !doc.Answer.Omitted:
		f.answer(r, w.whole("assistant", doc.Answer.Text), r.Finish)
	}
	w.room += room - room/2
	if q == nil {
		f.add(otlp.Maps("gen_ai.input.messages", [][]otlp.Attr{w.whole("user", doc.Request.Text)}))
	} else {
		f.asked(&w, q)
	}
	if w.cut {
		f.add(otlp.True("weir.bodies.cut"))
	}
	return otlp.Log{
		At: nano(r, r.LatencyMs), Level: 9, Name: detailsEvent, Body: r.Endpoint + " " + statusText(r.Status),
		Trace: c.Trace, Span: span.ID, Sample: c.Flags, Attrs: f.since(n),
	}
}

// answer adds the message of an answer, which ended for a reason.
func (f *Fold) answer(r *store.Request, message []otlp.Attr, finish string) {
	if r.HasFailed() || r.Left() {
		finish = cutReasons[0]
	}
	f.add(otlp.Maps("gen_ai.output.messages", [][]otlp.Attr{append(message, otlp.String("finish_reason", finish))}))
}

// asked adds the messages of a request.
func (f *Fold) asked(w *words, q *ir.Request) {
	lead := q.Lead()
	if system := q.SystemText(lead); system != "" {
		f.add(otlp.Maps("gen_ai.system_instructions", [][]otlp.Attr{w.part("text", "content", system)}))
	}
	var list [][]otlp.Attr
	for i := lead; i < len(q.Messages) && !w.full(); i++ {
		m := &q.Messages[i]
		role := [...]string{ir.RoleUser: "user", ir.RoleAssistant: "assistant", ir.RoleSystem: "system"}[m.Role]
		if len(m.Blocks) > 0 && m.Blocks[0].Kind == ir.ToolResultBlock {
			role = "tool"
		}
		list = append(list, w.message(role, w.parts(m.Blocks)))
	}
	f.add(otlp.Maps("gen_ai.input.messages", list))
}

// words writes the texts of messages until there is no room for more.
type words struct {
	room int
	cut  bool
}

// partSize is about the size of a part of a message without its text.
const partSize = 128

// part returns a part of a message with a text, which may be cut.
func (w *words) part(kind, member, text string) []otlp.Attr {
	short := apierr.Shorten(text, max(w.room, 0))
	w.room -= len(short) + partSize
	w.cut = w.cut || len(short) < len(text)
	return []otlp.Attr{otlp.String("type", kind), otlp.String(member, short)}
}

// full reports whether there is no room for what follows, which is left out.
func (w *words) full() bool {
	w.cut = w.cut || w.room <= 0
	return w.room <= 0
}

func (w *words) message(role string, parts [][]otlp.Attr) []otlp.Attr {
	w.room -= partSize
	return []otlp.Attr{otlp.String("role", role), otlp.Maps("parts", parts)}
}

// whole returns a body as the only part of a message.
func (w *words) whole(role, text string) []otlp.Attr {
	return w.message(role, [][]otlp.Attr{w.part("text", "content", text)})
}

// parts returns the parts of a message. Of images and other data only the type is told.
func (w *words) parts(blocks []ir.Block) (list [][]otlp.Attr) {
	for i := range blocks {
		if w.full() {
			break
		}
		b := &blocks[i]
		switch {
		case b.Kind == ir.ThinkingBlock && b.Text == "": // it is encrypted
		case b.Kind == ir.ThinkingBlock:
			list = append(list, w.part("reasoning", "content", b.Text))
		case b.Kind == ir.RefusalBlock:
			list = append(list, w.part("refusal", "content", b.Text))
		case b.Kind == ir.ToolCallBlock:
			list = append(list, append(w.part("tool_call", "arguments", b.Arguments), otlp.String("id", b.ID),
				otlp.String("name", b.Name)))
		case b.Kind == ir.ToolResultBlock:
			list = append(list, append(w.part("tool_call_response", "response", ir.ResultText(b)), otlp.String("id", b.ID)))
		case b.Kind == ir.TextBlock, b.Text != "":
			list = append(list, w.part("text", "content", b.Text))
		case b.FileID != "":
			list = append(list, append(w.part("file", "file_id", b.FileID), modality(b)))
		case b.URL != "" && !strings.HasPrefix(b.URL, "data:"):
			list = append(list, append(w.part("uri", "uri", b.URL), modality(b)))
		default:
			list = append(list, append(w.part("blob", "mime_type", b.MediaType), modality(b)))
		}
	}
	return list
}

func modality(b *ir.Block) otlp.Attr {
	return otlp.String("modality", map[ir.BlockKind]string{ir.ImageBlock: "image", ir.DocumentBlock: "document",
		ir.AudioBlock: "audio"}[b.Kind])
}
