package embeddings

import (
	"strconv"
	"strings"

	"weir/pkg/wire/jsonscan"
)

// vertex is the shape of Vertex AI's :predict:
//
//	{instances[{content, task_type?, title?}], parameters{outputDimensionality?, autoTruncate?}}
//	→ {predictions[{embeddings{values[], statistics{token_count}}}]}
//
// At most 250 instances; gemini-embedding models take one. gemini-embedding-2
// has :embedContent instead:
//
//	{content{parts[{text}]}, taskType?, title?, outputDimensionality?}
//	→ {embedding{values[]}, usageMetadata{promptTokenCount}}
//
// It is told its task in the text, so that only a client's own taskType goes
// up.
var vertex = shape{
	name: "vertex", textOnly: true, estimate: true, read: readVertex,
	address: func(model, url string) string {
		if single(model) {
			return strings.TrimSuffix(url, ":predict") + ":embedContent"
		}
		return url
	},
	limitOf: func(model string) int {
		if strings.HasPrefix(model, "gemini-") {
			return 1
		}
		return 250
	},
	build: func(p *part) []byte {
		p.drop(fUser)
		if single(p.model) {
			return buildContent(p)
		}
		var tail []byte
		if task := googleTask(p); task != nil {
			tail = append(append(tail, `,"task_type":`...), task...)
		}
		if title := p.other("title"); title != nil {
			tail = append(append(tail, `,"title":`...), title...)
		}
		out := make([]byte, 0, len(p.body)+(p.to-p.from)*(len(tail)+16)+96)
		out = append(out, `{"instances":[`...)
		for i, s := range p.spans()[p.from:p.to] {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, `{"content":`...)
			out = append(out, p.body[s.Start:s.End]...)
			out = append(append(out, tail...), '}')
		}
		out = append(out, ']')
		params := len(out)
		if p.dimensions > 0 {
			out = strconv.AppendInt(append(out, `,"outputDimensionality":`...), p.dimensions, 10)
		}
		if t := p.other("autoTruncate"); t != nil {
			out = append(append(out, `,"autoTruncate":`...), t...)
		}
		if len(out) > params {
			members := append([]byte(`,"parameters":{`), out[params+1:]...)
			out = append(append(out[:params], members...), '}')
		}
		return append(out, '}')
	},
}

// single reports whether a model has :embedContent.
func single(model string) bool { return strings.HasPrefix(model, "gemini-embedding-2") }

func buildContent(p *part) []byte {
	out := append(make([]byte, 0, len(p.body)+96), `{"content":`...)
	if g := p.gemini; g != nil {
		at := g.items[p.from].content
		out = append(out, g.body[at.Start:at.End]...)
	} else {
		s := p.spans()[p.from]
		out = append(out, `{"parts":[{"text":`...)
		out = append(append(out, p.body[s.Start:s.End]...), `}]}`...)
	}
	for _, f := range [...][2]string{{"taskType", "taskType"}, {"task_type", "taskType"}, {"title", "title"}} {
		if v := p.other(f[0]); v != nil {
			out = append(append(append(out, `,"`...), f[1]...), `":`...)
			out = append(out, v...)
		}
	}
	if p.dimensions > 0 {
		out = strconv.AppendInt(append(out, `,"outputDimensionality":`...), p.dimensions, 10)
	}
	return append(out, '}')
}

func readVertex(a *answer, r *request) error {
	c := a.begin()
	if c.Kind() != jsonscan.Object {
		return errShape
	}
	for c.Object(); c.Key(); {
		if c.KeyIs("embedding") && a.items == nil {
			if err := a.readValues(c); err != nil {
				return err
			}
			continue
		}
		if c.KeyIs("usageMetadata") && c.Kind() == jsonscan.Object {
			a.readUsageMetadata(c)
			continue
		}
		if !c.KeyIs("predictions") || c.Kind() != jsonscan.Array {
			c.Skip()
			continue
		}
		for c.Array(); c.Elem(); {
			if c.Kind() != jsonscan.Object {
				return errShape
			}
			before := len(a.items)
			for c.Object(); c.Key(); {
				if !c.KeyIs("embeddings") {
					c.Skip()
				} else if err := a.readValues(c); err != nil {
					return err
				}
			}
			if len(a.items) != before+1 {
				return errShape
			}
		}
	}
	return c.End()
}
