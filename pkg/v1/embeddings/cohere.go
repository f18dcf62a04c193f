package embeddings

import (
	"strconv"

	"weir/pkg/wire/jsonscan"
)

// cohere is the shape of Cohere's POST /v2/embed:
//
//	{model, texts[], input_type, embedding_types["float"], output_dimension?, truncate?}
//	→ {embeddings{float[][]}, meta{billed_units{input_tokens}}}
//
// At most 96 texts. The client may give input_type and truncate itself.
var cohere = shape{name: "cohere", batch: 96, textOnly: true, read: readCohere, build: func(p *part) []byte {
	p.drop(fUser)
	out := make([]byte, 0, len(p.body)+192)
	out = append(append(out, `{"model":`...), quoteModel(p)...)
	out = cohereTexts(append(out, ','), p)
	out = append(out, `,"embedding_types":["float"]`...)
	if n := p.size(); n > 0 {
		out = strconv.AppendInt(append(out, `,"output_dimension":`...), n, 10)
	}
	return append(out, '}')
}}

// cohereTexts appends the members that Cohere's models take on every platform.
func cohereTexts(out []byte, p *part) []byte {
	out = p.list(append(out, `"texts":`...))
	out = append(out, `,"input_type":`...)
	given := p.other("input_type")
	switch {
	case string(given) == `"query"`, given == nil && p.isQuery():
		out = append(out, `"search_query"`...)
	case string(given) == `"document"`, given == nil:
		out = append(out, `"search_document"`...)
	default:
		out = append(out, given...)
	}
	if t := p.other("truncate"); t != nil {
		out = append(append(out, `,"truncate":`...), t...)
	}
	return out
}

func readCohere(a *answer, r *request) error {
	c := a.begin()
	if c.Kind() != jsonscan.Object {
		return errShape
	}
	for c.Object(); c.Key(); {
		switch {
		case c.KeyIs("embeddings") && a.items == nil:
			// An object by type, or the bare list of older models.
			if c.Kind() != jsonscan.Object {
				if err := a.readVectors(c); err != nil {
					return err
				}
				continue
			}
			for c.Object(); c.Key(); {
				if !c.KeyIs("float") {
					c.Skip()
				} else if err := a.readVectors(c); err != nil {
					return err
				}
			}
		case c.KeyIs("meta") && c.Kind() == jsonscan.Object:
			for c.Object(); c.Key(); {
				if !c.KeyIs("billed_units") || c.Kind() != jsonscan.Object {
					c.Skip()
					continue
				}
				for c.Object(); c.Key(); {
					if c.KeyIs("input_tokens") {
						a.count(a.body, c.Value())
					} else {
						c.Skip()
					}
				}
			}
		default:
			c.Skip()
		}
	}
	return c.End()
}
