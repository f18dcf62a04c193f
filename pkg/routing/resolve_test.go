package routing

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

const compat = "openai-compatible-0123abcd"

func machine(more ...store.Combo) *snapshot.Machine {
	conn := func(id, provider, prefix string, inactive bool) store.Connection {
		return store.Connection{ID: id, Provider: provider, Inactive: inactive, Data: store.ProviderData{Prefix: prefix}}
	}
	loop := []store.Combo{}
	for i := range 100 {
		loop = append(loop, store.Combo{Name: fmt.Sprintf("deep-%d", i), Models: []string{fmt.Sprintf("deep-%d", i+1)}})
	}
	wide := store.Combo{Name: "wide"}
	for range 1000 {
		wide.Models = append(wide.Models, "openai/text-embedding-3-small")
	}
	half := store.Combo{Name: "half"}
	for range 9 {
		half.Models = append(half.Models, "openai/text-embedding-3-small")
	}
	return snapshot.New(&store.Machine{
		Version: 1, ID: "abcdefghijklmnop",
		Connections: []store.Connection{
			conn("o1", "openai", "", false), conn("o2", "openai", "work", false), conn("o3", "openai", "", true),
			conn("c1", compat, "lab", false), conn("c2", compat, " lab ", false), conn("c3", compat, "other", false),
			conn("r1", "openrouter", "", false), conn("g1", "gemini", "", true), conn("n1", "nvidia", " rer ", false),
			conn("h1", "huggingface", "", false), conn("t1", "tavily", "", false),
		},
		Combos: append(append(loop, wide, half,
			store.Combo{Name: "best", Models: []string{"lab/a", "openai/text-embedding-3-small"}},
			store.Combo{Name: "nested", Models: []string{"best", "openrouter/x/y"}},
			store.Combo{Name: "partly", Models: []string{"gemini/gone", "openai/hidden-1", "lab/a"}},
			store.Combo{Name: "none", Models: []string{"gemini/gone", "openai/hidden-1"}},
			store.Combo{Name: "self", Models: []string{"self"}},
			store.Combo{Name: "ping", Models: []string{"lab/a", "pong"}},
			store.Combo{Name: "pong", Models: []string{"ping"}},
			store.Combo{Name: "twohalves", Models: []string{"half", "half"}},
			store.Combo{Name: "turns", Strategy: "round-robin", Models: []string{"lab/a", "lab/b", "lab/c"}},
			store.Combo{Name: "empty"}, store.Combo{Name: "with-hidden-4", Models: []string{"nvidia/hidden-4", "hidden-4", "lab/a"}},
			store.Combo{Name: "text-embedding-3-small", Models: []string{"lab/shadow"}},
		), more...),
		ModelAliases: map[string]string{"fast": "openai/text-embedding-3-small", "chain": "lab/z", "plain": "noslash", "bad": "nobody/x", "via": "openai/hidden-1", "pair/x": "lab/p", "to-hidden-4": "nvidia/hidden-4"},
		CustomModels: []store.CustomModel{{ID: "house/embed", ProviderAlias: "lab"}, {ID: " spaced ", ProviderAlias: "openai"}, {ID: "hidden-4", ProviderAlias: "nvidia"}},
		Disabled: []store.DisabledModels{
			{ProviderAlias: "openai", IDs: []string{"hidden-1"}}, {ProviderAlias: "lab", IDs: []string{"hidden-2"}},
			{ProviderAlias: "huggingface", IDs: []string{"hidden-3"}}, {ProviderAlias: " rer ", IDs: []string{" hidden-4 "}},
			{ProviderAlias: "openai", IDs: []string{"openai/hidden-5"}},
		},
	})
}

func show(targets []Target, err error) string {
	var e *apierr.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("%d %s", e.Status, e.Code)
	}
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for i, t := range targets {
		if i > 0 {
			b.WriteString(" | ")
		}
		fmt.Fprintf(&b, "%s %s@", t.Provider.ID, t.ID())
		for k, c := range t.Connections {
			if k > 0 {
				b.WriteByte(',')
			}
			b.WriteString(c.ID)
		}
	}
	return b.String()
}

