package embeddings

import (
	"bytes"
	"context"
	"slices"
	"strconv"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
)

// geminiRequest is a request of a client of the Gemini API:
//
//	:embedContent       {model?, content{parts[{text}]}, taskType?, title?, outputDimensionality?}
//	:batchEmbedContents {requests[the same]}
//
// A Gemini upstream gets it as it is, with the upstream's model. For every other
// provider it is read as a request of OpenAI's form with one text per content.
type geminiRequest struct {
	body  []byte
	batch bool
	items []geminiItem
	// media reports that a content has a part that is not text.
	media bool
	// The options of all items; differ names those that are not the same in all.
	geminiOptions
	differ []string
}

// geminiItem is one content to embed.
type geminiItem struct {
	object  jsonscan.Span // of the request
	model   jsonscan.Value
	content jsonscan.Span
	text    string // of its parts, one to a line
	geminiOptions
}

// geminiOptions are an item's options, as JSON; nil is absent.
type geminiOptions struct{ task, title, dimensions []byte }

// each calls f with the options of both, and their names.
func (o *geminiOptions) each(p *geminiOptions, f func(name string, a, b *[]byte)) {
	f("taskType", &o.task, &p.task)
	f("title", &o.title, &p.title)
	f("outputDimensionality", &o.dimensions, &p.dimensions)
}

// Gemini serves :embedContent, and with batch :batchEmbedContents, of a model
// (docs/reference/dialects.md, a.1).
func (h *Handler) Gemini(ctx context.Context, c *auth.Call, model string, batch bool) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	x := &exchange{call: c}
	if x.req.gemini, err = readGeminiRequest(body, batch); err != nil {
		return nil, err
	}
	if err := x.req.fromGemini(model); err != nil {
		return nil, err
	}
	return h.answer(ctx, c, x)
}

// readGeminiRequest parses and checks a request. Errors are 400.
func readGeminiRequest(body []byte, batch bool) (*geminiRequest, error) {
	g := &geminiRequest{body: body, batch: batch}
	c := &jsonscan.Cursor{}
	c.Reset(body)
	var bad error // the first complaint about a field; a broken document goes before it
	note := func(err error) {
		if bad == nil {
			bad = err
		}
	}
	given := false
	if !batch {
		note(g.readItem(c))
	} else if c.Kind() != jsonscan.Object {
		c.Skip()
		note(apierr.Invalid("", "The body must be a JSON object."))
	} else {
		for c.Object(); c.Key(); {
			if !c.KeyIs("requests") {
				c.Skip()
				continue
			}
			if given || c.Kind() != jsonscan.Array {
				note(apierr.Invalid("requests", "requests must be given once, as an array."))
				c.Skip()
				continue
			}
			given = true
			for c.Array(); c.Elem(); {
				note(g.readItem(c))
			}
		}
	}
	if err := c.End(); err != nil {
		return nil, endpoint.BadJSON(err)
	}
	switch {
	case bad != nil:
		return nil, bad
	case len(g.items) == 0:
		return nil, apierr.Invalid("requests", "requests must have at least one item.")
	case len(g.items) > maxInputs:
		return nil, apierr.Invalid("requests", "requests must have at most %d items.", maxInputs)
	}
	g.geminiOptions = g.items[0].geminiOptions
	for i := range g.items {
		g.each(&g.items[i].geminiOptions, func(name string, a, b *[]byte) {
			if !bytes.Equal(*a, *b) && !slices.Contains(g.differ, name) {
				g.differ = append(g.differ, name)
			}
		})
	}
	return g, nil
}

