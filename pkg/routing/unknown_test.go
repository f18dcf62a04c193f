package routing

import (
	"errors"
	"strings"
	"testing"

	"weir/pkg/catalog"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

func TestUnknownModelSuggestsASimilarName(t *testing.T) {
	m := snapshot.New(&store.Machine{
		Version: 1, ID: "abcdefgh01234567",
		Connections:  []store.Connection{{ID: "g", Provider: "groq"}, {ID: "gone", Provider: "no-provider-any-more"}, {ID: "c", Provider: "openai-compatible-0123abcd", Data: store.ProviderData{Prefix: "home"}}},
		Combos:       []store.Combo{{Name: "smart", Models: []string{"groq/x"}}},
		ModelAliases: map[string]string{"fast": "groq/y"},
		CustomModels: []store.CustomModel{{ID: "my-model", ProviderAlias: "groq"}},
	})
	for model, want := range map[string]string{
		"Smart":                  `Unknown model "Smart". Did you mean "smart"? `,
		"fsat":                   `Did you mean "fast"?`,
		"my_model":               `Did you mean "my-model"?`,
		"qrog/llama":             `Did you mean "groq/llama"?`,
		"hme/llama":              `Did you mean "home/llama"?`,
		"nothing-like-it/m":      `Unknown model "nothing-like-it/m". No provider or prefix is named "nothing-like-it". `,
		"nothing like it at all": `Unknown model "nothing like it at all". GET /v1/models lists those that this API key can call.`,
		strings.Repeat("m", 300): `"` + strings.Repeat("m", 100) + `…"`,
	} {
		_, err := Resolve(model, m, catalog.LLM, nil)
		var e *apierr.Error
		if !errors.As(err, &e) || e.Status != 400 || e.Code != "model_not_found" || e.Param != "model" || !strings.Contains(e.Message, want) || strings.Contains(e.Message, "<") {
			t.Errorf("%s: got %v, want %s", model, err, want)
		}
	}
}
