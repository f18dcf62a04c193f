package rerank

import (
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
	"weir/pkg/store"
)

// shape is how a provider's rerank endpoint is spoken to. Its functions are
// pure. Documents are never asked back: the client's own are at hand.
type shape struct {
	providers []string // none: every other one that has the endpoint
	build     func(r *request, model string, conn *store.Connection) map[string]any
	// list, score name the results and their score in the answer.
	list, score string
}

var errShape = errors.New("the answer has another shape")

var shapes = [...]*shape{&voyage, &bedrock, &common}

// shapeOf gives the shape of a provider.
func shapeOf(d *provider.Descriptor) *shape {
	for _, s := range &shapes {
		for _, id := range s.providers {
			if id == d.ID {
				return s
			}
		}
	}
	return &common
}

// common is the shape that Cohere made, and that Jina, Together, OpenRouter
// and compatible servers speak:
//
//	{model, query, documents[], top_n} → {results[{index, relevance_score}], usage|meta}
var common = shape{list: "results", score: "relevance_score", build: func(r *request, model string, _ *store.Connection) map[string]any {
	return r.body(model, "top_n")
}}

// voyage names the number of results top_k and the results data:
//
//	{model, query, documents[], top_k} → {data[{index, relevance_score}], usage{total_tokens}}
var voyage = shape{providers: []string{"voyage"}, list: "data", score: "relevance_score", build: func(r *request, model string, _ *store.Connection) map[string]any {
	return r.body(model, "top_k")
}}

// bedrock is Rerank of Amazon Bedrock's agent runtime:
//
//	{queries[{type,textQuery{text}}], sources[{type,inlineDocumentSource}], rerankingConfiguration} → {results[{index, relevanceScore}]}
var bedrock = shape{providers: []string{"bedrock"}, list: "results", score: "relevanceScore", build: func(r *request, model string, conn *store.Connection) map[string]any {
	type m = map[string]any
	sources := make([]any, 0, len(r.documents))
	for _, d := range r.documents {
		sources = append(sources, m{"type": "INLINE", "inlineDocumentSource": m{"type": "TEXT", "textDocument": m{"text": d}}})
	}
	n := r.top
	if n == 0 {
		n = len(r.documents)
	}
	return m{
		"queries": []any{m{"type": "TEXT", "textQuery": m{"text": r.query}}},
		"sources": sources,
		"rerankingConfiguration": m{"type": "BEDROCK_RERANKING_MODEL", "bedrockRerankingConfiguration": m{
			"numberOfResults":    n,
			"modelConfiguration": m{"modelArn": "arn:aws:bedrock:" + conn.Data.Vars["region"] + "::foundation-model/" + model},
		}},
	}
}}

func (r *request) body(model, top string) map[string]any {
	b := map[string]any{"model": model, "query": r.query, "documents": r.documents}
	if r.top > 0 {
		b[top] = r.top
	}
	return b
}

// scored is one result of a provider.
type scored struct {
	index int
	score float64
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
		if i.Type != gjson.Number || n.Type != gjson.Number || i.Num != float64(int(i.Num)) || i.Num < 0 || int(i.Num) >= len(seen) || seen[int(i.Num)] {
			err = errShape
			return false
		}
		if _, bad := json.Marshal(n.Num); bad != nil {
			err = errShape
			return false
		}
		seen[int(i.Num)] = true
		out = append(out, scored{int(i.Num), n.Num})
		return true
	})
	if err == nil && len(out) == 0 {
		err = errShape // there is at least one document
	}
	return out, err
}
