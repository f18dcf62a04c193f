package search

import (
	"os"
	"strings"
	"testing"

	"weir/internal/nulls"
	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/provider"
)

// A null member of a provider's answer equals an absent one: a null list of
// results was read as a result without a URL.
func TestNullInAnswerEqualsAbsent(t *testing.T) {
	files, err := os.ReadDir("testdata/vendors")
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]string{"perplexity_sonar": "perplexity/sonar", "openai_gpt-5-search-api": "openai/gpt-5-search-api"}
	n := 0
	for _, file := range files {
		id, ok := strings.CutSuffix(file.Name(), ".json")
		if !ok || strings.HasSuffix(id, ".golden") {
			continue
		}
		recorded, err := os.ReadFile("testdata/vendors/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		own, rest, _ := strings.Cut(id, "_")
		model, fields := models[id], ""
		if model == "" {
			model = provider.Lookup(own).Alias
		}
		if rest == "news" {
			fields = `,"search_type":"news","time_range":"day"`
		}
		answer := func(body []byte) string {
			w := testgw.Recorded(t, own)
			w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: string(body)} }
			resp, err := handler(w).Create(t.Context(), w.Ask("/v1/search", `{"model":"`+model+`","query":"green tea"`+fields+`}`))
			if err != nil {
				return err.Error()
			}
			return string(testgw.Body(t, resp, err))
		}
		n += nulls.Of([]string{"raw"}, recorded).Compare(t, id+": answer", recorded, answer)
	}
	if n < 200 {
		t.Errorf("only %d answers were compared", n)
	}
}
