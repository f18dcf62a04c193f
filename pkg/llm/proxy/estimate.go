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
	output := firstCount(a.Body, outputLimits(a.Dialect))
	choices := max(firstCount(a.Body, choiceFields(a.Dialect)), 1)
	return accounts.Estimate{Input: llm.Estimate(a.Body), Output: min(output, 1<<30) * min(choices, maxChoices), Text: true}
}

// firstCount returns the first positive number at one of the paths, or 0.
func firstCount(body []byte, paths []string) int64 {
	for _, path := range paths {
		if n := gjson.GetBytes(body, path).Int(); n > 0 {
			return n
		}
	}
	return 0
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

// choiceFields are the fields that ask for more than one answer.
func choiceFields(d llm.Dialect) []string {
	if d == llm.Gemini {
		return []string{"generationConfig.candidateCount", "generation_config.candidate_count", "generationConfig.candidate_count", "generation_config.candidateCount"}
	}
	return []string{"n"}
}