// readItem passes one request and takes it.
func (g *geminiRequest) readItem(c *jsonscan.Cursor) error {
	if c.Kind() != jsonscan.Object {
		c.Skip()
		return apierr.Invalid("requests", "Each request must be a JSON object.")
	}
	var it geminiItem
	var text []byte
	var bad error
	parts, media := 0, false
	c.Lone()
	it.object.Start = c.Offset()
	option := func(at *[]byte, kind jsonscan.Kind, name string) {
		v := c.Value()
		if v.Kind != kind && v.Kind != jsonscan.Null && bad == nil {
			bad = apierr.Invalid(name, "%s must be a %s.", name, kind)
		}
		if v.Kind > jsonscan.Null {
			*at = g.body[v.Start:v.End]
		}
	}
	for c.Object(); c.Key(); {
		switch {
		case it.content.End > 0 && c.KeyIs("content"), it.model.Kind != jsonscan.Absent && c.KeyIs("model"):
			c.Skip()
			bad = apierr.Invalid("requests", "content and model must not be given more than once.")
		case c.KeyIs("content") && c.Kind() == jsonscan.Object:
			it.content.Start = c.Offset()
			for c.Object(); c.Key(); {
				if !c.KeyIs("parts") || c.Kind() != jsonscan.Array {
					c.Skip()
					continue
				}
				for c.Array(); c.Elem(); {
					parts++
					part, ok := g.readPart(c)
					media = media || !ok
					if len(text) > 0 && len(part) > 0 {
						text = append(text, '\n')
					}
					text = append(text, part...)
				}
			}
			it.content.End = c.Offset()
		case c.KeyIs("model"):
			it.model = c.Value()
		case c.KeyIs("taskType"), c.KeyIs("task_type"):
			option(&it.task, jsonscan.String, "taskType")
		case c.KeyIs("title"):
			option(&it.title, jsonscan.String, "title")
		case c.KeyIs("outputDimensionality"), c.KeyIs("output_dimensionality"):
			option(&it.dimensions, jsonscan.Number, "outputDimensionality")
		default:
			c.Skip()
		}
	}
	it.object.End, it.text = c.Offset(), string(text)
	switch {
	case bad != nil:
	case c.Lone():
		bad = apierr.Invalid("content", "content has half a surrogate pair.")
	case parts == 0 || it.text == "" && !media:
		bad = apierr.Invalid("content", "content must have a part that is not empty.")
	}
	g.items, g.media = append(g.items, it), g.media || media
	return bad
}

// readPart passes one part and returns its text. It reports false for a part of
// another kind.
func (g *geminiRequest) readPart(c *jsonscan.Cursor) (text string, ok bool) {
	if c.Kind() != jsonscan.Object {
		c.Skip()
		return "", false
	}
	for c.Object(); c.Key(); {
		if !c.KeyIs("text") || c.Kind() != jsonscan.String {
			c.Skip()
			continue
		}
		if v := c.Value(); c.Err() == nil {
			text, ok = jsonscan.Text(g.body, v), true
		}
	}
	return text, ok
}

// fromGemini makes the request of OpenAI's form, whose body is written here.
func (r *request) fromGemini(model string) error {
	g := r.gemini
	r.model, r.kind, r.count = model, texts, len(g.items)
	b := make([]byte, 0, len(g.body)+len(model)+64)
	value := func(kind jsonscan.Kind, write func()) (v jsonscan.Value) {
		v.Kind, v.Start = kind, len(b)
		write()
		v.End = len(b)
		return v
	}
	b = append(b, `{"model":`...)
	r.at[fModel] = value(jsonscan.String, func() { b = jsonscan.Quote(b, model) })
	b = append(b, `,"input":`...)
	r.items = make([]jsonscan.Span, 0, len(g.items))
	r.at[fInput] = value(jsonscan.Array, func() {
		for i := range g.items {
			b = append(b, "[,"[min(i, 1)])
			r.items = append(r.items, value(jsonscan.String, func() { b = jsonscan.Quote(b, g.items[i].text) }).Span)
		}
		b = append(b, ']')
	})
	if g.dimensions != nil {
		b = append(b, `,"dimensions":`...)
		r.at[fDimensions] = value(jsonscan.Number, func() { b = append(b, g.dimensions...) })
	}
	r.body = append(b, '}')
	if err := r.check(); err != nil {
		return apierr.Invalid("outputDimensionality", "outputDimensionality must be an integer from 1 to %d.", maxDimensions)
	}
	return nil
}

