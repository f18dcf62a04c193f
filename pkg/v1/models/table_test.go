package models

import (
	"testing"

	"weir/pkg/catalog"
	"weir/pkg/provider"
)

// The generator knows the providers by alias only; these are the promises it
// makes about them.
func TestCatalogMatchesProviderTable(t *testing.T) {
	all := provider.All()
	at := 0
	for _, alias := range catalog.Aliases() {
		for at < len(all) && all[at].Alias != alias {
			at++
		}
		if at == len(all) {
			t.Fatalf("section %q has no row, or stands in another place than its row", alias)
		}
		for _, m := range catalog.Models(alias) {
			if !all[at].Has(m.Kind) && m.Kind != catalog.Realtime {
				t.Errorf("%s/%s is of kind %s, which the provider does not serve: it would never be listed", alias, m.ID, m.Kind)
			}
			if provider.CheckModel(m.ID) != nil {
				t.Errorf("%s/%s cannot be called", alias, m.ID)
			}
		}
	}
}

// A provider without a list of its own must have static models or web entries,
// else a connection to it would show nothing.
func TestEveryProviderListsSomething(t *testing.T) {
	for _, row := range provider.All() {
		if row.Models.None && len(catalog.Models(row.Alias)) == 0 && !row.Search && !row.Fetch {
			t.Errorf("%s lists nothing", row.ID)
		}
	}
}

// Every row with a list can be asked for it.
func TestEveryListHasAnAddress(t *testing.T) {
	for _, row := range provider.All() {
		if !row.Models.None && !row.Serves("models") {
			t.Errorf("%s has a list and no address for it", row.ID)
		}
	}
}

// A connection test has something to call at every provider, that every account can.
func TestEveryProviderCanBeTested(t *testing.T) {
	for _, row := range provider.All() {
		chats := row.Has(catalog.LLM) || row.Has(catalog.Embedding)
		switch {
		case row.Test != "":
			m := catalog.Lookup(row.Alias, row.Test)
			if len(m) == 0 || m[0].Kind != catalog.LLM && m[0].Kind != catalog.Embedding {
				t.Errorf("%s: %s is not a chat or embedding model of the catalogue", row.ID, row.Test)
			}
		case chats && (row.Local || row.Cloud == provider.Azure), row.Search, row.Fetch:
		case row.Check != "":
			if !row.Serves(row.Check) {
				t.Errorf("%s has no endpoint %s", row.ID, row.Check)
			}
		case chats || row.Models.None:
			t.Errorf("%s has nothing that a test can call", row.ID)
		}
	}
}
