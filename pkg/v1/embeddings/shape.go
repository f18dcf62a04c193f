package embeddings

import (
	"strings"

	"weir/pkg/provider"
	"weir/pkg/wire/jsonscan"
)

// shape describes a provider's embeddings endpoint
// (docs/reference/api-shapes.md, 11). Its functions are pure.
type shape struct {
	name     string
	batch    int // inputs in one call; 0 is no limit
	textOnly bool
	estimate bool // the answer has no usage: it is estimated
	// limitOf replaces batch where it depends on the model.
	limitOf func(model string) int
	// endpoint names the endpoint of the provider's row; nil is "embeddings".
	endpoint func(p *part) string
	// address changes the endpoint's address where that depends on the model;
	// nil leaves it.
	address func(model, url string) string
	// dialect makes the body where the endpoint is like OpenAI's, else build.
	dialect *dialect
	build   func(p *part) []byte
	// read fills an answer from its body. It may leave the items in any order,
	// with their index among the inputs of this call.
	read func(a *answer, r *request) error
}

// part is what one upstream call asks: inputs from up to to.
type part struct {
	*request
	model    string // upstream id
	from, to int
	// purpose is the machine's setting for the use of vectors: "document", "query",
	// or "" if it is not set.
	purpose string
	user    []byte   // JSON of the hash for a user's id over the provider's limit, or nil
	dropped []string // fields of the client that the provider does not know
}

// shapes lists the shapes. A provider's row names its shape.
var shapes = [...]*shape{
	&openAI, &mistral, &voyage, &jina, &nvidia, &together, &perplexity, &dashscope, &cloudflare,
	&gemini, &cohere, &vertex, &bedrock, &huggingFace,
}

// shapeOf returns the shape of a provider, or nil.
func shapeOf(d *provider.Descriptor) *shape {
	for _, s := range shapes {
		if s.name == d.Embed {
			return s
		}
	}
	return nil
}

// write makes the body of a call.
func (s *shape) write(p *part) []byte {
	if s.dialect != nil {
		return s.dialect.write(p)
	}
	return s.build(p)
}

func (s *shape) limit(model string) int {
	if s.limitOf != nil {
		return s.limitOf(model)
	}
	return s.batch
}

// whole reports whether the call has all inputs.
func (p *part) whole() bool { return p.from == 0 && p.to == p.count }

// list appends the inputs of the call as they were written, in an array.
func (p *part) list(dst []byte) []byte {
	if p.whole() && (p.kind == texts || p.kind == tokenLists) {
		return append(dst, p.raw(fInput)...)
	}
	dst = append(dst, '[')
	for i, s := range p.spans()[p.from:p.to] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, p.body[s.Start:s.End]...)
	}
	return append(dst, ']')
}

// drop notes that a field which the client gave does not go up.
func (p *part) drop(field int) {
	if p.at[field].Kind > jsonscan.Null {
		p.dropped = append(p.dropped, names[field])
	}
}

// oneSize are parts of the ids of models whose vectors have one size. They do not
// have the field for it.
var oneSize = [...]string{"mistral-embed", "embed-english-v3", "embed-english-light-v3", "embed-multilingual-v3",
	"embed-multilingual-light-v3", "titan-embed-text-v1"}

// size returns the dimensions that the client asks for, 0 without any. Those that the
// model does not have are dropped.
func (p *part) size() int64 {
	for _, model := range oneSize {
		if strings.Contains(p.model, model) {
			p.drop(fDimensions)
			return 0
		}
	}
	return p.dimensions
}

// other returns a field of the client that only vendors know, as it stands, or
// nil when absent or null. The last one counts, as it does for most parsers.
func (p *part) other(name string) (raw []byte) {
	if p.gemini != nil {
		return p.gemini.option(name)
	}
	var c jsonscan.Cursor
	c.Reset(p.body)
	for c.Object(); c.Key(); {
		if c.KeyIs(name) {
			if v := c.Value(); v.Kind > jsonscan.Null {
				raw = p.body[v.Start:v.End]
			}
		} else {
			c.Skip()
		}
	}
	return raw
}

// isQuery reports whether vectors are for queries rather than for documents, which is
// the vendors' recommended default.
func (p *part) isQuery() bool { return p.purpose == "query" }
