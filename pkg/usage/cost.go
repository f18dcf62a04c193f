package usage

import (
	"slices"
	"strings"

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
	return cost(p, t, m, nil)
}

// Missing returns the names of what keeps the cost of an answer unknown, such as
// web_search; nil if it is known. Without a price they are those of ir.Usage.Unrated.
//
// The names of kinds of tokens and of tools are those of partNames. tokens: the counts are
// not stated. service_tier, options: the price has none for them. cached_audio: how much of
// the cache was audio or images is not stated. Others are those of ir.Usage.Unrated.
func Missing(p catalog.Price, t *llm.Usage, m *Media) (parts []string) {
	add := func(name string) { parts = append(parts, name) }
	if p != "" {
		cost(p, t, m, add)
		return parts
	}
	for name := range strings.FieldsSeq(t.Unrated) {
		add(name)
	}
	return parts
}

// partNames are the names of units in Missing.
var partNames = [catalog.Units]string{
	catalog.PerInput: "input", catalog.PerOutput: "output", catalog.PerCacheRead: "cache_read",
	catalog.PerCacheWrite:     "cache_write",
	catalog.PerCacheWriteHour: "cache_write_1h", catalog.PerAudioInput: "audio_input",
	catalog.PerAudioOutput: "audio_output",
	catalog.PerImageInput:  "image_input", catalog.PerImageOutput: "image_output",
	catalog.PerAudioCacheRead: "cached_audio", catalog.PerImageCacheRead: "cached_images",
	catalog.PerCharacter: "characters",
	catalog.PerImage:     "images", catalog.PerSecond: "seconds", catalog.PerRequest: "requests",
	catalog.PerSearch: "web_search", catalog.PerGrounded: "web_search", catalog.PerMaps: "maps",
	catalog.PerFileSearch: "file_search", catalog.PerCode: "code_execution",
}

// cost is Cost. It passes the names of what is not known to missing, if that is not nil.
func cost(p catalog.Price, t *llm.Usage, m *Media, missing func(part string)) (usd float64, known bool) {
	switch {
	case t.Charged:
		return t.Cost, true
	case p == "":
		return 0, false
	case p.Free():
		return 0, true
	}
	terms := catalog.Terms{Input: max(t.Input-t.Apart, t.Apart), Service: t.Service}
	if m == nil {
		m = &Media{}
	}
	terms.Options = m.Options
	if t.ToolOptions != "" {
		terms.Options = append(slices.Clip(terms.Options), strings.Fields(t.ToolOptions)...)
	}
	rates, known := p.Rates(terms)
	if !known {
		name := "options"
		if t.Service != "" {
			name = "service_tier"
		}
		if missing != nil {
			missing(name)
		}
		return 0, false
	}
	return sum(&rates, t, m, missing)
}

// maxCost bounds the cost of an answer in USD. An upstream that states more, such as a
// duration of 1e300 seconds, is not believed.
const maxCost = 1e6

func sum(rates *catalog.Rates, t *llm.Usage, m *Media, missing func(part string)) (usd float64, known bool) {
	amounts := [catalog.Units]float64{
		catalog.PerCharacter: float64(m.Characters), catalog.PerImage: float64(m.Images), catalog.PerSecond: m.Seconds,
		catalog.PerRequest: float64(max(m.Requests, 1)),
		catalog.PerSearch:  float64(t.Searches), catalog.PerMaps: float64(t.Maps),
		catalog.PerFileSearch: float64(t.FileSearches), catalog.PerCode: float64(t.Code),
	}
	if rates[catalog.PerGrounded] >= 0 {
		amounts[catalog.PerGrounded], amounts[catalog.PerSearch] = min(amounts[catalog.PerSearch], 1), 0
	}
	known = true
	lacks := func(part string) {
		if known = false; missing != nil {
			missing(part)
		}
	}
	priced := false // by any unit
	byTokens := false
	for u := range catalog.Unit(catalog.Units) {
		priced = priced || rates[u] >= 0
		byTokens = byTokens || rates[u] >= 0 && u.Token()
	}
	switch {
	case !priced:
		return 0, false
	case byTokens && !t.Known:
		lacks("tokens")
	case byTokens && !tokens(&amounts, rates, t):
		lacks("cached_audio")
	}
	for name := range strings.FieldsSeq(t.Unrated) {
		lacks(name)
	}
	for u, rate := range rates {
		unit, n := catalog.Unit(u), amounts[u]
		part := unit.Token() || unit.Tool() // of an answer that is billed by tokens
		switch {
		case rate == 0 || rate < 0 && (n <= 0 || !part || !byTokens):
			continue
		case rate < 0 || n <= 0 && !part:
			lacks(partNames[u]) // the rate, or what it is for, is not known
			continue
		}
		cost := n * rate
		if unit.Million() {
			cost /= 1e6
		}
		usd += cost
	}
	if !known || !(usd < maxCost) {
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
		u.ImageInput, u.ImageCacheRead = 0, 0
	}
	if u.CacheRead+u.CacheWrite > 0 && u.AudioInput+u.ImageInput > 0 && !u.CacheByKind {
		return false
	}
	audio, image := max(u.AudioInput-u.AudioCacheRead, 0), max(u.ImageInput-u.ImageCacheRead, 0) // not from the cache
	amounts[catalog.PerInput] = float64(max(u.Input-u.CacheRead-u.CacheWrite-audio-image, 0))
	amounts[catalog.PerOutput] = float64(max(u.Output-u.AudioOutput-u.ImageOutput, 0))
	amounts[catalog.PerCacheRead] = float64(max(u.CacheRead-u.AudioCacheRead-u.ImageCacheRead, 0))
	amounts[catalog.PerAudioCacheRead], amounts[catalog.PerImageCacheRead] = float64(u.AudioCacheRead),
		float64(u.ImageCacheRead)
	amounts[catalog.PerCacheWrite] = float64(max(u.CacheWrite-u.CacheWriteHour, 0))
	amounts[catalog.PerCacheWriteHour] = float64(min(u.CacheWriteHour, u.CacheWrite))
	amounts[catalog.PerAudioInput], amounts[catalog.PerAudioOutput] = float64(audio), float64(u.AudioOutput)
	amounts[catalog.PerImageInput], amounts[catalog.PerImageOutput] = float64(image), float64(u.ImageOutput)
	return true
}
