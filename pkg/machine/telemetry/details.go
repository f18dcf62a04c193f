package telemetry

import (
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
	if !doc.Answer.Omitted {
		f.add(otlp.Maps("gen_ai.output.messages", w.whole("assistant", doc.Answer.Text)))
	}
	w.room += room - room/2
	f.add(otlp.Maps("gen_ai.input.messages", w.whole("user", doc.Request.Text)))
	if w.cut {
		f.add(otlp.True("weir.bodies.cut"))
	}
	return otlp.Log{
		At: nano(r, r.LatencyMs), Level: 9, Name: detailsEvent, Body: r.Endpoint + " " + statusText(r.Status),
		Trace: c.Trace, Span: span.ID, Sample: c.Flags, Attrs: f.since(n),
	}
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

// whole returns a body as the only part of a message.
func (w *words) whole(role, text string) [][]otlp.Attr {
	return [][]otlp.Attr{{otlp.String("role", role), otlp.Maps("parts", [][]otlp.Attr{w.part("text", "content", text)})}}
}
