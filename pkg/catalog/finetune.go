package catalog

import "strings"

// fineTunes are the rates of OpenAI's fine-tuned models by the model that they were made
// from, which costs less.
//
// https://developers.openai.com/api/docs/pricing, by LiteLLM's list of 2026-08-06
var fineTunes = [...]struct {
	base  string
	price Price
}{
	{"gpt-4.1", "3/12/0.75"},
	{"gpt-4.1-mini", "0.8/3.2/0.2"},
	{"gpt-4.1-nano", "0.2/0.8/0.05"},
	{"gpt-4o", "3.75/15/1.875"},
	{"gpt-4o-mini", "0.3/1.2/0.15"},
	{"o4-mini", "4/16/1"},
}

// tunedFrom returns the model that a fine-tuned one was made from, "" for another one:
//
//	ft:gpt-4.1-2025-04-14:organization:suffix:id → gpt-4.1-2025-04-14
func tunedFrom(alias, id string) string {
	base, tuned := strings.CutPrefix(id, "ft:")
	if !tuned || alias != "openai" {
		return ""
	}
	base, _, _ = strings.Cut(base, ":")
	return base
}

// fineTunePrice returns the price of models that were made from one, or "".
func fineTunePrice(base string) Price {
	base = undated(base)
	for i := range fineTunes {
		if fineTunes[i].base == base {
			return fineTunes[i].price
		}
	}
	return ""
}
