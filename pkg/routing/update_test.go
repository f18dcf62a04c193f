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

// refreshed returns a machine with accounts of providers, and models of the operator's
// source.
func refreshed(models string, providers ...string) *snapshot.Machine {
	rec := &store.Machine{Version: 1, ID: "abcdefgh01234567"}
	for _, id := range providers {
		rec.Connections = append(rec.Connections, store.Connection{ID: "c-" + id, Provider: id})
	}
	m := snapshot.New(rec)
	m.SetCatalog(&catalog.Update{FetchedAt: 1, ModelText: models})
	return m
}

func TestModelsOfTheSourceAreResolved(t *testing.T) {
	const source = "nvidia/nvidia/next\tl\nopenai/embed-next\te\nopenai/gpt-next\tl\nxai/gpt-next\tl\n"
	for _, tt := range []struct {
		model, want string
		kind        catalog.Kind
		providers   []string
	}{
		{"gpt-next", "openai/gpt-next", catalog.LLM, []string{"xai", "openai"}},
		{"gpt-next", "xai/gpt-next", catalog.LLM, []string{"xai"}},
		{"embed-next", "openai/embed-next", catalog.Embedding, []string{"openai"}},
		{"openai/embed-next", "openai/embed-next", catalog.Embedding, []string{"openai"}},
		{"openai/other", "openai/other", "", []string{"openai"}},
		{"nvidia/next", "nvidia/nvidia/next", catalog.LLM, []string{"nvidia"}},
	} {
		targets, err := Resolve(tt.model, refreshed(source, tt.providers...), catalog.LLM, nil)
		if err != nil || len(targets) != 1 || targets[0].ID() != tt.want || targets[0].Kind != tt.kind {
			t.Errorf("%s with %v: %+v %v, want %s, %s", tt.model, tt.providers, targets, err, tt.want, tt.kind)
		}
	}
}

// The source could otherwise send calls of a plain name to another account.
func TestModelsOfTheSourceDoNotTakePlainNames(t *testing.T) {
	const source = "anthropic/deepseek-chat\tl\nopenai/deepseek-chat\te\n"
	plain := ""
	for _, m := range catalog.Models("deepseek") {
		plain = m.ID
	}
	models := strings.ReplaceAll(source, "deepseek-chat", plain)
	for _, tt := range []struct {
		providers []string
		want      string
	}{
		{[]string{"openai", "deepseek", "anthropic"}, "deepseek/" + plain},
		{[]string{"openai"}, "openai/" + plain}, // no other account can serve it
	} {
		for _, kind := range []catalog.Kind{catalog.LLM, catalog.Embedding} {
			targets, err := Resolve(plain, refreshed(models, tt.providers...), kind, nil)
			if err != nil || targets[0].ID() != tt.want {
				t.Errorf("%s with %v: %+v %v, want %s", plain, tt.providers, targets, err, tt.want)
			}
		}
	}
}

// Among models that only the source has, the kind of the endpoint decides.
func TestKindDecidesAmongModelsOfTheSource(t *testing.T) {
	m := refreshed("openai/next\te\nxai/next\tl\n", "openai", "xai")
	for kind, want := range map[catalog.Kind]string{catalog.LLM: "xai/next", catalog.Embedding: "openai/next"} {
		targets, err := Resolve("next", m, kind, nil)
		if err != nil || targets[0].ID() != want {
			t.Errorf("%s: %+v %v, want %s", kind, targets, err, want)
		}
	}
}

func TestModelsOfTheSourceAreSuggested(t *testing.T) {
	_, err := Resolve("glorious_next", refreshed("groq/glorious-next\tl\n", "groq"), catalog.LLM, nil)
	var e *apierr.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, `Did you mean "glorious-next"?`) {
		t.Error(err)
	}
}
