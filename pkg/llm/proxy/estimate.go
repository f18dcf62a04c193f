package proxy

import (
	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/llm"
	"weir/pkg/snapshot"
)

// maxChoices is the largest number of answers that a request asks for.
const maxChoices = 128

// estimate returns what a request may use, for the budgets of a machine.
func (a *Request) estimate(m *snapshot.Machine) accounts.Estimate {
	if len(m.Budgets) == 0 {
		return accounts.Estimate{}
	}
	output, choices := int64(0), int64(1)
	for _, path := range outputLimits(a.Dialect) {
		if n := gjson.GetBytes(a.Body, path).Int(); n > 0 {
			output = n
			break
		}
	}
	if n := gjson.GetBytes(a.Body, choicesField(a.Dialect)).Int(); n > 1 {
		choices = min(n, maxChoices)
	}
	return accounts.Estimate{Input: llm.Estimate(a.Body), Output: min(output, 1<<30) * choices, Text: true}
}

// outputLimits are the fields that limit the output tokens, the one that counts first.
func outputLimits(d llm.Dialect) []string {
	switch d {
	case llm.Responses:
		return []string{"max_output_tokens"}
	case llm.Gemini:
		return []string{"generationConfig.maxOutputTokens", "generation_config.max_output_tokens", "generationConfig.max_output_tokens", "generation_config.maxOutputTokens"}
	}
	return []string{"max_completion_tokens", "max_tokens"}
}

// choicesField is the field that asks for more than one answer.
func choicesField(d llm.Dialect) string {
	if d == llm.Gemini {
		return "generationConfig.candidateCount"
	}
	return "n"
}
