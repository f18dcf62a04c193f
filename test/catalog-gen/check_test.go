package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/pkg/catalog"
)

const checkHead = `# Prices compared

Written by ` + "`GOLDEN=update go test ./test/catalog-gen/`" + `: the token prices and contexts of the build beside those of two public lists, whose extracts are in ` + "`test/catalog-gen/lists`" + `:

- [models.dev](https://models.dev) of 2026-09-30
- [genai-prices](https://github.com/pydantic/genai-prices) 0.1.8 of 2026-09-23, which its makers collect from the vendors' pages

The build's prices are of ` + "`%s@%s`" + ` of 2026-11-10, of models.dev for what it lacks, and of the vendors' pages that ` + "`test/catalog-gen/hand.go`" + ` names. The package is made from models.dev, but for OpenRouter, whose own list it has: of most chat models agreement with models.dev confirms that the price has not changed since September, and agreement with genai-prices that it is right.

The form is that of [Prices](../prices.md#the-form-of-a-price). Only rates that both sides state are compared, on the usual terms. Rates that are less than 0.1%% apart and contexts that are less than 5%% apart agree: lists round them. Of genai-prices the price of %s counts, where it depends on the day or the hour.

## Agreement

Of %d chat, embedding and rerank models of the build %d have no price.

`

// compared are the parts that are compared.
var compared = [...]string{"input", "output", "cached read", "cache write", "steps for long prompts", "context"}

const steps, context = 4, 5 // in compared

// agreement reports of each part whether the build and a list both state it, and whether
// they state the same. Steps are stated if one of two prices has some.
func agreement(m catalog.Model, l listed) (both, same [len(compared)]bool) {
	ours, theirs := tokenClauses(string(m.Price)), tokenClauses(l.price)
	x, _ := catalog.Price(ours).Rates(catalog.Terms{})
	y, _ := catalog.Price(theirs).Rates(catalog.Terms{})
	for u := catalog.PerInput; u <= catalog.PerCacheWriteHour; u++ {
		part := min(int(u), steps-1)
		if x[u] > 0 && y[u] > 0 {
			same[part] = math.Abs(x[u]-y[u]) < x[u]/1000 && (same[part] || !both[part])
			both[part] = true
		}
	}
	if ours != "" && theirs != "" {
		_, a, _ := strings.Cut(ours, " ")
		_, b, _ := strings.Cut(theirs, " ")
		both[steps], same[steps] = a != "" || b != "", sameSteps(a, b)
	}
	both[context] = m.Context > 0 && l.context > 0
	same[context] = min(m.Context, l.context)*20 > max(m.Context, l.context)*19
	return both, same
}

// sameSteps reports whether clauses have the same thresholds and rates of input and output.
func sameSteps(a, b string) bool {
	return slices.EqualFunc(strings.Fields(a), strings.Fields(b), func(a, b string) bool {
		return slices.Equal(strings.SplitN(a+"//", "/", 3)[:2], strings.SplitN(b+"//", "/", 3)[:2])
	})
}

// tokenClauses returns the clauses with the rates of tokens on the usual terms.
func tokenClauses(price string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(price), func(c string) bool {
		return strings.Contains(c, "=") && c[0] != '>'
	}), " ")
}

// cell is what one side states of a model.
func cell(price string, context int, withContext bool) string {
	s := "–"
	if price = tokenClauses(price); price != "" {
		s = "`" + price + "`"
	}
	if withContext && context > 0 {
		s += ", " + strconv.Itoa(context) + " tokens"
	}
	return s
}

// reason returns why the build's price of a model stands although a list differs, or "".
func reason(alias, id string) string {
	for _, r := range reasons {
		if slices.Contains(strings.Fields(r.models), alias+"/"+id) {
			return r.why
		}
	}
	ofHand := slices.ContainsFunc(prices, func(p struct{ alias, ids, price string }) bool {
		return slices.Contains(strings.Fields(p.alias), alias) && slices.Contains(strings.Fields(p.ids), id)
	})
	if alias == "openrouter" && !ofHand {
		return "OpenRouter's list of 2026-11-10"
	}
	return ""
}

