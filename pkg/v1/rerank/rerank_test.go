package rerank

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/store"
)

func ask(w *testgw.World, body string) (*gjson.Result, error) {
	h := &Handler{Accounts: w.Pool}
	resp, err := h.Create(w.Context(), w.Ask("/v1/rerank", body))
	if err != nil {
		return nil, err
	}
	v := gjson.Parse(testgw.Body(w, resp, nil))
	return &v, nil
}

func TestBadInputNamesTheField(t *testing.T) {
	for name, tt := range map[string][2]string{
		"no_model":            {`{"query":"q","documents":["a"]}`, "model"},
		"no_query":            {`{"model":"cohere/rerank-v3.5","documents":["a"]}`, "query"},
		"empty_query":         {`{"model":"cohere/rerank-v3.5","query":" ","documents":["a"]}`, "query"},
		"no_documents":        {`{"model":"cohere/rerank-v3.5","query":"q"}`, "documents"},
		"empty_list":          {`{"model":"cohere/rerank-v3.5","query":"q","documents":[]}`, "documents"},
		"a_number":            {`{"model":"cohere/rerank-v3.5","query":"q","documents":[1]}`, "documents"},
		"no_text":             {`{"model":"cohere/rerank-v3.5","query":"q","documents":[{"body":"a"}]}`, "documents"},
		"too_many":            {`{"model":"cohere/rerank-v3.5","query":"q","documents":["a"` + strings.Repeat(`,"a"`, 1000) + `]}`, "documents"},
		"top_n_zero":          {`{"model":"cohere/rerank-v3.5","query":"q","documents":["a"],"top_n":0}`, "top_n"},
		"return_documents":    {`{"model":"cohere/rerank-v3.5","query":"q","documents":["a"],"return_documents":1}`, "return_documents"},
		"not_json":            {`{`, ""},
		"a_list":              {`[]`, ""},
		"empty_model":         {`{"model":"","query":"q","documents":["a"]}`, "model"},
		"model_of_a_number":   {`{"model":1,"query":"q","documents":["a"]}`, "model"},
		"no_list":             {`{"model":"cohere/rerank-v3.5","query":"q","documents":"a"}`, "documents"},
		"empty_document":      {`{"model":"cohere/rerank-v3.5","query":"q","documents":["a",""]}`, "documents"},
		"top_n_of_text":       {`{"model":"cohere/rerank-v3.5","query":"q","documents":["a"],"top_n":"2"}`, "top_n"},
		"no_account":          {`{"model":"voyage/rerank-2","query":"q","documents":["a"]}`, "model"},
		"unknown_provider":    {`{"model":"nobody/x","query":"q","documents":["a"]}`, "model"},
		"another_provider":    {`{"model":"openai/gpt-5","query":"q","documents":["a"]}`, "model"},
		"a_model_that_embeds": {`{"model":"cohere/embed-v4.0","query":"q","documents":["a"]}`, "model"},
	} {
		w := testgw.Recorded(t, "cohere", "openai")
		_, err := ask(w, tt[0])
		if e := testgw.Refused(t, err, 400); e.Param != tt[1] || len(w.Seen) > 0 {
			t.Errorf("%s: param %q, want %q, %d calls", name, e.Param, tt[1], len(w.Seen))
		}
	}
}