// usable returns the reason why a provider cannot embed the contents, or nil.
func (g *geminiRequest) usable(s *shape, model string) error {
	if s == &gemini {
		return nil
	}
	if g.media && !(s == &vertex && single(model)) {
		return apierr.Invalid("content", "The provider of this model takes text only.")
	}
	for _, name := range g.differ {
		if name != "title" {
			return apierr.Invalid(name, "The provider of this model takes one %s for all requests.", name)
		}
	}
	return nil
}

// purpose returns what the vectors are for, as the machine's setting has it, or "".
func (g *geminiRequest) purpose() string {
	switch string(g.task) {
	case `"RETRIEVAL_QUERY"`, `"QUESTION_ANSWERING"`, `"FACT_VERIFICATION"`, `"CODE_RETRIEVAL_QUERY"`:
		return "query"
	case `"RETRIEVAL_DOCUMENT"`:
		return "document"
	}
	return ""
}

// dropped names the fields of the client that a provider does not know. dropped are
// those of OpenAI's form.
func (g *geminiRequest) dropped(s *shape, dropped []string) []string {
	for i, name := range dropped {
		if name == names[fDimensions] {
			dropped[i] = "outputDimensionality"
		}
	}
	if s != &vertex && s != &gemini && g.task != nil && g.purpose() == "" {
		dropped = append(dropped, "taskType")
	}
	if s != &gemini && (s != &vertex && g.title != nil || slices.Contains(g.differ, "title")) {
		dropped = append(dropped, "title")
	}
	return dropped
}

// option returns an option of all items by the name of its field, or nil.
func (g *geminiRequest) option(name string) []byte {
	switch {
	case slices.Contains(g.differ, name):
	case name == "taskType":
		return g.task
	case name == "title":
		return g.title
	}
	return nil
}

// write makes the body for a Gemini upstream: the client's, with the upstream's
// model, or the part of it that is sent in one call.
func (g *geminiRequest) write(p *part) []byte {
	model := jsonscan.Quote(nil, "models/"+p.model)
	out := make([]byte, 0, len(g.body)+len(g.items)*(len(model)+16))
	at := 0 // what of the body is copied
	if !p.whole() {
		out = append(out, `{"requests":[`...)
	}
	for i := p.from; i < p.to; i++ {
		it := &g.items[i]
		if !p.whole() {
			if at = it.object.Start; i > p.from {
				out = append(out, ',')
			}
		}
		switch {
		case it.model.Kind != jsonscan.Absent:
			out = append(append(out, g.body[at:it.model.Start]...), model...)
			at = it.model.End
		case g.batch: // which needs it, unlike :embedContent
			out = append(out, g.body[at:it.object.Start+1]...)
			out = append(append(append(out, `"model":`...), model...), ',')
			at = it.object.Start + 1
		}
		if !p.whole() {
			out = append(out, g.body[at:it.object.End]...)
		}
	}
	if !p.whole() {
		return append(out, `]}`...)
	}
	return append(out, g.body[at:]...)
}

// writeGemini makes the body of a Gemini client's answer:
//
//	{"embedding":{"values"}} or {"embeddings":[{"values"}]}, "usageMetadata":{"promptTokenCount","totalTokenCount"}
func (a *answer) writeGemini(g *geminiRequest) ([]byte, error) {
	size := 128
	for i := range a.items {
		size += len(a.items[i].raw) + 16
	}
	out := make([]byte, 0, size)
	if g.batch {
		out = append(out, `{"embeddings":[`...)
	} else {
		out = append(out, `{"embedding":`...)
	}
	var buf []byte
	var err error
	for i := range a.items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"values":`...)
		if out, buf, err = appendVector(out, buf, &a.items[i], floats); err != nil {
			return nil, endpoint.BadBody(err)
		}
		out = append(out, '}')
	}
	if g.batch {
		out = append(out, ']')
	}
	out = append(out, `,"usageMetadata":{"promptTokenCount":`...)
	out = strconv.AppendInt(out, a.inputTokens, 10)
	out = append(out, `,"totalTokenCount":`...)
	out = strconv.AppendInt(out, a.allTokens, 10)
	return append(out, "}}"...), nil
}

// endpoint returns the endpoint of a Gemini upstream for a part of the request.
func (g *geminiRequest) endpoint() string {
	if g.batch {
		return "embeddingsBatch"
	}
	return "embeddings"
}
