package accounts

import (
	"fmt"
	"strings"
	"testing"

	"weir/pkg/budget"
	"weir/pkg/store"
)

// A plan leaves out what budgets refuse and goes on with the next member of a combo,
// as Send does.
func TestExplainLeavesOutWhatBudgetsRefuse(t *testing.T) {
	// gpt-4o costs $2.50 per million input tokens.
	b := newBudgeted(t,
		store.Budget{Models: []string{"openai/gpt-4o"}, Unit: store.USD, Limit: 1e9, Window: budget.Total},
		store.Budget{KeyID: "k1", Unit: store.Tokens, Limit: 2e6, Window: budget.Total},
		store.Budget{KeyID: "other", Unit: store.Requests, Limit: 1, Window: budget.Total},
		store.Budget{Models: []string{"openai/never-priced"}, Unit: store.USD, RefuseUnpriced: true, Limit: 1, Window: budget.Total})
	spent := map[string]int64{}
	left := func(budget *store.Budget) int64 { return budget.Limit - spent[budget.ID] }
	explained := func(input int64, models ...string) string {
		call := b.to(models[0])
		call.Estimate = Estimate{Input: input}
		for _, m := range models[1:] {
			call.Targets = append(call.Targets, b.to(m).Targets...)
		}
		var out strings.Builder
		for _, s := range Explain(call, "", b.Now(), left, "") {
			fmt.Fprintf(&out, "%d:%s:%s", s.Try, s.Target.Model, s.Skipped)
			for _, c := range s.Charges {
				fmt.Fprintf(&out, " %s %d of %d", c.Budget.ID, c.Amount, c.Left)
			}
			out.WriteString("; ")
		}
		return out.String()
	}
	for _, tt := range []struct{ got, want string }{
		{explained(400_000, "gpt-4o"), "1:gpt-4o: b1 1000000000 of 1000000000 b2 400000 of 2000000; "},
		{explained(500_000, "gpt-4o"), "0:gpt-4o:budget_exceeded b1 1250000000 of 1000000000 b2 500000 of 2000000; "},
		{explained(500_000, "gpt-4o-mini"), "1:gpt-4o-mini: b2 500000 of 2000000; "},
		{explained(500_000, "gpt-4o", "gpt-4o-mini"), "0:gpt-4o:budget_exceeded b1 1250000000 of 1000000000 b2 500000 of 2000000; 1:gpt-4o-mini: b2 500000 of 2000000; "},
		{explained(1, "never-priced"), "0:never-priced:model_not_priced b2 1 of 2000000 b4 0 of 1; "},
	} {
		if tt.got != tt.want {
			t.Errorf("got  %s\nwant %s", tt.got, tt.want)
		}
	}
	spent["b2"] = 2e6
	if got, want := explained(1, "gpt-4o-mini"), "0:gpt-4o-mini:budget_exceeded b2 1 of 0; "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
