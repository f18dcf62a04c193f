package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"weir/pkg/catalog"
)

// reasons say why the build differs from models.dev, by prefixes of alias/id: the first
// that fits counts. Without one the package, which is newer, is followed.
var reasons = []struct{ prefix, why string }{
	{"openrouter/", "OpenRouter states the cost of each call, which counts; its list changes daily"},
	{"hf/", "depends on the provider that serves the call; the package has the cheapest of November"},
	{"vertex/claude-", "Claude costs on Vertex what it costs at Anthropic, but for the step of long prompts"},
	{"anthropic/claude-sonnet-4-5", "Anthropic's page has a step at 200,000 tokens"},
	{"deepseek/deepseek-v4-pro", "@pydantic/genai-prices 0.1.8 has it as the price of peak hours since 2026-08-17, others cost half"},
	{"azure/", "regional deployments differ; the package has the global ones"},
}

const checkHead = `# Prices compared

Written by ` + "`GOLDEN=update go test ./test/catalog-gen/`" + `: the token prices of the build and those of [models.dev](https://models.dev) of 2026-09-30, which is in ` + "`test/catalog-gen/lists`" + `. The build's are of ` + "`%s@%s`" + ` and of the vendors' pages that ` + "`test/catalog-gen/hand.go`" + ` names. The form is that of [Prices](../prices.md#the-form-of-a-price); only rates that both state are compared.

%d models have a price in both, %d agree in every rate. Of %d chat, embedding and rerank models of the build %d have no price.

| Model | Build | models.dev | Reason for ours |
|---|---|---|---|
`

// differs reports whether two prices have a different rate on terms that both have.
func differs(a, b catalog.Price) bool {
	for _, t := range append(a.Terms(), b.Terms()...) {
		if t.Service != "" || len(t.Options) > 0 {
			continue
		}
		x, _ := a.Rates(t)
		y, _ := b.Rates(t)
		for u := catalog.PerInput; u <= catalog.PerCacheWriteHour; u++ {
			if x[u] > 0 && y[u] > 0 && x[u] != y[u] {
				return true
			}
		}
	}
	return false
}

func TestPricesCheckIsOfThisBuild(t *testing.T) {
	list := readList(modelsDev)
	both, same, all, unpriced := 0, 0, 0, 0
	var rows strings.Builder
	for _, alias := range catalog.Aliases() {
		for _, m := range catalog.Models(alias) {
			if m.Kind == catalog.LLM || m.Kind == catalog.Embedding || m.Kind == catalog.Rerank {
				if all++; m.Price == "" {
					unpriced++
				}
			}
			name := alias + "/" + m.ID
			theirs := catalog.Price(list[name].price)
			if m.Price == "" || theirs == "" {
				continue
			}
			if both++; !differs(m.Price, theirs) {
				same++
				continue
			}
			why := fmt.Sprintf("%s %s, which is newer", chatPackage.name, chatPackage.version)
			for _, r := range reasons {
				if strings.HasPrefix(name, r.prefix) {
					why = r.why
					break
				}
			}
			fmt.Fprintf(&rows, "| `%s` | `%s` | `%s` | %s |\n", name, m.Price, theirs, why)
		}
	}
	if unpriced*100 > all*8 {
		t.Errorf("%d of %d chat, embedding and rerank models have no price, over 8%%", unpriced, all)
	}
	want := fmt.Sprintf(checkHead, chatPackage.name, chatPackage.version, both, same, all, unpriced) + rows.String()
	const file = "../../docs/reference/prices-check.md"
	if os.Getenv("GOLDEN") == "update" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s is not of this build; GOLDEN=update writes it (%v)", file, err)
	}
}

// A context that is the threshold of the price is the vendor's step, not its limit.
func TestNoContextIsTheStepOfAPrice(t *testing.T) {
	for _, alias := range catalog.Aliases() {
		for _, m := range catalog.Models(alias) {
			if strings.HasPrefix(m.ID, "claude-sonnet-4-5") {
				continue // more than 200,000 tokens need a beta header
			}
			if m.Context > 0 && strings.Contains(string(m.Price), fmt.Sprintf(">%d=", m.Context)) {
				t.Errorf("%s/%s: %d tokens of context, and %s", alias, m.ID, m.Context, m.Price)
			}
		}
	}
}
