package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestPricesOfTheSourceGoBeforeTheCatalogue(t *testing.T) {
	var lines []string
	for _, name := range []string{"openai/a", "openai/a-1", "openai/a/b", "openai/gpt-5", "openai/z", "openrouter/a", "zai/é"} {
		lines = append(lines, name+"\t"+fmt.Sprint(len(lines)+1)+"/2\n")
	}
	p := &Update{Source: "https://prices.example", FetchedAt: 1, Text: strings.Join(lines, "")}
	for i, name := range []string{"openai/a", "openai/a-1", "openai/a/b", "openai/gpt-5", "openai/z", "openrouter/a", "zai/é"} {
		alias, id, _ := strings.Cut(name, "/")
		if got, want := p.PriceOf(alias, id), Price(fmt.Sprint(i+1)+"/2"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"openai/", "openai/b", "openai/gpt-5-mini", "openai/zz", "a/a", "zz/a", "openrouter/"} {
		alias, id, _ := strings.Cut(name, "/")
		if got := p.Price(alias, id); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got, want := p.PriceOf("openai", "gpt-5-mini"), PriceOf("openai", "gpt-5-mini"); got != want || want == "" {
		t.Errorf("a model that the source does not have: %q, want %q", got, want)
	}
	var none *Update
	if got := none.PriceOf("openai", "gpt-5"); got != PriceOf("openai", "gpt-5") {
		t.Errorf("without a source: %q", got)
	}
	if n := testing.AllocsPerRun(100, func() { p.PriceOf("openai", "gpt-5") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestStoredPricesAreReadAsWritten(t *testing.T) {
	p := Update{
		Source: "https://prices.example/ü", Signed: true, IssuedAt: 2, FetchedAt: 3, Rows: 1, Held: 4, Dear: "openai/d", AddedModels: 5, RefusedModels: 6,
		Text: "openai/a\"b\t1/2\n", ModelText: "openai/c\tl\t1000\n",
	}
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := ReadUpdate(raw); !ok || got != p {
		t.Errorf("%+v %t", got, ok)
	}
	for _, bad := range []string{"", "{}", "null", "[1]", `{"fetchedAt":1,"text":"openai/a\t1/2"}`, `{"fetchedAt":1,"modelText":"openai/a\tl"}`, string(raw[:len(raw)-1])} {
		if got, ok := ReadUpdate([]byte(bad)); ok {
			t.Errorf("%s: %+v", bad, got)
		}
	}
}

// A value that was stored before there were models, with the members that builds of that
// time read.
func TestStoredPricesWithoutModelsAreRead(t *testing.T) {
	old := `{"source":"s","signed":true,"issuedAt":2,"fetchedAt":3,"rows":1,"held":4,"text":"openai/a\t1/2\n"}`
	want := Update{Source: "s", Signed: true, IssuedAt: 2, FetchedAt: 3, Rows: 1, Held: 4, Text: "openai/a\t1/2\n"}
	if got, ok := ReadUpdate([]byte(old)); !ok || got != want {
		t.Errorf("%+v %t", got, ok)
	}
	want.ModelText, want.AddedModels = "openai/b\tl\n", 1
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := json.Unmarshal(raw, &read); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{"source": "s", "signed": true, "fetchedAt": 3.0, "rows": 1.0, "held": 4.0, "text": want.Text} {
		if read[name] != v {
			t.Errorf("%s is %v", name, read[name])
		}
	}
}

// added returns an update with models of several aliases, in the order of a source.
func added(t *testing.T, names ...string) *Update {
	t.Helper()
	var text []byte
	slices.SortFunc(names, func(a, b string) int { // as a refresh sorts them
		aliasA, idA, _ := strings.Cut(a, "/")
		aliasB, idB, _ := strings.Cut(b, "/")
		return cmp.Or(strings.Compare(aliasA, aliasB), strings.Compare(idA, idB))
	})
	for i, name := range names {
		alias, id, _ := strings.Cut(name, "/")
		text = AppendModel(text, alias, &Model{ID: id, Kind: LLM, Context: 1000 + i})
	}
	return &Update{FetchedAt: 1, ModelText: string(text)}
}

func TestModelsOfTheSourceAreFound(t *testing.T) {
	names := []string{"openai/a", "openai/a-1", "openai/a/b", "openai/z", "openrouter/a", "openrouter/vendor/a", "zai/y"}
	u := added(t, slices.Clone(names)...)
	for i, name := range names {
		alias, id, _ := strings.Cut(name, "/")
		if got := u.Lookup(alias, id); len(got) != 1 || got[0].ID != id || got[0].Context != 1000+i || got[0].Kind != LLM {
			t.Errorf("%s: %+v", name, got)
		}
		if kind, ok := u.KindOf(alias, id); kind != LLM || !ok {
			t.Errorf("%s: %s %t", name, kind, ok)
		}
	}
	for _, name := range []string{"openai/", "openai/b", "openai/a-", "openai/zz", "a/a", "zz/a", "openrouter/", "anthropic/a", "/a"} {
		alias, id, _ := strings.Cut(name, "/")
		if got := u.Lookup(alias, id); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
		if kind, ok := u.KindOf(alias, id); ok {
			t.Errorf("%s: %s", name, kind)
		}
	}
	var found []string
	for _, f := range u.Find("a") {
		found = append(found, fmt.Sprint(f.Alias, "/", f.ID, f.Added))
	}
	if want := []string{"openai/atrue", "openrouter/atrue"}; !slices.Equal(found, want) {
		t.Errorf("%v, want %v", found, want)
	}
	if got := u.Find(""); got != nil {
		t.Errorf("%v", got)
	}
}

func TestModelsOfTheSourceAreListedInOrder(t *testing.T) {
	u := added(t, "openai/a", "openai/gpt-5", "openai/gpt-5-next", "openai/zz", "openrouter/a", "zz/a")
	for _, alias := range Aliases() {
		want := map[string]int{"openai": 3, "openrouter": 1}[alias]
		got, built := u.Models(alias), Models(alias)
		if len(got) != len(built)+want {
			t.Errorf("%s: %d models and %d", alias, len(built), len(got)-len(built))
		}
		if !slices.IsSortedFunc(got, func(a, b Model) int { return strings.Compare(a.ID, b.ID) }) {
			t.Errorf("%s is not sorted", alias)
		}
		for _, m := range built {
			if !slices.Contains(got, m) {
				t.Errorf("%s/%s has changed", alias, m.ID)
			}
		}
	}
}

// A model of the build keeps its kind, its limits and its capabilities, also if a stored
// update has another row for it.
func TestModelsOfTheBuildStay(t *testing.T) {
	u := &Update{FetchedAt: 1, ModelText: "nvidia/nemotron-3-nano-omni-30b-a3b-reasoning\te\t1\nopenai/gpt-5\te\t1\n"}
	if got, want := u.Lookup("openai", "gpt-5"), Lookup("openai", "gpt-5"); !slices.Equal(got, want) || len(want) != 1 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if kind, _ := u.KindOf("openai", "gpt-5"); kind != LLM {
		t.Errorf("the kind is %s", kind)
	}
	if got, want := u.Find("gpt-5"), Find("gpt-5"); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := u.Models("openai"), Models("openai"); !slices.Equal(got, want) {
		t.Errorf("%d models, want %d", len(got), len(want))
	}
	for _, alias := range Aliases() {
		for _, m := range Models(alias) {
			if got, want := u.UpstreamID(alias, strings.TrimPrefix(m.ID, alias+"/")), UpstreamID(alias, strings.TrimPrefix(m.ID, alias+"/")); got != want {
				t.Errorf("%s/%s: %s, want %s", alias, m.ID, got, want)
			}
		}
	}
}

func TestUpstreamIDOfAModelOfTheSource(t *testing.T) {
	u := added(t, "nvidia/nvidia/next", "nvidia/plain")
	for id, want := range map[string]string{"next": "nvidia/next", "nvidia/next": "nvidia/next", "plain": "plain", "other": "other"} {
		if got := u.UpstreamID("nvidia", id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

func TestModelIsReadAsWritten(t *testing.T) {
	m := Model{ID: "a/b", Name: "A B é", Kind: LLM, Context: 400_000, MaxOutput: 128_000, Dimensions: 3, Input: Text | Images | File, Output: Text | Audio}
	for i := range capabilities {
		if i%3 > 0 {
			m.Caps.Set(1<<i, i%3 == 1)
		}
	}
	line := string(AppendModel(nil, "openai", &m))
	if got := parse(strings.TrimSuffix(strings.TrimPrefix(line, "openai/"), "\n")); got != m {
		t.Errorf("%+v, want %+v", got, m)
	}
	for _, k := range kinds {
		m := Model{ID: "m", Kind: k.kind, Input: k.in, Output: k.out}
		u := &Update{ModelText: string(AppendModel(nil, "openai", &m))}
		if got := u.Lookup("openai", "m"); len(got) != 1 || got[0] != m {
			t.Errorf("%+v, want %+v", got, m)
		}
	}
}

func TestVideoModelOfTheSource(t *testing.T) {
	u := &Update{ModelText: "gemini/veo-99\tv\nopenai/veo-98\tl\nopenai/veo-3.1-generate-preview\tl\nhf/google/veo-3.1-generate-preview\tl\n"}
	for id, want := range map[string]bool{"veo-99": true, "google/veo-99": true, "veo-98": false, "veo-97": false, "veo-3.1-generate-preview": true, "google/veo-3.1-generate-preview": true} {
		if got := u.KnownVideo(id); got != want {
			t.Errorf("KnownVideo(%q) = %v, want %v", id, got, want)
		}
	}
}

func TestLookUpsDoNotAllocateForAnUpdate(t *testing.T) {
	u := added(t, "openai/a", "openai/z")
	for name, do := range map[string][2]func(){
		"KindOf":           {func() { KindOf("openai", "gpt-5") }, func() { u.KindOf("openai", "gpt-5"); u.KindOf("openai", "a") }},
		"Lookup":           {func() { Lookup("openai", "gpt-5") }, func() { u.Lookup("openai", "gpt-5") }},
		"Lookup of an own": {func() { Lookup("openai", "gpt-5") }, func() { u.Lookup("openai", "a") }},
		"UpstreamID":       {func() { UpstreamID("openai", "gpt-5") }, func() { u.UpstreamID("openai", "gpt-5") }},
		"Find":             {func() { Find("gpt-5") }, func() { u.Find("gpt-5") }},
	} {
		built, updated := testing.AllocsPerRun(100, do[0]), testing.AllocsPerRun(100, do[1])
		if updated > built {
			t.Errorf("%s: %v allocations, without an update %v", name, updated, built)
		}
	}
}

func TestTermsAreThoseThatAPriceDistinguishes(t *testing.T) {
	got := fmt.Sprint(Price("4/20 >200000=6/22.5 @flex=2/10 @flex>100=3/9 image@hd@1x2=0.1 image=0.04 audioInput=1").Terms())
	want := fmt.Sprint([]Terms{{}, {Input: 200001}, {Service: "flex"}, {Service: "flex", Input: 101}, {Options: []string{"hd", "1x2"}}})
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !slices.EqualFunc(Price("").Terms(), []Terms{{}}, func(a, b Terms) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Error("a price without clauses has the usual terms alone")
	}
}
