package catalog

import "testing"

func TestSnapshotsHaveTheFactsOfTheirModel(t *testing.T) {
	var none *Update
	source := &Update{Text: "openai/gpt-4.1-2031-01-02\t7/8\n"}
	for _, tt := range []struct {
		update    *Update
		alias, id string
		base      string // "" where there is no price
		limits    bool
	}{
		{none, "openai", "gpt-4.1-2025-04-14", "gpt-4.1", true},
		{none, "openai", "gpt-4.1-mini-2025-04-14", "gpt-4.1-mini", true},
		{none, "anthropic", "claude-opus-5-5-20261001", "claude-opus-5-5", true},
		{none, "vertex", "claude-opus-5-5@20261001", "claude-opus-5-5", false},
		{none, "vertex", "gemini-2.5-pro-20261001", "gemini-2.5-pro", true},
		{none, "bedrock", "anthropic.claude-opus-5-5-20261001-v1:0", "anthropic.claude-opus-5-5", true},
		{none, "openai", "gpt-4.1-2025-13-14", "", false}, // no date
		{none, "openai", "gpt-4.1-2025-04-32", "", false},
		{none, "openai", "gpt-4.1-0414", "", false},
		{none, "openai", "gpt-4.1-2025-04-14-2025-04-14", "", false},
		{none, "openai", "unheard-2025-04-14", "", false},
		{none, "openai", "-2025-04-14", "", false},
		{none, "openai", "2025-04-14", "", false},
		{source, "openai", "gpt-4.1-2025-04-14", "gpt-4.1", true},
	} {
		want := tt.update.PriceOf(tt.alias, tt.base)
		if got := tt.update.PriceOf(tt.alias, tt.id); got != want || (got == "") != (tt.base == "") {
			t.Errorf("PriceOf(%q, %q) = %q, want %q", tt.alias, tt.id, got, want)
		}
		if m := tt.update.Facts(tt.alias, tt.id); (len(m) > 0 && m[0].Context > 0) != tt.limits {
			t.Errorf("Facts(%q, %q) = %+v", tt.alias, tt.id, m)
		}
	}
	// A row of its own goes first.
	if p := none.PriceOf("azure", "gpt-4o-2024-05-13"); p == none.PriceOf("azure", "gpt-4o") || p == "" {
		t.Errorf("gpt-4o-2024-05-13 costs %q", p)
	}
	if p := source.PriceOf("openai", "gpt-4.1-2031-01-02"); p != "7/8" {
		t.Errorf("the source's own snapshot costs %q", p)
	}
}

// A fine-tuned model has the rates of those that were made from its model, never those of
// the model, and the model's limits.
func TestFineTunesHaveThePriceOfTheirBase(t *testing.T) {
	var none *Update
	source := &Update{Text: "openai/ft:gpt-4.1:org:own:a\t7/8\nopenai/gpt-4.1\t1/2\n"}
	for _, tt := range []struct {
		update    *Update
		alias, id string
		price     Price
		limits    bool
	}{
		{none, "openai", "ft:gpt-4.1-2025-04-14", "3/12/0.75", true},
		{none, "openai", "ft:gpt-4.1-2025-04-14:org::a", "3/12/0.75", true},
		{none, "openai", "ft:gpt-4.1:org:a-2025-04-14", "3/12/0.75", true},
		{none, "openai", "ft:gpt-4o-mini-2024-07-18:org:x:a:ckpt-step-100", "0.3/1.2/0.15", true},
		{none, "openai", "ft:gpt-4o-mini-20240718:org:x:a", "0.3/1.2/0.15", true},
		{none, "openai", "ft:gpt-4.1-nano-2025-04-14:org::a", "0.2/0.8/0.05", false}, // the base is not listed any more
		{none, "openai", "ft:gpt-5:org::a", "", true},                                // no rate is known
		{none, "openai", "ft:gpt-4.1-next:org::a", "", false},
		{none, "openai", "ft::org::a", "", false},
		{none, "openai", "ft:", "", false},
		{none, "openai", "ft:ft:gpt-4.1:a", "", false},
		{none, "azure", "ft:gpt-4.1-2025-04-14:org::a", "", false},
		{source, "openai", "ft:gpt-4.1:org:own:a", "7/8", true},
		{source, "openai", "ft:gpt-4.1:org:other:a", "3/12/0.75", true}, // not that of the base
	} {
		if got := tt.update.PriceOf(tt.alias, tt.id); got != tt.price {
			t.Errorf("PriceOf(%q, %q) = %q, want %q", tt.alias, tt.id, got, tt.price)
		}
		if m := tt.update.Facts(tt.alias, tt.id); (len(m) > 0 && m[0].Context > 0) != tt.limits {
			t.Errorf("Facts(%q, %q) = %+v", tt.alias, tt.id, m)
		}
	}
	for _, f := range fineTunes {
		if _, err := ParsePrice(string(f.price)); err != nil {
			t.Errorf("%s: %v", f.base, err)
		}
	}
}
