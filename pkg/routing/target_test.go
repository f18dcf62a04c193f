package routing

import (
	"testing"

	"weir/pkg/catalog"
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
