package rerank

import (
	"testing"

	"github.com/tidwall/gjson"
)

// Any answer of a provider is refused, or names different documents of the request.
func FuzzAnswers(f *testing.F) {
	f.Add(`{"results":[{"index":1,"relevance_score":0.5},{"index":0,"relevance_score":-1e308}]}`)
	f.Add(`{"data":[{"index":0,"relevance_score":1e999}],"results":[{"index":0.5,"relevanceScore":1}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		if !gjson.Valid(body) {
			return
		}
		for i := range shapes {
			got, err := shapes[i].read(gjson.Parse(body), &request{documents: []string{"a", "b", "c"}})
			if err != nil {
				continue
			}
			seen := map[int]bool{}
			for _, s := range got {
				if s.index < 0 || s.index > 2 || seen[s.index] || !gjson.Valid(s.raw) {
					t.Fatalf("%+v of %s", got, body)
				}
				seen[s.index] = true
			}
		}
	})
}
