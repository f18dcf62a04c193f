package usage

import (
	"weir/pkg/catalog"
	"weir/pkg/llm"
)

// Media is what an answer is billed by besides tokens. A zero count is unknown.
type Media struct {
	Images     int64
	Seconds    float64 // of audio or video
	Characters int64   // of a text that is spoken
	Requests   int64   // that the call counts as; 0 is one
	// Options are those that a price may depend on: quality, size, resolution.
	Options []string
}

// Cost returns what an answer costs in USD. m is nil for an answer that is billed by
// tokens alone. A cost that the vendor states goes before the price. known is false if
// the price, or a count that it is for, is not known: a cost is never guessed.
func Cost(p catalog.Price, t *llm.Usage, m *Media) (usd float64, known bool) {
	switch {
	case t.Charged:
		return t.Cost, true
	case p == "":
		return 0, false
	case p.Free():
		return 0, true
	}
	terms := catalog.Terms{Input: t.Input, Service: t.Service}
	if m == nil {
		m = &Media{}
	}
	terms.Options = m.Options
	rates, known := p.Rates(terms)
	if !known {
		return 0, false
	}
	return sum(&rates, t, m)
}

// maxCost bounds the cost of an answer in USD. An upstream that states more, such as a
// duration of 1e300 seconds, is not believed.
const maxCost = 1e6

func sum(rates *catalog.Rates, t *llm.Usage, m *Media) (usd float64, known bool) {
	amounts := [catalog.Units]float64{
		catalog.PerCharacter: float64(m.Characters), catalog.PerImage: float64(m.Images), catalog.PerSecond: m.Seconds,
		catalog.PerRequest: float64(max(m.Requests, 1)), catalog.PerSearch: float64(t.Searches),
	}
	priced := false // by any unit
	byTokens := false
	for u := range catalog.Unit(catalog.Units) {
		priced = priced || rates[u] >= 0
		byTokens = byTokens || rates[u] >= 0 && u.Token()
	}
	if !priced || byTokens && !t.Known {
		return 0, false
	}
	if byTokens {
		if !tokens(&amounts, rates, t) {
			return 0, false
		}
	}
	for u, rate := range rates {
		unit, n := catalog.Unit(u), amounts[u]
		part := unit.Token() || unit == catalog.PerSearch // of an answer that is billed by tokens
		switch {
		case rate == 0 || rate < 0 && (n <= 0 || !part || !byTokens):
			continue
		case rate < 0 || n <= 0 && !part:
			return 0, false // the rate, or what it is for, is not known
		}
		cost := n * rate
		if unit.Million() {
			cost /= 1e6
		}
		usd += cost
	}
	if !(usd < maxCost) {
		return 0, false
	}
	return usd, true
}

// tokens fills in the amounts of the kinds of tokens. Tokens of images are billed as
// text, unless they have a rate. It reports false if tokens of audio or images may be
// among those of the cache, which have other rates: few vendors say which.
func tokens(amounts *[catalog.Units]float64, rates *catalog.Rates, t *llm.Usage) bool {
	u := *t
	if rates[catalog.PerImageInput] < 0 {
		u.ImageInput = 0
	}
	if u.CacheRead+u.CacheWrite > 0 && u.AudioInput+u.ImageInput > 0 && !u.TextCached {
		return false
	}
	amounts[catalog.PerInput] = float64(max(u.Input-u.CacheRead-u.CacheWrite-u.AudioInput-u.ImageInput, 0))
	amounts[catalog.PerOutput] = float64(max(u.Output-u.AudioOutput-u.ImageOutput, 0))
	amounts[catalog.PerCacheRead] = float64(u.CacheRead)
	amounts[catalog.PerCacheWrite] = float64(max(u.CacheWrite-u.CacheWriteHour, 0))
	amounts[catalog.PerCacheWriteHour] = float64(min(u.CacheWriteHour, u.CacheWrite))
	amounts[catalog.PerAudioInput], amounts[catalog.PerAudioOutput] = float64(u.AudioInput), float64(u.AudioOutput)
	amounts[catalog.PerImageInput], amounts[catalog.PerImageOutput] = float64(u.ImageInput), float64(u.ImageOutput)
	return true
}
