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

// A regression: a paused account was answered with an unknown model, and its prefix with an
// unknown one.
func TestPausedAccountsAreNamed(t *testing.T) {
	m := snapshot.New(&store.Machine{
		Version: 1, ID: "abcdefgh01234567",
		Connections: []store.Connection{
			{ID: "c1", Name: "oa", Inactive: true, Provider: "openai-compatible-0123abcd", Data: store.ProviderData{Prefix: "oa"}},
			{ID: "c2", Name: "Team one", Inactive: true, Provider: "groq"}, {ID: "c3", Name: "b", Inactive: true, Provider: "groq"},
			{ID: "c4", Name: "main", Provider: "openai"}, {ID: "c5", Name: "other", Inactive: true, Provider: "openai"},
		},
		Combos: []store.Combo{{Name: "smart", Models: []string{"oa/x"}}},
	})
	for model, want := range map[string]string{
		"oa/ok":             `The account "oa" of this model is paused. Enable it on the page Providers, or with weir accounts resume oa.`,
		"smart":             `The account "oa" of this model is paused.`,
		"groq/llama":        `The accounts of this model are paused: "Team one" and 1 more. Enable it on the page Providers, or with weir accounts resume c2.`,
		"openai/gpt-5.5":    "",
		"anthropic/claude":  "No Anthropic account is connected: connect one, or choose another model.",
		"paused-of-none/ok": `No provider or prefix is named "paused-of-none".`,
	} {
		_, err := Resolve(model, m, catalog.LLM, nil)
		var e *apierr.Error
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", model, err)
			}
			continue
		}
		if !errors.As(err, &e) || e.Status != 400 || !strings.Contains(e.Message, want) || strings.Contains(want, "paused.") && e.Code != "no_credentials" {
			t.Errorf("%s: got %v, want %s", model, err, want)
		}
	}
}
