package search

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"weir/internal/golden"
	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/wire/httpmsg"
)

// exchanged is a golden file: what went up and what the client got.
type exchanged struct {
	Method, URL string
	Header      httpmsg.Header
	Body        json.RawMessage
	Answer      json.RawMessage
	Dropped     []string
}

// all is a request that uses every field.
const all = `,"max_results":3,"offset":0,"search_type":"web","country":"de","language":"en-GB","time_range":"week",` +
	`"domain_filter":["tea.example.com","-spam.example.net"],"content_options":{"full_page":true,"format":"markdown","max_characters":8}`

// Each provider's answer, as its documents have it, in the one shape; and what
// is sent for the smallest request, for one that uses every field, and for news.
func TestVendors(t *testing.T) {
	models := map[string]string{"perplexity_sonar": "perplexity/sonar", "openai_gpt-5-search-api": "openai/gpt-5-search-api"}
	list := strings.Fields("tavily exa brave serper searxng linkup you perplexity firecrawl jina-reader zai ollama-cloud " +
		"openai xai anthropic gemini openrouter perplexity_sonar openai_gpt-5-search-api")
	for _, id := range list {
		for variant, fields := range map[string]string{"": "", "_all": all, "_news": `,"search_type":"news","time_range":"day"`} {
			t.Run(id+variant, func(t *testing.T) {
				recorded, err := os.ReadFile("testdata/vendors/" + id + variant + ".json")
				if err != nil {
					recorded, err = os.ReadFile("testdata/vendors/" + id + ".json")
				}
				if err != nil {
					t.Fatal(err)
				}
				own, _, _ := strings.Cut(id, "_")
				w := testgw.Recorded(t, own)
				w.Answer = func(*fake.Seen) fake.Answer {
					return fake.Answer{Body: string(recorded), Takes: 120 * time.Millisecond}
				}
				model := models[id]
				if model == "" {
					model = provider.Lookup(own).Alias
				}
				c := w.Ask("/v1/search", `{"model":"`+model+`","query":"green tea"`+fields+`}`)
				resp, err := handler(w).Create(t.Context(), c)
				got := testgw.Body(t, resp, err)
				if len(w.Seen) != 1 {
					t.Fatalf("%d calls", len(w.Seen))
				}
				s := w.Seen[0]
				if s.Timeout != 10*time.Second && s.Timeout != 15*time.Second {
					t.Errorf("time limit %v", s.Timeout)
				}
				if s.Body == "" {
					s.Body = "null"
				}
				golden.JSON(t, "vendors/"+id+variant, exchanged{s.Method, s.URL, s.Header, json.RawMessage(s.Body), json.RawMessage(got), c.Trace.Dropped})
			})
		}
	}
}

// A provider whose row says that it searches needs a service, the service a row with
// its endpoint, and both a recorded answer.
func TestEverySearchProviderHasAService(t *testing.T) {
	n := 0
	for _, d := range provider.All() {
		if !d.Search {
			continue
		}
		n++
		to := target(d, "search")
		if s := serviceOf(&to); s == nil || s.chat != nil || !d.Serves("search") {
			t.Errorf("%s: the row says that it searches, but services has no service for it", d.ID)
		}
	}
	if n < 12 {
		t.Errorf("%d providers", n)
	}
	for _, s := range services {
		for _, id := range s.providers {
			d := provider.Lookup(id)
			if d == nil {
				t.Errorf("%s: no such provider", id)
				continue
			}
			if _, err := os.Stat("testdata/vendors/" + id + ".json"); err != nil && id != "vertex" { // vertex answers as gemini
				t.Errorf("%s: no recorded answer: %v", id, err)
			}
			if s.chat == nil || s.chat.model == "" {
				continue
			}
			if kind, known := catalog.KindOf(d.Alias, s.chat.model); !known || kind != catalog.LLM {
				t.Errorf("%s has no chat model %s", id, s.chat.model)
			}
			if !d.Serves(s.chat.dialect.Endpoint()) {
				t.Errorf("%s has no endpoint %s", id, s.chat.dialect.Endpoint())
			}
		}
	}
}

// A broken answer is a failure, never a result.
func TestBrokenAnswers(t *testing.T) {
	for _, d := range []string{"tavily", "exa", "brave", "serper", "searxng", "linkup", "you", "perplexity", "firecrawl", "jina-reader", "zai", "ollama-cloud", "openai", "anthropic", "gemini", "openrouter", "xai"} {
		for name, body := range map[string]string{
			"empty": "", "not_json": "<html>no", "cut": `{"results":[{"title":"a"`, "null": "null", "a_list": "[]", "another_shape": `{"error":"x"}`,
			"deep": strings.Repeat("[", 100000), "wrong_types": `{"results":"a","data":1,"search_result":{},"web":[],"output":3,"content":4,"choices":{},"candidates":"x"}`,
		} {
			w := testgw.Recorded(t, d)
			w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: body} }
			_, err := handler(w).Create(t.Context(), w.Ask("/v1/search", `{"provider":"`+provider.Lookup(d).Alias+`","query":"q"}`))
			if err == nil {
				t.Errorf("%s %s: an answer", d, name)
				continue
			}
			testgw.Refused(t, err, 502)
		}
	}
}

// Elements whose type differs from the documented one are skipped.
func TestInvalidElementsAreSkipped(t *testing.T) {
	for d, body := range map[string]string{
		"tavily":    `{"results":[null,1,"a",{},{"url":5,"title":{}},{"url":"https://a.example.com/","title":7,"score":"high"}]}`,
		"brave":     `{"web":{"results":[[],{"url":"https://a.example.com/"}]}}`,
		"openai":    `{"output":[1,null,{"type":"message","content":"x"},{"type":"message","content":[{"type":"output_text","text":"t","annotations":[{"type":"url_citation","url":"https://a.example.com/","start_index":-5},{"type":"url_citation","start_index":99999999999}]}]}]}`,
		"gemini":    `{"candidates":[{"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://a.example.com/"}}],"groundingSupports":[{"groundingChunkIndices":[-1,0,7,"x"],"segment":{"text":"s"}}]}}]}`,
		"anthropic": `{"content":[{"type":"web_search_tool_result","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}},{"type":"text","citations":[{"url":"https://a.example.com/"}]}]}`,
	} {
		w := testgw.Recorded(t, d)
		w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: body} }
		got := searched(t, w, `{"provider":"`+d+`","query":"q"}`)
		if n := got.Get("results.#").Int(); n != 1 || got.Get("results.0.url").Str != "https://a.example.com/" {
			t.Errorf("%s: got %s", d, got.Raw)
		}
		if d == "anthropic" && got.Get("errors.0.message").Str != "max_uses_exceeded" {
			t.Errorf("the failed search is not reported: %s", got.Raw)
		}
	}
}
