package models

import (
	"fmt"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/catalog"
)

func TestGeminiEntries(t *testing.T) {
	thinks := catalog.Model{Name: "Flash", Context: 1000, MaxOutput: 10}
	thinks.Caps.Set(catalog.Reasoning, true)
	for _, tt := range []struct {
		e    Entry
		want string
	}{
		{Entry{ID: "gemini/flash", Kind: catalog.LLM, Model: &thinks}, `{"name":"models/gemini/flash","displayName":"Flash","inputTokenLimit":1000,"outputTokenLimit":10,` +
			`"supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"],"thinking":true}`},
		{Entry{ID: `best "one"`, Kind: catalog.LLM, Model: blank(catalog.LLM)}, `{"name":"models/best \"one\"","displayName":"best \"one\"",` +
			`"supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]}`},
		{Entry{ID: "openai/e", Kind: catalog.Embedding, Model: &catalog.Model{Context: 8}}, `{"name":"models/openai/e","displayName":"openai/e","inputTokenLimit":8,` +
			`"supportedGenerationMethods":["embedContent","batchEmbedContents"]}`},
	} {
		if got := string(tt.e.appendGemini(nil)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestGeminiPages(t *testing.T) {
	var list []Entry
	for i := range 1200 {
		list = append(list, Entry{ID: fmt.Sprintf("a/%d", i), Kind: catalog.LLM, Model: blank(catalog.LLM)})
	}
	for _, tt := range []struct {
		query             string
		n                 int
		first, next, fail string
	}{
		{"", 50, "models/a/0", "a/49", ""},
		{"pageSize=0", 50, "models/a/0", "a/49", ""},
		{"pageSize=3&pageToken=a%2F49", 3, "models/a/50", "a/52", ""},
		{"pageSize=5000", 1000, "models/a/0", "a/999", ""},
		{"pageSize=1000&pageToken=a/999", 200, "models/a/1000", "", ""},
		{"pageToken=a/1199", 0, "", "", ""},
		{"pageSize=-1", 0, "", "", "pageSize"},
		{"pageSize=x", 0, "", "", "pageSize"},
		{"pageToken=unknown", 0, "", "", "pageToken"},
	} {
		body, err := geminiPage(list, tt.query)
		if tt.fail != "" {
			if err == nil {
				t.Errorf("%s: accepted", tt.query)
			}
			continue
		}
		r := gjson.ParseBytes(body)
		if n := len(r.Get("models").Array()); err != nil || !gjson.ValidBytes(body) || n != tt.n || r.Get("models.0.name").Str != tt.first || r.Get("nextPageToken").Str != tt.next {
			t.Errorf("%s: %v, %d models, first %s, next %s", tt.query, err, n, r.Get("models.0.name"), r.Get("nextPageToken"))
		}
		if tt.next == "" && r.Get("nextPageToken").Exists() {
			t.Errorf("%s: the last page has a token", tt.query)
		}
	}
}
