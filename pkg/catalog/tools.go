package catalog

import "strings"

// toolPrices are the rates of tools that vendors run: those of a row hold for the models
// of its provider whose ids begin with its prefix. The first row that fits counts.
// Allowances that an account has free of charge are not subtracted.
//
// The options are the memory of a container, and preview for the tool web_search_preview.
var toolPrices = [...]struct {
	alias, prefix string
	price         Price
}{
	// https://platform.openai.com/docs/pricing#built-in-tools: the preview of web search costs more
	// with models that do not reason, which do not pay for what it has found then. A container is
	// billed for 20 minutes.
	{"openai", "gpt-4", "search@preview=0.025 " + openAITools},
	{"openai", "", openAITools},
	// https://docs.x.ai/developers/pricing: each run of code
	{"xai", "", "search=0.005 fileSearch=0.0025 code=0.005"},
	// https://ai.google.dev/gemini-api/docs/pricing: Gemini 2 is billed by grounded prompts, later
	// models by queries. The queries to Maps that later ones are billed by are not in the answer.
	{"gemini", "gemini-2", "grounded=0.035 maps=0.025"},
	{"gemini", "gemini-", "search=0.014"},
	// https://cloud.google.com/vertex-ai/generative-ai/pricing
	{"vertex", "gemini-2", "grounded=0.035 maps=0.025"},
	{"vertex", "gemini-", "search=0.014"},
	// https://platform.claude.com/docs/en/about-claude/pricing
	{"anthropic", "claude-", "search=0.01"},
	{"vertex", "claude-", "search=0.01"},
}

const openAITools = "search=0.01 fileSearch=0.0025 code@1g=0.03 code@4g=0.12 code@16g=0.48 code@64g=1.92"

// ToolPrice returns the rates of the tools that a vendor runs for a model, or "".
func ToolPrice(alias, id string) Price {
	if base := tunedFrom(alias, id); base != "" {
		id = base
	}
	for i := range toolPrices {
		if r := &toolPrices[i]; r.alias == alias && strings.HasPrefix(id, r.prefix) {
			return r.price
		}
	}
	return ""
}
