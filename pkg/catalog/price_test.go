package catalog

import (
	"math"
	"testing"
)

func TestRatesOfTerms(t *testing.T) {
	const price = "1.25/10/0.125//2.5 >200000=2.5/15/0.25 >500000=5 @flex=0.5/5 @flex>200000=1/7 audioInput=3"
	const media = "image@hd@1024x1792=0.12 image@hd=0.08 minute=0.006 character=15 request=0.005"
	r := func(set map[Unit]float64) Rates {
		r := NoRates()
		for u, f := range set {
			r[u] = f
		}
		return r
	}
	base := r(map[Unit]float64{PerInput: 1.25, PerOutput: 10, PerCacheRead: 0.125, PerCacheWriteHour: 2.5, PerAudioInput: 3})
	options := map[Unit]float64{PerSecond: 0.0001, PerCharacter: 15, PerRequest: 0.005}
	with := func(image float64) Rates { options[PerImage] = image; return r(options) }
	tests := []struct {
		name  string
		price Price
		terms Terms
		want  Rates
		known bool
	}{
		{"none", "", Terms{}, NoRates(), false},
		{"at_the_threshold", price, Terms{Input: 200_000}, base, true},
		{"over_a_threshold", price, Terms{Input: 200_001}, r(map[Unit]float64{PerInput: 2.5, PerOutput: 15, PerCacheRead: 0.25, PerAudioInput: 3}), true},
		{"over_the_last_threshold", price, Terms{Input: 500_001}, r(map[Unit]float64{PerInput: 5, PerAudioInput: 3}), true},
		{"service_tier", price, Terms{Service: "flex"}, r(map[Unit]float64{PerInput: 0.5, PerOutput: 5, PerAudioInput: 3}), true},
		{"service_tier_over_a_threshold", price, Terms{Service: "flex", Input: 300_000}, r(map[Unit]float64{PerInput: 1, PerOutput: 7, PerAudioInput: 3}), true},
		{"service_tier_without_a_price", price, Terms{Service: "priority"}, r(map[Unit]float64{PerAudioInput: 3}), false},
		{"thresholds_in_any_order", ">9=3/4 1/2", Terms{Input: 10}, r(map[Unit]float64{PerInput: 3, PerOutput: 4}), true},
		{"options_that_fit", media, Terms{Options: []string{"1024x1792", "HD"}}, with(0.12), true},
		{"first_clause_that_fits", media, Terms{Options: []string{"hd", "1x1"}}, with(0.08), true},
		{"no_clause_fits", media, Terms{Options: []string{"low"}}, with(-1), false},
		{"last_clause_has_no_options", "image@hd=2 image=1", Terms{}, r(map[Unit]float64{PerImage: 1}), true},
		{"no_numbers", "x/-1/NaN/1e999 image=", Terms{}, NoRates(), true},
	}
	for _, tt := range tests {
		got, known := tt.price.Rates(tt.terms)
		for u := range got {
			if math.Abs(got[u]-tt.want[u]) > 1e-15 || known != tt.known {
				t.Errorf("%s: unit %d is %v %v, want %v %v", tt.name, u, got[u], known, tt.want[u], tt.known)
			}
		}
	}
}

func TestPricesRoundTrip(t *testing.T) {
	for _, p := range []Price{"1/2", "0.075/0.3/0.0375", "4/20//5", "0/0", "1////2", "/5", "image=0.04 request=0.5", "1/2 audioInput=3 second=0.1"} {
		r, ok := p.Rates(Terms{})
		if got := r.Price(); !ok || got != p {
			t.Errorf("%v.Price() = %q, want %q", r, got, p)
		}
	}
}

func TestParsePrice(t *testing.T) {
	for text, want := range map[string]Price{
		"4/20": "4/20", "  4/20   image=0.04 ": "4/20 image=0.04", "/20": "/20", "4//0.4": "4//0.4", "1/2/3/4/5": "1/2/3/4/5",
		"1/2 >200000=2/3 @flex=1/1 @flex>200000=2/2": "1/2 >200000=2/3 @flex=1/1 @flex>200000=2/2", "image@hd@1x1=0.1": "image@hd@1x1=0.1",
		"minute=0.006 search=0.01": "minute=0.006 search=0.01", "0/0": "0/0",
		"": "", "x": "", "/": "", "1/2/3/4/5/6": "", "-1/2": "", "1e3/2": "", "NaN": "", ".5/1": "", "1./2": "", "100001/1": "", "=1/2": "", "@=1/2": "",
		">0=1/2": "", ">x=1/2": "", ">9999999999=1/1": "", "picture=1": "", "image=": "", "image=1/2": "", "image>5=1": "", "$4/20": "",
	} {
		got, err := ParsePrice(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("ParsePrice(%q) = %q %v, want %q", text, got, err, want)
		}
	}
	for _, alias := range Aliases() {
		for _, m := range Models(alias) {
			if got, err := ParsePrice(string(m.Price)); m.Price != "" && (err != nil || got != m.Price) {
				t.Errorf("%s/%s: %v", alias, m.ID, err)
			}
		}
	}
}

func TestFree(t *testing.T) {
	for p, want := range map[Price]bool{"": false, "0/0": true, "0/0//0": true, "0/0 request=0.1": false, "0/1": false, "x/0": false, "image=0": true} {
		if got := p.Free(); got != want {
			t.Errorf("Price(%q).Free() = %v", p, got)
		}
	}
}

// The steps of prices begin where the words of the vendors say, to the token.
func TestCallOfExactlyTheSizeOfAStep(t *testing.T) {
	for _, tt := range []struct {
		alias, id    string
		last         int64 // input tokens of the largest call at the usual rate
		usual, above float64
	}{
		{"openai", "gpt-5.5", 272_000, 5, 10},                // ">272K input tokens", https://developers.openai.com/api/docs/models/gpt-5.5
		{"anthropic", "claude-haiku-5-5", 100_000, 0.1, 0.5}, // "up to 100,000 tokens", https://platform.claude.com/docs/en/about-claude/pricing
		{"gemini", "gemini-2.5-pro", 200_000, 1.25, 2.5},     // "prompts <= 200k tokens", https://ai.google.dev/gemini-api/docs/pricing
		{"xai", "grok-4.6", 199_999, 2, 4},                   // "≥ 200k prompt tokens", https://docs.x.ai/developers/models
	} {
		for input, want := range map[int64]float64{tt.last: tt.usual, tt.last + 1: tt.above} {
			if r, _ := PriceOf(tt.alias, tt.id).Rates(Terms{Input: input}); r[PerInput] != want {
				t.Errorf("%s/%s with %d input tokens costs %v, want %v", tt.alias, tt.id, input, r[PerInput], want)
			}
		}
	}
}

func TestPriceOf(t *testing.T) {
	for _, alias := range Aliases() {
		for _, m := range Models(alias) {
			if got := PriceOf(alias, m.ID); m.Price != "" && got == "" {
				t.Errorf("%s/%s: no price", alias, m.ID)
			}
		}
	}
	if got := PriceOf("openai", "no-such-model") + PriceOf("no-such-alias", "x"); got != "" {
		t.Errorf("got %q for unknown models", got)
	}
	if n := testing.AllocsPerRun(100, func() { PriceOf("openai", "gpt-5.4") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
