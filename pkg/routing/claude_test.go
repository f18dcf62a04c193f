package routing

import (
	"strings"
	"testing"

	"weir/pkg/catalog"
	"weir/pkg/snapshot"
	"weir/pkg/store"
)

// Claude Code's names resolve like the plain ones, whatever they name.
func TestResolveClaudeNames(t *testing.T) {
	m := machine()
	for _, name := range []string{
		"openai/text-embedding-3-large", "best", "turns", "fast", "house/embed", "text-embedding-3-large", "lab/hidden-2", "nobody/x", "no-such-model",
	} {
		want := show(Resolve(name, m.ReadOnly(), catalog.Embedding, nil))
		for _, head := range []string{"claude-weir/", "claude-weir/claude-weir/"} {
			if got := show(Resolve(head+name, m.ReadOnly(), catalog.Embedding, nil)); got != want {
				t.Errorf("%s: got %s, want %s", head+name, got, want)
			}
		}
	}
	for _, name := range []string{"claude-weir/", "claude-weir", "claude-weir//x"} {
		if got := show(Resolve(name, m, catalog.LLM, nil)); got != "400 " && got != "400 model_not_found" {
			t.Errorf("%q: got %s", name, got)
		}
	}
}

func TestResolveClaudeFamilies(t *testing.T) {
	m := snapshot.New(&store.Machine{
		Version: 1, ID: "abcdefghijklmnop",
		Connections: []store.Connection{
			{ID: "a1", Provider: "anthropic"}, {ID: "c1", Provider: compat, Data: store.ProviderData{Prefix: "lab"}},
		},
		Combos:       []store.Combo{{Name: "small", Models: []string{"lab/a", "claude-haiku-4-5"}}, {Name: "claude-opus-4-5", Models: []string{"lab/own"}}},
		ModelAliases: map[string]string{"claude-sonnet-4-5": "lab/alias"},
		Settings:     store.Settings{ClaudeOpus: "lab/big", ClaudeSonnet: "claude-weir/claude-opus-5", ClaudeHaiku: "small"},
	})
	for _, tt := range []struct{ model, want string }{
		{"claude-opus-4-6", compat + " lab/big@c1"},
		{"claude-opus-4@20250514", compat + " lab/big@c1"},
		{"opus", compat + " lab/big@c1"},
		{"claude-weir/claude-opus-4-6", compat + " lab/big@c1"},
		// A plain Claude name that a setting names is Anthropic's own.
		{"claude-sonnet-4-6", "anthropic anthropic/claude-opus-5@a1"},
		{"claude-3-5-haiku-20241022", compat + " lab/a@c1 | anthropic anthropic/claude-haiku-4-5@a1"},
		// Names of the machine and names with a provider are what they were.
		{"claude-opus-4-5", compat + " lab/own@c1"},
		{"claude-sonnet-4-5", compat + " lab/alias@c1"},
		{"anthropic/claude-opus-4-6", "anthropic anthropic/claude-opus-4-6@a1"},
		{"claude-fable-5", "anthropic anthropic/claude-fable-5@a1"},
		{"opus-4", "400 model_not_found"},
		{"claude-opusculum", "400 model_not_found"},
	} {
		for range 2 { // the second time from what the snapshot keeps
			if got := show(Resolve(tt.model, m, catalog.LLM, nil)); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.model, got, tt.want)
			}
		}
	}
	loop := snapshot.New(&store.Machine{
		Version: 1, ID: "abcdefghijklmnop", Connections: m.Connections,
		Combos:   []store.Combo{{Name: "loop", Models: []string{"claude-haiku-4-5"}}},
		Settings: store.Settings{ClaudeHaiku: "loop"},
	})
	for _, name := range []string{"claude-haiku-4-5", "loop"} {
		if got := show(Resolve(name, loop, catalog.LLM, nil)); got != "anthropic anthropic/claude-haiku-4-5@a1" {
			t.Errorf("%s, a combo of its own family: got %s", name, got)
		}
	}
}

func TestClaudeNameWithoutAccountNamesTheSetting(t *testing.T) {
	m := snapshot.New(&store.Machine{Version: 1, ID: "abcdefghijklmnop"})
	for name, hint := range map[string]bool{"claude-haiku-4-5": true, "anthropic/claude-haiku-4-5": false, "text-embedding-3-small": false} {
		_, err := Resolve(name, m, catalog.LLM, nil)
		if err == nil || strings.Contains(err.Error(), "on the page Settings") != hint {
			t.Errorf("%s: %v", name, err)
		}
	}
}