func TestPricesCheckIsOfThisBuild(t *testing.T) {
	lists := []map[string]listed{readList(modelsDev), readList(genai)}
	var both, same [2][len(compared)]int
	var models, agree [2]int
	all, unpriced := 0, 0
	var tables strings.Builder
	needed := map[string]bool{}
	for _, alias := range catalog.Aliases() {
		var rows strings.Builder
		for _, m := range catalog.Models(alias) {
			if m.Kind == catalog.LLM || m.Kind == catalog.Embedding || m.Kind == catalog.Rerank {
				if all++; m.Price == "" {
					unpriced++
				}
			}
			name := alias + "/" + m.ID
			var cells [2]string
			differs, contexts := false, false
			for i, list := range lists {
				stated, equal := agreement(m, list[name])
				if stated[0] || stated[1] {
					models[i]++
				}
				for part := range compared {
					both[i][part] += one(stated[part])
					same[i][part] += one(stated[part] && equal[part])
				}
				odd := func(part int) bool { return stated[part] && !equal[part] }
				switch off := slices.ContainsFunc([]int{0, 1, 2, 3, steps, context}, odd); {
				case off:
					cells[i] = cell(list[name].price, list[name].context, odd(context))
					differs, contexts = true, contexts || odd(context)
				case slices.Contains(stated[:], true):
					cells[i] = "same"
				default:
					cells[i] = "–"
				}
				if (stated[0] || stated[1]) && !slices.ContainsFunc([]int{0, 1, 2, 3, steps}, odd) {
					agree[i]++
				}
			}
			if !differs {
				continue
			}
			needed[name] = true
			why := reason(alias, m.ID)
			if why == "" {
				t.Errorf("%s: build %s, models.dev %s, genai-prices %s: no reason for ours", name, cell(string(m.Price), m.Context, contexts), cells[0], cells[1])
			}
			fmt.Fprintf(&rows, "| `%s` | %s | %s | %s | %s |\n", m.ID, cell(string(m.Price), m.Context, contexts), cells[0], cells[1], why)
		}
		if rows.Len() > 0 {
			fmt.Fprintf(&tables, "\n### %s\n\n%s| Model | Build | models.dev | genai-prices | Reason for ours |\n|---|---|---|---|---|\n%s", alias, intro[alias], rows.String())
		}
	}
	if unpriced*100 > all*8 {
		t.Errorf("%d of %d chat, embedding and rerank models have no price, over 8%%", unpriced, all)
	}
	for _, r := range reasons {
		for name := range strings.FieldsSeq(r.models) {
			if !needed[name] {
				t.Errorf("%s differs from no list: its reason is not needed", name)
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, checkHead, chatPackage.name, chatPackage.version, genaiTime.Format("2006-01-02, 15:04 UTC"), all, unpriced)
	b.WriteString("| Stated by both, and the same | models.dev | genai-prices |\n|---|---|---|\n")
	share := func(part string, same, both [2]int) {
		fmt.Fprintf(&b, "| %s", part)
		for i := range same {
			fmt.Fprintf(&b, " | %d of %d", same[i], both[i])
		}
		b.WriteString(" |\n")
	}
	share("models with every rate and step", agree, models)
	for part, name := range compared {
		share(name, [2]int{same[0][part], same[1][part]}, [2]int{both[0][part], both[1][part]})
	}
	b.WriteString("\n## Differences\n" + tables.String())
	const file = "../../docs/reference/prices-check.md"
	if os.Getenv("GOLDEN") == "update" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != b.String() {
		t.Errorf("%s is not of this build; GOLDEN=update writes it (%v)", file, err)
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A context that is the threshold of the price is the vendor's step, not its limit.
func TestNoContextIsTheStepOfAPrice(t *testing.T) {
	for _, alias := range catalog.Aliases() {
		for _, m := range catalog.Models(alias) {
			if m.Context > 0 && strings.Contains(string(m.Price), fmt.Sprintf(">%d=", m.Context)) {
				t.Errorf("%s/%s: %d tokens of context, and %s", alias, m.ID, m.Context, m.Price)
			}
		}
	}
}