func TestVendors(t *testing.T) {
	common := `{"results":[{"index":0,"relevance_score":0.1},{"index":2,"relevance_score":0.9}]`
	for _, tt := range []struct{ provider, url, model, answer, top, usage string }{
		{"cohere", "https://api.cohere.com/v2/rerank", "rerank-v3.5", common + `,"meta":{"billed_units":{"search_units":1}}}`, "top_n", `{"total_tokens":null,"search_units":1}`},
		{"jina", "https://api.jina.ai/v1/rerank", "jina-reranker-v3", common + `,"usage":{"total_tokens":7}}`, "top_n", `{"total_tokens":7,"search_units":null}`},
		{"together", "https://api.together.ai/v1/rerank", "m", common + `}`, "top_n", `{"total_tokens":null,"search_units":null}`},
		{"openrouter", "https://openrouter.ai/api/v1/rerank", "cohere/rerank-v3.5", common + `}`, "top_n", `{"total_tokens":null,"search_units":null}`},
		{"voyage", "https://api.voyageai.com/v1/rerank", "rerank-2.5", strings.Replace(common, "results", "data", 1) + `,"usage":{"total_tokens":7}}`, "top_k", `{"total_tokens":7,"search_units":null}`},
	} {
		w := testgw.Recorded(t, tt.provider)
		w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: tt.answer} }
		got, err := ask(w, `{"model":"`+tt.provider+`/`+tt.model+`","query":"q","documents":["a",{"text":"b"},{"text":"c","id":9}],"top_n":2,"return_documents":true}`)
		if err != nil {
			t.Errorf("%s: %v", tt.provider, err)
			continue
		}
		want := `[{"index":2,"relevance_score":0.9,"document":{"text":"c","id":9}},{"index":0,"relevance_score":0.1,"document":{"text":"a"}}]`
		if got.Get("results").Raw != want || got.Get("usage").Raw != tt.usage || got.Get("model").Str != tt.provider+"/"+tt.model {
			t.Errorf("%s: got %s", tt.provider, got.Raw)
		}
		sent := gjson.Parse(w.Seen[0].Body)
		if sent.Get("documents").Raw != `["a","b","c"]` || sent.Get(tt.top).Raw != "2" || sent.Get("model").Str != tt.model {
			t.Errorf("%s: sent %s", tt.provider, sent.Raw)
		}
		if s := w.Seen[0]; s.URL != tt.url || s.Header.Get("authorization") != "Bearer "+testgw.RecordedSecret {
			t.Errorf("%s: called %s with %v", tt.provider, s.URL, s.Header)
		}
		got, err = ask(w, `{"model":"`+tt.provider+`/`+tt.model+`","query":"q","documents":["a","b","c"]}`)
		if err != nil || got.Get("results").Raw != `[{"index":2,"relevance_score":0.9},{"index":0,"relevance_score":0.1}]` {
			t.Errorf("%s, without documents: got %v %v", tt.provider, got, err)
		}
	}
}

func TestBedrock(t *testing.T) {
	w := testgw.Recorded(t)
	w.Connect("bedrock", "c1", store.ProviderData{Vars: map[string]string{"region": "eu-west-1"}})
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.Answer{Body: `{"results":[{"index":0,"relevanceScore":0.5}]}`}
	}
	got, err := ask(w, `{"model":"bedrock/amazon.rerank-v1:0","query":"q","documents":["a",{"text":"b","id":7}]}`)
	if err != nil || got.Get("results").Raw != `[{"index":0,"relevance_score":0.5}]` {
		t.Fatalf("got %v %v", got, err)
	}
	if url := w.Seen[0].URL; url != "https://bedrock-agent-runtime.eu-west-1.amazonaws.com/rerank" {
		t.Errorf("sent to %s", url)
	}
	sent := gjson.Parse(w.Seen[0].Body)
	if sent.Get("sources.#.inlineDocumentSource.textDocument.text").Raw != `["a","b"]` || sent.Get("rerankingConfiguration.bedrockRerankingConfiguration.numberOfResults").Raw != "2" {
		t.Errorf("sent %s", sent.Raw)
	}
	const arn = "rerankingConfiguration.bedrockRerankingConfiguration.modelConfiguration.modelArn"
	if a := gjson.Get(w.Seen[0].Body, arn).Str; a != "arn:aws:bedrock:eu-west-1::foundation-model/amazon.rerank-v1:0" {
		t.Errorf("model %s", a)
	}
}

func TestInvalidAnswersAreRefused(t *testing.T) {
	for name, body := range map[string]string{
		"out_of_range": `{"results":[{"index":1,"relevance_score":1}]}`, "negative": `{"results":[{"index":-1,"relevance_score":1}]}`,
		"twice": `{"results":[{"index":0,"relevance_score":1},{"index":0,"relevance_score":1}]}`, "fraction": `{"results":[{"index":0.5,"relevance_score":1}]}`,
		"no_score": `{"results":[{"index":0}]}`, "infinite": `{"results":[{"index":0,"relevance_score":1e999}]}`, "none": `{"results":[]}`, "cut": `{"results":[`,
	} {
		w := testgw.Recorded(t, "cohere")
		w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: body} }
		_, err := ask(w, `{"model":"cohere/rerank-v3.5","query":"q","documents":["a"]}`)
		if err == nil {
			t.Errorf("%s: an answer", name)
			continue
		}
		testgw.Refused(t, err, 502)
	}
}