func TestResolve(t *testing.T) {
	const embed = catalog.Embedding
	tests := []struct {
		name, model string
		kind        catalog.Kind
		want        string
	}{
		{"alias", "openai/text-embedding-3-large", embed, "openai openai/text-embedding-3-large@o1,o2"},
		{"prefix_takes_only_its_connections", "work/m", embed, "openai work/m@o2"},
		{"prefix_of_compatible_is_trimmed", "lab/m", embed, compat + " lab/m@c1,c2"},
		{"compatible_by_id", compat + "/m", embed, compat + " " + compat + "/m@c1,c2,c3"},
		{"alias_differs_from_id", "hf/org/name", embed, "huggingface hf/org/name@h1"},
		{"provider_id", "huggingface/org/name", embed, "huggingface hf/org/name@h1"},
		{"slashes_in_the_model", "openrouter/vendor/model:free", embed, "openrouter openrouter/vendor/model:free@r1"},
		{"combo_in_order", "best", embed, compat + " lab/a@c1,c2 | openai openai/text-embedding-3-small@o1,o2"},
		{"combo_nested", "nested", embed, compat + " lab/a@c1,c2 | openai openai/text-embedding-3-small@o1,o2 | openrouter openrouter/x/y@r1"},
		{"combo_before_catalogue", "text-embedding-3-small", embed, compat + " lab/shadow@c1,c2"},
		{"combo_leaves_out_members_that_fail", "partly", embed, compat + " lab/a@c1,c2"},
		{"combo_all_fail_gives_the_first", "none", embed, "400 no_credentials"},
		{"combo_empty", "empty", embed, "400 "},
		{"combo_self", "self", embed, "400 "},
		{"combo_loop_is_refused_whole", "ping", embed, "400 "},
		{"combo_100_deep", "deep-0", embed, "400 "},
		{"combo_1000_members", "wide", embed, "400 "},
		{"combo_18_members_by_nesting", "twohalves", embed, "400 "},
		{"alias_map", "fast", embed, "openai openai/text-embedding-3-small@o1,o2"},
		{"alias_map_with_slash_in_the_name", "pair/x", embed, compat + " lab/p@c1,c2"},
		{"alias_map_without_slash_is_ignored", "plain", embed, "400 model_not_found"},
		{"alias_map_to_nowhere", "bad", embed, "400 model_not_found"},
		{"alias_map_to_disabled", "via", embed, "404 model_not_found"},
		{"custom", "house/embed", embed, compat + " lab/house/embed@c1,c2"},
		{"custom_is_trimmed", "spaced", embed, "openai openai/spaced@o1,o2"},
		{"bare_static_id", "text-embedding-3-large", embed, "openai openai/text-embedding-3-large@o1,o2"},
		{"disabled_by_alias", "openai/hidden-1", embed, "404 model_not_found"},
		{"disabled_in_another_case", "openai/HIDDEN-1", embed, "404 model_not_found"},
		{"disabled_with_space", "openai/hidden-1 ", embed, "404 model_not_found"},
		{"disabled_by_prefix_in_another_case", "lab/Hidden-2", embed, "404 model_not_found"},
		{"disabled_seen_through_prefix", "work/hidden-1", embed, "404 model_not_found"},
		{"disabled_by_prefix", "lab/hidden-2", embed, "404 model_not_found"},
		{"disabled_by_prefix_not_under_another", "other/hidden-2", embed, compat + " other/hidden-2@c3"},
		{"disabled_by_provider_id", "hf/hidden-3", embed, "404 model_not_found"},
		{"disabled_by_prefix_leaves_the_other_connections", compat + "/hidden-2", embed, compat + " " + compat + "/hidden-2@c3"},
		{"disabled_by_prefix_under_the_provider_id", "rer/hidden-4", embed, "404 model_not_found"},
		{"disabled_by_prefix_under_the_alias", "nvidia/hidden-4", embed, "404 model_not_found"},
		{"disabled_by_prefix_as_a_custom_model", "hidden-4", embed, "404 model_not_found"},
		{"disabled_by_prefix_in_the_alias_map", "to-hidden-4", embed, "404 model_not_found"},
		{"disabled_by_prefix_in_a_combo", "with-hidden-4", embed, compat + " lab/a@c1,c2"},
		{"disabled_with_its_provider_in_front", "nvidia/nvidia/hidden-4", embed, "404 model_not_found"},
		{"disabled_with_a_name_in_the_list", "openai/hidden-5", embed, "404 model_not_found"},
		{"inactive_connection", "gemini/x", embed, "400 no_credentials"},
		{"never_connected", "voyage/voyage-3", embed, "400 no_credentials"},
		{"unknown_alias", "nobody/x", embed, "400 model_not_found"},
		{"unknown_bare", "no-such-model", embed, "400 model_not_found"},
		{"unknown_compatible", "openai-compatible-ffffffff/m", embed, "400 no_credentials"},
		{"search_provider_alone", "tavily", catalog.WebSearch, "tavily tavily/search@t1"},
		{"fetch_provider_alone", "tavily", catalog.WebFetch, "tavily tavily/fetch@t1"},
		{"provider_alone_is_no_model", "tavily", embed, "400 model_not_found"},
		{"empty", "", embed, "400 "},
		{"long", strings.Repeat("a", 400), embed, "400 "},
		{"model_over_256", "openai/" + strings.Repeat("a", 257), embed, "400 "},
		{"no_model", "openai/", embed, "400 "},
		{"traversal", "openai/../../admin", embed, "400 "},
		{"encoded_traversal", "openai/%2e%2e/x", embed, "400 "},
		{"query", "openai/x?key=1", embed, "400 "},
		{"fragment", "openai/x#", embed, "400 "},
		{"empty_segment", "openai//x", embed, "400 "},
		{"nul", "openai/x\x00", embed, "400 "},
		{"tag_and_version", "openai/org/model:tag@v1", embed, "openai openai/org/model:tag@v1@o1,o2"},
	}
	m := machine()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := show(Resolve(tt.model, m, tt.kind, nil)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestResolveReturnsTheVendorsIDAndKind(t *testing.T) {
	got, err := Resolve("openai/text-embedding-3-small", machine(), catalog.Embedding, nil)
	if err != nil || got[0].Kind != catalog.Embedding {
		t.Fatalf("kind %q, %v", got[0].Kind, err)
	}
	// A list leaves out "nvidia/", also where it is the vendor's own name.
	for _, row := range catalog.Models("nvidia") {
		if id, ok := strings.CutPrefix(row.ID, "nvidia/"); ok {
			got, err := Resolve("nvidia/"+id, machine(), catalog.Embedding, nil)
			if err != nil || got[0].Model != row.ID {
				t.Fatalf("%s: got %s, want %s (%v)", id, got[0].Model, row.ID, err)
			}
			return
		}
	}
	t.Fatal("no nvidia model of nvidia's own in the catalogue")
}

func TestRoundRobinComboTurns(t *testing.T) {
	m := machine()
	var first []string
	for range 4 {
		got, err := Resolve("turns", m, catalog.Embedding, nil)
		if err != nil || len(got) != 3 {
			t.Fatalf("%v %v", got, err)
		}
		first = append(first, got[0].Model)
	}
	if s := strings.Join(first, ""); s != "abca" {
		t.Errorf("got %s, want abca", s)
	}
}

// Within another combo it takes turns too; who only looks takes none.
func TestNestedRoundRobinComboTurns(t *testing.T) {
	m := machine(
		store.Combo{Name: "inner", Strategy: "round-robin", Models: []string{"lab/a", "lab/b"}},
		store.Combo{Name: "outer", Models: []string{"inner", "lab/c"}},
	)
	var all []string
	for i := range 5 {
		at := m
		if i == 2 {
			at = m.ReadOnly()
		}
		got, err := Resolve("outer", at, catalog.Embedding, nil)
		if err != nil || len(got) != 3 {
			t.Fatalf("%v %v", got, err)
		}
		all = append(all, got[0].Model+got[1].Model+got[2].Model)
	}
	if s := strings.Join(all, " "); s != "abc bac abc abc bac" {
		t.Errorf("got %s", s)
	}
}

func TestResolveAllocatesOnlyTheTargets(t *testing.T) {
	m := machine()
	n := testing.AllocsPerRun(100, func() {
		if _, err := Resolve("openai/text-embedding-3-small", m, catalog.Embedding, nil); err != nil {
			t.Fatal(err)
		}
	})
	if n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}

func BenchmarkResolve(b *testing.B) {
	m := machine()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Resolve("openai/text-embedding-3-small", m, catalog.Embedding, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// The inner combo took a turn with each request, also when the outer one had
// another member first: with two members each, one was never asked.
func TestNestedRoundRobinCombos(t *testing.T) {
	m := machine(
		store.Combo{Name: "inner", Strategy: "round-robin", Models: []string{"lab/a", "lab/b"}},
		store.Combo{Name: "outer", Strategy: "round-robin", Models: []string{"lab/c", "inner"}},
	)
	first := ""
	for range 8 {
		got, err := Resolve("outer", m, catalog.Embedding, nil)
		if err != nil || len(got) != 3 {
			t.Fatalf("%v %v", got, err)
		}
		first += got[0].Model
	}
	if first != "cacbcacb" {
		t.Errorf("asked first %s, want cacbcacb", first)
	}
}

// A regression: a budget or price of a model did not hold for its other names.
func TestLimitsHoldUnderEveryNameOfAModel(t *testing.T) {
	m := machine()
	names := []string{"lab/gpt-x", compat + "/gpt-x", "LAB/gpt-x", "lab/GPT-X", " lab/gpt-x ", "lab/gpt*", compat + "/GPT*"}
	for _, called := range []string{"lab/gpt-x", compat + "/gpt-x", "lab/GPT-X", "lab/gpt-x "} {
		targets, err := Resolve(called, m, catalog.LLM, nil)
		if err != nil || len(targets) != 1 {
			t.Fatal(called, show(targets, err))
		}
		to := &targets[0]
		for _, limited := range names {
			if !to.Charged(&store.Budget{Models: []string{limited}}, "k", called) {
				t.Errorf("a call of %q is not covered by a budget of %q", called, limited)
			}
			if strings.HasSuffix(limited, "*") {
				continue
			}
			own := *m
			own.Settings.ModelPrices = map[string]string{limited: "1/2"}
			fresh := *to
			fresh.fixed = nil
			if p := fresh.OwnPrice(&own); p != "1/2" {
				t.Errorf("a call of %q has price %q, that of %q is 1/2", called, p, limited)
			}
		}
		for _, other := range []string{"lab/gpt", "lab/gpt-xx", "openai/gpt-x", "gpt-x"} {
			if to.Charged(&store.Budget{Models: []string{other}}, "k", called) {
				t.Errorf("a call of %q is covered by a budget of %q", called, other)
			}
		}
	}
	if p := (&Target{Provider: provider.ByAlias("openai"), Alias: "openai", Model: "GPT-4o"}).Price(nil); p == "" {
		t.Error("a model in upper case has no price")
	}
}

// A regression: a budget of a combo or an alias did not cover calls that came to it
// through another combo.
func TestBudgetsCoverCombosWithinCombos(t *testing.T) {
	m := machine(store.Combo{Name: "outer", Models: []string{"inner", "lab/b"}}, store.Combo{Name: "inner", Models: []string{"fast", "lab/a"}})
	m.Budgets = []store.Budget{{ID: "b"}}
	targets, err := Resolve("outer", m, catalog.Embedding, nil)
	if err != nil || len(targets) != 3 {
		t.Fatal(show(targets, err))
	}
	for name, want := range map[string]string{"outer": "yyy", "inner": "yyn", "fast": "ynn", "lab/a": "nyn", "lab/*": "nyy", "nested": "nnn"} {
		got := ""
		for i := range targets {
			to := &targets[i]
			got += map[bool]string{true: "y", false: "n"}[to.Charged(&store.Budget{Models: []string{name}}, "k", "outer")]
		}
		if got != want {
			t.Errorf("a budget of %s covers %s, want %s", name, got, want)
		}
	}
	if to := &targets[0]; to.Charged(&store.Budget{KeyID: "other", Models: []string{"inner"}}, "k", "outer") {
		t.Error("a budget of another key covers the call")
	}
}
