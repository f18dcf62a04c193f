package catalog

import (
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
	p := Update{Source: "https://prices.example/ü", Signed: true, IssuedAt: 2, FetchedAt: 3, Rows: 1, Held: 4, Text: "openai/a\"b\t1/2\n"}
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := ReadUpdate(raw); !ok || got != p {
		t.Errorf("%+v %t", got, ok)
	}
	for _, bad := range []string{"", "{}", "null", "[1]", `{"fetchedAt":1,"text":"openai/a\t1/2"}`, string(raw[:len(raw)-1])} {
		if got, ok := ReadUpdate([]byte(bad)); ok {
			t.Errorf("%s: %+v", bad, got)
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
