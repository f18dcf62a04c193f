package embeddings

import (
	"strconv"

	"weir/pkg/wire/jsonscan"
)

// gemini is the Gemini API's shape (docs/reference/api-shapes.md, 10):
//
//	POST /models/{m}:embedContent       {model, content{parts[{text}]}, taskType?, title?, outputDimensionality?} → {embedding{values[]}}
//	POST /models/{m}:batchEmbedContents {requests[the same]}, at most 100 → {embeddings[{values[]}]}
//
// Some models answer with usageMetadata{promptTokenCount}. A client may give taskType or task_type, and
// title, themselves.
var gemini = shape{
	name: "gemini", batch: 100, textOnly: true, estimate: true,
	endpoint: func(p *part) string {
		if p.gemini != nil {
			return p.gemini.endpoint()
		}
		if p.to-p.from == 1 {
			return "embeddings"
		}
		return "embeddingsBatch"
	},
	build: buildGemini,
	read:  readGemini,
}

func buildGemini(p *part) []byte {
	if p.gemini != nil {
		return p.gemini.write(p)
	}
	p.drop(fUser)
	// The fields of every request after its content.
	var tail []byte
	if task := googleTask(p); task != nil {
		tail = append(append(tail, `,"taskType":`...), task...)
	}
	if title := p.other("title"); title != nil {
		tail = append(append(tail, `,"title":`...), title...)
	}
	if p.dimensions > 0 {
		tail = strconv.AppendInt(append(tail, `,"outputDimensionality":`...), p.dimensions, 10)
	}
	model := jsonscan.Quote(nil, "models/"+p.model)
	out := make([]byte, 0, len(p.body)+(p.to-p.from)*(len(model)+len(tail)+48)+32)
	single := p.to-p.from == 1
	if !single {
		out = append(out, `{"requests":[`...)
	}
	for i, s := range p.spans()[p.from:p.to] {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, `{"model":`...), model...)
		out = append(out, `,"content":{"parts":[{"text":`...)
		out = append(out, p.body[s.Start:s.End]...)
		out = append(append(append(out, `}]}`...), tail...), '}')
	}
	if !single {
		out = append(out, `]}`...)
	}
	return out
}

// googleTask returns the task type, quoted, as Gemini and Vertex AI name it: the
// client's own, else the machine's setting, else nil.
func googleTask(p *part) []byte {
	for _, name := range [...]string{"taskType", "task_type"} {
		if raw := p.other(name); raw != nil {
			return raw
		}
	}
	switch p.purpose {
	case "query":
		return []byte(`"RETRIEVAL_QUERY"`)
	case "document":
		return []byte(`"RETRIEVAL_DOCUMENT"`)
	}
	return nil
}

func readGemini(a *answer, r *request) error {
	c := a.begin()
	if c.Kind() != jsonscan.Object {
		return errShape
	}
	for c.Object(); c.Key(); {
		switch {
		case c.KeyIs("embedding"):
			if err := a.readValues(c); err != nil {
				return err
			}
		case c.KeyIs("usageMetadata") && c.Kind() == jsonscan.Object:
			a.readUsageMetadata(c)
		case c.KeyIs("embeddings") && c.Kind() == jsonscan.Array:
			for c.Array(); c.Elem(); {
				if err := a.readValues(c); err != nil {
					return err
				}
			}
		default:
			c.Skip()
		}
	}
	return c.End()
}

// readValues reads {values[]}, with Vertex AI's statistics{token_count} where
// they are there.
func (a *answer) readValues(c *jsonscan.Cursor) error {
	if c.Kind() != jsonscan.Object {
		return errShape
	}
	found := false
	for c.Object(); c.Key(); {
		switch {
		case c.KeyIs("values"):
			if found {
				return errShape
			}
			if err := a.readVector(c); err != nil {
				return err
			}
			found = true
		case c.KeyIs("statistics") && c.Kind() == jsonscan.Object:
			for c.Object(); c.Key(); {
				if c.KeyIs("token_count") {
					a.count(a.body, c.Value())
				} else {
					c.Skip()
				}
			}
		default:
			c.Skip()
		}
	}
	if !found {
		return errShape
	}
	return nil
}

// readUsageMetadata passes Google's object of that name.
func (a *answer) readUsageMetadata(c *jsonscan.Cursor) {
	for c.Object(); c.Key(); {
		if c.KeyIs("promptTokenCount") {
			a.count(a.body, c.Value())
		} else {
			c.Skip()
		}
	}
}

// begin starts to read an answer that is not OpenAI's.
func (a *answer) begin() *jsonscan.Cursor {
	a.inputTokens, a.allTokens = -1, -1
	c := &jsonscan.Cursor{MaxTokens: maxAnswer}
	c.Reset(a.body)
	return c
}

// readVector passes an array of numbers and takes it as the next item.
func (a *answer) readVector(c *jsonscan.Cursor) error {
	if c.Kind() != jsonscan.Array {
		return errShape
	}
	start := c.Offset()
	n, _, ok := c.Numbers()
	if !ok || n == 0 {
		return errShape
	}
	a.items = append(a.items, item{index: len(a.items), raw: trimmed(a.body, start, c.Offset())})
	return nil
}

// readVectors passes an array of such arrays.
func (a *answer) readVectors(c *jsonscan.Cursor) error {
	if c.Kind() != jsonscan.Array {
		return errShape
	}
	for c.Array(); c.Elem(); {
		if err := a.readVector(c); err != nil {
			return err
		}
	}
	return nil
}

// count adds to the tokens of the input. Google writes counts with a fraction
// at times.
func (a *answer) count(body []byte, v jsonscan.Value) {
	for i := v.Start; i < v.End; i++ {
		if body[i] == '.' {
			v.End = i
		}
	}
	if n, ok := number(body, v); ok {
		a.inputTokens = max(0, a.inputTokens) + n
	}
}
