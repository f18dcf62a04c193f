package embeddings

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonscan"
)

// bedrock is the shape of Amazon Bedrock's InvokeModel, by the vendor that the
// model id names:
//
//	Titan   {inputText, dimensions?, normalize?} → {embedding[], inputTextTokenCount}; one text
//	Nova    {taskType, singleEmbeddingParams{embeddingPurpose, embeddingDimension?, text{truncationMode, value}}} → {embeddings[{embedding[]}]}; one text
//	Cohere  {texts[], input_type, truncate?, embedding_types["float"]} → {embeddings}; at most 96
//
// A model id may have a region before it (us., eu., global.) or be an ARN.
var bedrock = shape{
	name: "bedrock", textOnly: true, estimate: true,
	limitOf: func(model string) int {
		if isCohere(model) {
			return 96
		}
		return 1
	},
	build: func(p *part) []byte {
		p.drop(fUser)
		out := make([]byte, 0, len(p.body)+128)
		if isCohere(p.model) {
			out = cohereTexts(append(out, '{'), p)
			out = append(out, `,"embedding_types":["float"]`...)
			if n := p.size(); n > 0 {
				out = strconv.AppendInt(append(out, `,"output_dimension":`...), n, 10)
			}
			return append(out, '}')
		}
		s := p.spans()[p.from]
		if strings.Contains(p.model, "nova") {
			return nova(out, p, p.body[s.Start:s.End])
		}
		out = append(append(out, `{"inputText":`...), p.body[s.Start:s.End]...)
		if n := p.size(); n > 0 {
			out = strconv.AppendInt(append(out, `,"dimensions":`...), n, 10)
		}
		if n := p.other("normalize"); n != nil {
			out = append(append(out, `,"normalize":`...), n...)
		}
		return append(out, '}')
	},
	read: func(a *answer, r *request) error {
		c := a.begin()
		if c.Kind() != jsonscan.Object {
			return errShape
		}
		for c.Object(); c.Key(); {
			switch {
			case c.KeyIs("embedding") && a.items == nil:
				if err := a.readVector(c); err != nil {
					return err
				}
			case c.KeyIs("embeddings") && !gjson.GetBytes(a.body, "embeddings.0").IsObject():
				return readCohere(a, r)
			case c.KeyIs("embeddings"):
				for c.Array(); c.Elem(); {
					if c.Kind() != jsonscan.Object {
						return errShape
					}
					for c.Object(); c.Key(); {
						if !c.KeyIs("embedding") {
							c.Skip()
						} else if err := a.readVector(c); err != nil {
							return err
						}
					}
				}
			case c.KeyIs("inputTextTokenCount"):
				a.count(a.body, c.Value())
			default:
				c.Skip()
			}
		}
		return c.End()
	},
}

// nova appends the body for one of Amazon's Nova models. Source: Amazon Nova
// User Guide, "Complete embeddings request and response schema".
func nova(out []byte, p *part, text []byte) []byte {
	out = append(out, `{"taskType":"SINGLE_EMBEDDING","singleEmbeddingParams":{"embeddingPurpose":`...)
	switch purpose := p.other("embeddingPurpose"); {
	case purpose != nil:
		out = append(out, purpose...)
	case p.isQuery():
		out = append(out, `"GENERIC_RETRIEVAL"`...)
	default:
		out = append(out, `"GENERIC_INDEX"`...)
	}
	if p.dimensions > 0 {
		out = strconv.AppendInt(append(out, `,"embeddingDimension":`...), p.dimensions, 10)
	}
	out = append(append(out, `,"text":{"truncationMode":"END","value":`...), text...)
	return append(out, "}}}"...)
}

func isCohere(model string) bool { return strings.Contains(model, "cohere.") }
