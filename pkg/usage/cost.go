package usage

import (
	"weir/pkg/catalog"
	"weir/pkg/llm"
)

// Cost returns the price of an answer in USD. known is false if the usage, or a
// price that it needs, is not known: a cost is never guessed.
func Cost(alias, model string, u llm.Usage) (usd float64, known bool) {
	if !u.Known {
		return 0, false
	}
	var price catalog.Price
	for _, m := range catalog.Lookup(alias, model) {
		if price = m.Price; price != "" {
			break
		}
	}
	rates, ok := price.Rates()
	if !ok {
		return 0, false
	}
	fresh := max(u.Input-u.CacheRead-u.CacheWrite, 0)
	for _, part := range [...]struct {
		tokens int64
		rate   float64
	}{{fresh, rates.Input}, {u.Output, rates.Output}, {u.CacheRead, rates.CacheRead}, {u.CacheWrite, rates.CacheWrite}} {
		if part.tokens == 0 {
			continue
		}
		if part.rate < 0 {
			return 0, false
		}
		usd += float64(part.tokens) * part.rate / 1e6
	}
	return usd, true
}
