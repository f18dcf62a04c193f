package routing

import (
	"slices"
	"strings"
	"testing"

	"weir/pkg/catalog"
	"weir/pkg/snapshot"
	"weir/pkg/store"
)

// connected returns a machine with a connection for each "provider prefix" and
// what change adds to it.
func connected(change func(*store.Machine), connections ...string) *snapshot.Machine {
	m := &store.Machine{Version: 1, ID: "abcdefghijklmnop"}
	for i, c := range connections {
		id, prefix, _ := strings.Cut(c, " ")
		m.Connections = append(m.Connections, store.Connection{
			ID: string(rune('a' + i)), Provider: id, Data: store.ProviderData{Prefix: prefix},
		})
	}
	if change != nil {
		change(m)
	}
	return snapshot.New(m)
}

func TestResolveAcceptsLimits(t *testing.T) {
	prefix := strings.Repeat("p", 64)
	m := connected(func(m *store.Machine) {
		m.Combos = []store.Combo{{Name: "sixteen", Models: slices.Repeat([]string{"openai/gpt-5"}, MaxTargets)}}
	}, "openai", compat+" "+prefix)
	longest := prefix + "/" + strings.Repeat("m", 256)
	if got, want := show(Resolve(longest, m, catalog.LLM, nil)), compat+" "+longest+"@b"; got != want {
		t.Errorf("model string of %d bytes: got %s, want %s", len(longest), got, want)
	}
	got, err := Resolve("sixteen", m, catalog.LLM, nil)
	if err != nil || len(got) != MaxTargets {
		t.Errorf("combo of %d members: got %d targets, %v", MaxTargets, len(got), err)
	}
}

func TestAliasNamesAliasWithSlash(t *testing.T) {
	m := connected(func(m *store.Machine) {
		m.ModelAliases = map[string]string{"two": "team/one", "team/one": "openai/gpt-5", "gpt-5": "/gpt-5"}
	}, "openai")
	if got := show(Resolve("two", m, catalog.LLM, nil)); got != "openai openai/gpt-5@a" {
		t.Errorf("alias of an alias: got %s", got)
	}
	if got := show(Resolve("gpt-5", m, catalog.LLM, nil)); got != "400 model_not_found" {
		t.Errorf("alias of a model without a provider: got %s", got)
	}
}

func TestAliasesAndCombosNestToDepthLimit(t *testing.T) {
	m := connected(func(m *store.Machine) {
		m.ModelAliases = map[string]string{"x/1": "x/2", "x/2": "x/3", "x/3": "x/4", "x/4": "openai/gpt-5", "x/0": "x/1"}
	}, "openai")
	for model, want := range map[string]string{"x/1": "openai openai/gpt-5@a", "x/0": "400 "} {
		if got := show(Resolve(model, m, catalog.LLM, nil)); got != want {
			t.Errorf("%s: got %s, want %s", model, got, want)
		}
	}
}

// A record of a provider that is no longer in the table shadows no other.
func TestPrefixOfUnknownProviderIsSkipped(t *testing.T) {
	m := connected(nil, "retired lab", compat+" lab")
	if got, want := show(Resolve("lab/a", m, catalog.LLM, nil)), compat+" lab/a@b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Without a connection the answer still states that the model is disabled, by
// each name of the provider and by the vendor's own id.
func TestDisabledModelOfUnconnectedProvider(t *testing.T) {
	for _, tt := range []struct{ under, disabled, model, want string }{
		{"hf", "org/m", "hf/org/m", "404 model_not_found"},
		{"huggingface", "org/m", "hf/org/m", "404 model_not_found"},
		{"nvidia", "nvidia/cosmos-reason2-8b", "nvidia/cosmos-reason2-8b", "404 model_not_found"},
		{"hf", "org/other", "hf/org/m", "400 no_credentials"},
	} {
		m := connected(func(m *store.Machine) {
			m.Disabled = []store.DisabledModels{{ProviderAlias: tt.under, IDs: []string{tt.disabled}}}
		}, "openai")
		if got := show(Resolve(tt.model, m, catalog.LLM, nil)); got != tt.want {
			t.Errorf("%s with %s of %s disabled: got %s, want %s", tt.model, tt.disabled, tt.under, got, tt.want)
		}
	}
}

// gpt-4o is a model of OpenAI and of Azure, in this order.
func TestBareIDPrefersConnectedProvider(t *testing.T) {
	for _, tt := range []struct {
		connections []string
		want        string
	}{
		{[]string{"azure", "openai"}, "openai openai/gpt-4o@b"},
		{[]string{"azure"}, "azure azure/gpt-4o@a"},
		{nil, "400 no_credentials"},
	} {
		m := connected(nil, tt.connections...)
		if got := show(Resolve("gpt-4o", m, catalog.LLM, nil)); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.connections, got, tt.want)
		}
	}
}
