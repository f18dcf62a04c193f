package rerank

import (
	"cmp"
	"errors"
	"math"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/jsonvalue"
)

// shape describes a provider's rerank endpoint. The answer need not repeat the
// documents: the request has them.
type shape struct {
	provider string // "" for every other one that has the endpoint
	top      string // field for the number of results
	// list and score are the members of the results and of their score.
	list, score string
	build       func(r *request, model string, conn *store.Connection) []byte // nil for the default body
}

var errShape = errors.New("the answer has another shape")

// shapes are the providers that differ, and last the shape of all others, which is
// Cohere's and also that of Jina, Together, OpenRouter and compatible servers:
//
//	{model, query, documents[], top_n} → {results[{index, relevance_score}], usage|meta}
var shapes = [...]shape{
	// {model, query, documents[], top_k} → {data[{index, relevance_score}],
	// usage{total_tokens}}
	{provider: "voyage", top: "top_k", list: "data", score: "relevance_score"},
	// Rerank of Amazon Bedrock's agent runtime:
	// {queries[{type,textQuery{text}}], sources[{type,inlineDocumentSource}],
	// rerankingConfiguration} → {results[{index, relevanceScore}]}
	{provider: "bedrock", list: "results", score: "relevanceScore", build: bedrock},
	{top: "top_n", list: "results", score: "relevance_score"},
}

// shapeOf returns the shape of a provider.
func shapeOf(d *provider.Descriptor) *shape {
	i := 0
	for shapes[i].provider != "" && shapes[i].provider != d.ID {
		i++
	}
	return &shapes[i]
}

// body returns the body of a call.
func (s *shape) body(r *request, model string, conn *store.Connection) []byte {
	if s.build != nil {
		return s.build(r, model, conn)
	}
	var w jsonvalue.Writer
	w.Object("")
	w.Text("model", model)
	w.Text("query", r.query)
	w.Raw("documents", jsonvalue.Strings(r.documents))
	if r.top > 0 {
		w.Int(s.top, r.top)
	}
	w.End('}')
	return w
}

func bedrock(r *request, model string, conn *store.Connection) []byte {
	n := cmp.Or(r.top, len(r.documents))
	if !strings.HasPrefix(model, "arn:") {
		model = "arn:aws:bedrock:" + strings.ToLower(conn.Data.Vars["region"]) + "::foundation-model/" + model
	}
	var w jsonvalue.Writer
	w.Object("")
	w.Raw("queries", `[{"type":"TEXT","textQuery":{"text":`+jsonvalue.Quote(r.query)+`}}]`)
	w.Array("sources")
	for _, d := range r.documents {
		w.Raw("", `{"type":"INLINE","inlineDocumentSource":{"type":"TEXT","textDocument":{"text":`+jsonvalue.Quote(d)+`}}}`)
	}
	w.End(']')
	w.Object("rerankingConfiguration")
	w.Text("type", "BEDROCK_RERANKING_MODEL")
	w.Object("bedrockRerankingConfiguration")
	w.Int("numberOfResults", n)
	w.Object("modelConfiguration")
	w.Text("modelArn", model)
	w.End('}')
	w.End('}')
	w.End('}')
	w.End('}')
	return w
}

// scored is one result of a provider.
type scored struct {
	index int
	score float64
	raw   string // the score as the provider wrote it
}

// read returns the results of an answer. Each must name a different document of the
// request.
func (s *shape) read(raw gjson.Result, r *request) (out []scored, err error) {
	list := raw.Get(s.list)
	if !list.IsArray() {
		return nil, errShape
	}
	seen := make([]bool, len(r.documents))
	list.ForEach(func(_, v gjson.Result) bool {
		i, n := v.Get("index"), v.Get(s.score)
		if i.Type != gjson.Number || n.Type != gjson.Number || i.Num != float64(int(i.Num)) || i.Num < 0 ||
			int(i.Num) >= len(seen) || seen[int(i.Num)] || math.IsInf(n.Num, 0) {
			err = errShape
			return false
		}
		seen[int(i.Num)] = true
		out = append(out, scored{int(i.Num), n.Num, n.Raw})
		return true
	})
	if err == nil && len(out) == 0 {
		err = errShape // there is at least one document
	}
	return out, err
}
