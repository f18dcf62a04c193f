package models

import (
	"testing"

	"weir/pkg/provider"
)

// In any list of models of a provider the ids are bounded, named once and
// not empty, and another page is one of the same list.
func FuzzLists(f *testing.F) {
	f.Add(`{"data":[{"id":"a"},{"id":"b","type":"embedding","context_length":1e9},{"name":"c"}],"has_more":true,"last_id":"b"}`)
	f.Add(`[{"id":"a"},{"id":"a"},{"id":1},null,"x",{"model":"d","deprecation":{}}]`)
	f.Add(`{"models":[{"name":"models/gemini-x","supportedGenerationMethods":["generateContent"],"inputTokenLimit":-1}],"nextPageToken":"t&x"}`)
	f.Add(`{"modelSummaries":[{"modelId":"m","inferenceTypesSupported":["INFERENCE_PROFILE"]}],"inferenceProfileSummaries":[{"inferenceProfileId":"us.m"}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > 1<<16 {
			return
		}
		for _, row := range provider.All() {
			found, ok := readList(row, []byte(body))
			if !ok {
				continue
			}
			seen := map[string]bool{}
			for _, m := range found {
				if m.ID == "" || len(m.ID) > maxID || seen[m.ID] {
					t.Errorf("%s: %q of %s", row.ID, m.ID, body)
				}
				seen[m.ID] = true
			}
			if query, _ := nextPage(&row.Models, []byte(body), 1, len(found)); query != "" && row.Models.Token == "" {
				t.Errorf("%s: the next page is %q", row.ID, query)
			}
			if len(withProfiles(found, []byte(body))) > 2*maxModels {
				t.Errorf("%s: too many models", row.ID)
			}
		}
	})
}
