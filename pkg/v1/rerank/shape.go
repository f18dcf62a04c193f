package rerank

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/words"
)

// shape is how a provider's rerank endpoint is spoken to. Documents are never
// asked back: the client's own are at hand.
type shape struct {
	provider string // "" for every other one that has the endpoint
	top      string // field for the number of results
	// list, score name the results and their score in the answer.
	list, score string
	build       func(r *request, model string, conn *store.Connection) []byte // nil for the usual body
}

var errShape = errors.New("the answer has another shape")

// shapes are the providers that differ, and the shape of all others, which
// Cohere made, and Jina, Together, OpenRouter and compatible servers speak:
//
//	{model, query, documents[], top_n} → {results[{index, relevance_score}], usage|meta}
var shapes = [...]shape{
	// {model, query, documents[], top_k} → {data[{index, relevance_score}], usage{total_tokens}}
	{provider: "voyage", top: "top_k", list: "data", score: "relevance_score"},
	// Rerank of Amazon Bedrock's agent runtime:
	// {queries[{type,textQuery{text}}], sources[{type,inlineDocumentSource}], rerankingConfiguration} → {results[{index, relevanceScore}]}
	{provider: "bedrock", list: "results", score: "relevanceScore", build: bedrock},
	{top: "top_n", list: "results", score: "relevance_score"},
}

// shapeOf gives the shape of a provider.
func shapeOf(d *provider.Descriptor) *shape {
	i := 0
	for shapes[i].provider != "" && shapes[i].provider != d.ID {
		i++
	}
	return &shapes[i]
}

// body makes the body of a call.
func (s *shape) body(r *request, model string, conn *store.Connection) []byte {
	if s.build != nil {
		return s.build(r, model, conn)
	}
	b := words.Fill(nil, `{"model":$,"query":$,"documents":#`, model, r.query, words.List(r.documents))
	if r.top > 0 {
		b = words.Fill(b, `,$:#`, s.top, strconv.Itoa(r.top))
	}
	return append(b, '}')
}

func bedrock(r *request, model string, conn *store.Connection) []byte {
	b := words.Fill(nil, `{"queries":[{"type":"TEXT","textQuery":{"text":$}}],"sources":[`, r.query)
	for i, d := range r.documents {
		if i > 0 {
			b = append(b, ',')
		}
		b = words.Fill(b, `{"type":"INLINE","inlineDocumentSource":{"type":"TEXT","textDocument":{"text":$}}}`, d)
	}
	n := r.top
	if n == 0 {
		n = len(r.documents)
	}
	if !strings.HasPrefix(model, "arn:") {
		model = "arn:aws:bedrock:" + strings.ToLower(conn.Data.Vars["region"]) + "::foundation-model/" + model
	}
	return words.Fill(b, `],"rerankingConfiguration":{"type":"BEDROCK_RERANKING_MODEL","bedrockRerankingConfiguration":{"numberOfResults":#,"modelConfiguration":{"modelArn":$}}}}`,
		strconv.Itoa(n), model)
}

// scored is one result of a provider.
type scored struct {
	index int
	score float64
	raw   string // the score as it is written
}

// read finds the results. Each must be of another document of the request.
func (s *shape) read(raw gjson.Result, r *request) (out []scored, err error) {
	list := raw.Get(s.list)
	if !list.IsArray() {
		return nil, errShape
	}
	seen := make([]bool, len(r.documents))
	list.ForEach(func(_, v gjson.Result) bool {
		i, n := v.Get("index"), v.Get(s.score)
		if i.Type != gjson.Number || n.Type != gjson.Number || i.Num != float64(int(i.Num)) || i.Num < 0 || int(i.Num) >= len(seen) || seen[int(i.Num)] || math.IsInf(n.Num, 0) {
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
