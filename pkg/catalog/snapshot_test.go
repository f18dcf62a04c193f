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
		// A fine-tune has rates of its own, and never those of its base.
		{none, "openai", "ft:gpt-4.1-2025-04-14", "", false},
		{none, "openai", "ft:gpt-4.1-2025-04-14:org::a", "", false},
		{none, "openai", "ft:gpt-4.1:org:a-2025-04-14", "", false},
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
