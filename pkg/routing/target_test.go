package routing

import (
	"testing"

	"weir/pkg/catalog"
	"weir/pkg/store"
)

func TestPriceOfATargetFollowsTheSource(t *testing.T) {
	m := machine()
	targets, err := Resolve("openai/text-embedding-3-small", m, catalog.Embedding, nil)
	if err != nil {
		t.Fatal(err)
	}
	to := &targets[0]
	builtIn := to.Price(m)
	if builtIn == "" || to.Price(m) != builtIn {
		t.Fatalf("the catalogue's price is %q, then %q", builtIn, to.Price(m))
	}
	m.SetCatalog(&catalog.Update{FetchedAt: 1, Text: "openai/text-embedding-3-small\t7\n"})
	if p := to.Price(m); p != "7" {
		t.Errorf("with a source: %q", p)
	}
	m.SetCatalog(&catalog.Update{FetchedAt: 2, Text: "openai/text-embedding-3-small\t8\n"}) // as a refresh does
	if p := to.Price(m); p != "8" {
		t.Errorf("after a refresh: %q", p)
	}
	m.Settings.ModelPrices = map[string]string{"openai/text-embedding-3-small": "9"}
	if p := to.Price(m); p != "9" {
		t.Errorf("with a price of the machine's own: %q", p)
	}
	m.Settings.ModelPrices = nil
	m.SetCatalog(&catalog.Update{})
	if p := to.Price(m); p != builtIn {
		t.Errorf("without the source: %q", p)
	}
}

// A target keeps texts for its name, its model, its accounts and their endpoints.
func TestKeptTextsFollowTheTarget(t *testing.T) {
	targets, err := Resolve("openai/gpt-4o", machine(), catalog.LLM, nil)
	if err != nil {
		t.Fatal(err)
	}
	to := targets[0]
	for _, conn := range to.Connections {
		conn.Data.BaseURL = "https://" + conn.ID + ".example/v1"
	}
	for range 2 { // the second time from what is kept
		for _, conn := range to.Connections {
			for _, name := range []string{"chat", "embeddings"} {
				_, want, err := to.Provider.Endpoint(conn, name, to.Model)
				if _, got, _ := to.Endpoint(conn, name); err != nil || got != want {
					t.Errorf("%s of %s: %s, want %s, %v", name, conn.ID, got, want, err)
				}
			}
		}
	}
	renamed, other := to, to
	renamed.Alias, other.Model = "work", "gpt-5"
	if to.ID() != "openai/gpt-4o" || renamed.ID() != "work/gpt-4o" || other.ID() != "openai/gpt-5" {
		t.Errorf("%s, %s, %s", to.ID(), renamed.ID(), other.ID())
	}
}

func TestLimitsOfATarget(t *testing.T) {
	for _, tt := range []struct {
		name    string
		custom  []store.CustomModel
		context int64 // 0 for that of the catalogue
	}{
		{"of the catalogue", nil, 0},
		{"of a custom model", []store.CustomModel{{ID: " gpt-4o ", ProviderAlias: " openai ", ContextLength: 1234}}, 1234},
		{"of a custom model without a context", []store.CustomModel{{ID: "gpt-4o", ProviderAlias: "openai"}}, 0},
		{"of another model", []store.CustomModel{{ID: "gpt-4", ProviderAlias: "openai", ContextLength: 1234}}, 0},
		{"of another provider", []store.CustomModel{{ID: "gpt-4o", ProviderAlias: "lab", ContextLength: 1234}}, 0},
	} {
		m := combos()
		m.CustomModels = tt.custom
		targets, err := Resolve("openai/gpt-4o", m, catalog.LLM, nil)
		if err != nil {
			t.Fatal(err)
		}
		listed := m.Catalog().Facts("openai", "gpt-4o")[0]
		context, output := targets[0].Limits(m)
		if tt.context == 0 {
			tt.context = int64(listed.Context)
		}
		if context == 0 || context != tt.context || output != int64(listed.MaxOutput) || output == 0 {
			t.Errorf("%s: %d and %d", tt.name, context, output)
		}
	}
}
