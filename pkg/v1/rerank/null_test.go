package rerank

import (
	"testing"

	"weir/internal/nulls"
	"weir/internal/testgw"
	"weir/internal/testgw/fake"
)

// A null member of a request or of a provider's answer equals an absent one.
func TestNullEqualsAbsent(t *testing.T) {
	const results = `{"results":[{"index":0,"relevance_score":0.1,"document":{"text":"a"}},{"index":2,"relevance_score":0.9,"document":{"text":"c"}}],"id":"1","usage":{"total_tokens":7,"search_units":1},"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1,"input_tokens":3},"tokens":{"input_tokens":3},"warnings":["w"]}}`
	n := 0
	for _, r := range []struct{ provider, model, answer string }{
		{"cohere", "rerank-v3.5", results},
		{"jina", "jina-reranker-v3", results},
		{"together", "m", results},
		{"openrouter", "cohere/rerank-v3.5", results},
		{"voyage", "rerank-2.5", `{"object":"list","data":[{"index":0,"relevance_score":0.1},{"index":2,"relevance_score":0.9}],"usage":{"total_tokens":7}}`},
	} {
		outcome := func(request, answer []byte) string {
			w := testgw.Recorded(t, r.provider)
			w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: string(answer)} }
			got, err := ask(w, string(request))
			out := ""
			if err != nil {
				out = err.Error()
			} else {
				out = nulls.Without([]byte(got.Raw)) // documents come back as the client wrote them
			}
			for _, c := range w.Seen {
				out += "\n" + nulls.Without([]byte(c.Body))
			}
			return out
		}
		request := []byte(`{"model":"` + r.provider + `/` + r.model + `","query":"q","documents":["a",{"text":"b","id":1},{"text":"c"}],"top_n":2,"return_documents":true,"max_chunks_per_doc":3}`)
		n += nulls.Of(nil, request).Compare(t, r.provider+": request", request, func(document []byte) string { return outcome(document, []byte(r.answer)) })
		n += nulls.Of(nil, []byte(r.answer)).Compare(t, r.provider+": answer", []byte(r.answer), func(document []byte) string { return outcome(request, document) })
	}
	if n < 80 {
		t.Errorf("only %d cases", n)
	}
}
