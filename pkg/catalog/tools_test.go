package catalog

import "testing"

func TestToolPrices(t *testing.T) {
	for _, r := range toolPrices {
		if p, err := ParsePrice(string(r.price)); err != nil || p != r.price {
			t.Errorf("%s/%s: %v", r.alias, r.prefix, err)
		}
	}
	rates := func(alias, id string, options ...string) Rates {
		r, _ := Price("1/1").With(ToolPrice(alias, id)).Rates(Terms{Options: options})
		return r
	}
	tests := []struct {
		alias, id, option string
		u                 Unit
		want              float64
	}{
		{"openai", "gpt-5.5", "", PerSearch, 0.01},
		{"openai", "gpt-5.5", "preview", PerSearch, 0.01},
		{"openai", "gpt-4.1", "", PerSearch, 0.01},
		{"openai", "gpt-4.1", "preview", PerSearch, 0.025},
		{"openai", "ft:gpt-4.1:org::a", "preview", PerSearch, 0.025},
		{"openai", "gpt-5.5", "", PerFileSearch, 0.0025},
		{"openai", "gpt-5.5", "1g", PerCode, 0.03},
		{"openai", "gpt-5.5", "16g", PerCode, 0.48},
		{"openai", "gpt-5.5", "", PerCode, -1},
		{"xai", "grok-4.3", "", PerCode, 0.005},
		{"gemini", "gemini-2.5-flash", "", PerGrounded, 0.035},
		{"gemini", "gemini-2.5-flash", "", PerSearch, -1},
		{"gemini", "gemini-3.8-flash", "", PerSearch, 0.014},
		{"gemini", "gemini-3.8-flash", "", PerMaps, -1},
		{"vertex", "claude-opus-4-8", "", PerSearch, 0.01},
		{"azure", "gpt-5.5", "", PerSearch, -1},
	}
	for _, tt := range tests {
		if r := rates(tt.alias, tt.id, tt.option); r[tt.u] != tt.want {
			t.Errorf("%s/%s %q: %s is %v, want %v", tt.alias, tt.id, tt.option, unitNames[tt.u], r[tt.u], tt.want)
		}
	}
	if p := Price("1/1 search=5").With(ToolPrice("openai", "gpt-5.5")); p == "" {
		t.Error("no price")
	} else if r, _ := p.Rates(Terms{}); r[PerSearch] != 5 {
		t.Errorf("a model's own rate is %v, want 5", r[PerSearch])
	}
	for _, p := range []Price{"", "0/0"} {
		if got := p.With("search=1"); got != p {
			t.Errorf("%q.With = %q", p, got)
		}
	}
}
