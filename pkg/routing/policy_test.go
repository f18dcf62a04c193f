package routing

import (
	"os"
	"slices"
	"strings"
	"testing"

	"weir/pkg/catalog"
	"weir/pkg/store"
)

// after returns the models that are tried after each one fails in a class.
func after(targets []Target, c Class) string {
	models := make([]string, 0, len(targets))
	for i := 0; i >= 0; i = After(targets, i, c) {
		models = append(models, targets[i].Model)
	}
	return strings.Join(models, " ")
}

func TestPolicyOfCombos(t *testing.T) {
	inner := func(on map[string]string) store.Combo {
		return store.Combo{Name: "inner", Models: []string{"lab/b", "lab/c"}, On: on}
	}
	outer := func(on map[string]string) store.Combo {
		return store.Combo{Name: "outer", Models: []string{"lab/a", "inner", "lab/d"}, On: on}
	}
	stop, next := map[string]string{"limit": Stop, "any_4xx": Stop}, map[string]string{"limit": Next, "any_4xx": Next, "content_filter": Stop}
	for _, tt := range []struct {
		name         string
		inner, outer map[string]string
		class        Class
		want         string
	}{
		{"default", nil, nil, Limit, "a b c d"},
		{"default", nil, nil, Unavailable, "a b c d"},
		{"default", nil, nil, ContextLength, "a b c d"},
		{"default", nil, nil, ModelGone, "a b c d"},
		{"default", nil, nil, ContentFilter, "a"},
		{"default", nil, nil, Any4xx, "a"},
		{"default", nil, nil, Final, "a"},
		{"an unsuitable member never ends a combo", stop, stop, Unsuitable, "a b c d"},
		{"the outer combo ends", nil, stop, Limit, "a"},
		{"the inner combo ends, the outer goes on", stop, nil, Limit, "a b d"},
		{"the inner combo goes on, the outer ends after it", next, nil, Any4xx, "a"},
		{"both go on", next, next, Any4xx, "a b c d"},
		{"any_4xx holds for filtered content", nil, map[string]string{"any_4xx": Next}, ContentFilter, "a b d"},
		{"content_filter goes before any_4xx", nil, next, ContentFilter, "a"},
	} {
		m := machine(inner(tt.inner), outer(tt.outer))
		targets, err := Resolve("outer", m, catalog.LLM, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := after(targets, tt.class); got != tt.want {
			t.Errorf("%s, %s: tried %s, want %s", tt.name, tt.class, got, tt.want)
		}
	}
	m := machine(inner(stop))
	targets, _ := Resolve("inner", m, catalog.LLM, nil)
	if got, want := Policy(targets, 0), []string{"unavailable", "context_length", "model_gone"}; !slices.Equal(got, want) {
		t.Errorf("Policy = %v, want %v", got, want)
	}
	if got := Policy(targets, 1); got != nil {
		t.Errorf("Policy of the last member = %v", got)
	}
}

// docs/fallback.md lists the classes in this order, with the defaults.
func TestDocumentListsTheClasses(t *testing.T) {
	page, err := os.ReadFile("../../docs/fallback.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## Combos\n")
	for _, row := range Classes {
		value := Stop
		if row.Next {
			value = Next
		}
		if row.Class == ContentFilter {
			value = "as `any_4xx`"
		}
		_, after, ok := strings.Cut(rest, "\n| `"+row.Name+"` |")
		line, _, _ := strings.Cut(after, "\n")
		if rest = after; !ok || !strings.HasSuffix(line, "| "+value+" |") {
			t.Errorf("%s: no row with the default %s", row.Name, value)
		}
	}
}

// A target that a key may not use is left out of its combo.
func TestPolicyWithoutSomeMembers(t *testing.T) {
	m := machine(store.Combo{Name: "all", Models: []string{"lab/a", "lab/b", "lab/c"}, On: map[string]string{"any_4xx": Next}})
	targets, err := Resolve("all", m, catalog.LLM, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := after(slices.Delete(targets, 1, 2), Any4xx); got != "a c" {
		t.Errorf("tried %s", got)
	}
}
