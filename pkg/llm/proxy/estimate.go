package proxy

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/snapshot"
)

// maxChoices is the largest number of answers that a request asks for.
const maxChoices = 128

// maxUses bounds the uses of one tool.
const maxUses = 1000

// estimate returns what a request may use, for the budgets of a machine.
func (a *Request) estimate(m *snapshot.Machine) accounts.Estimate {
	if !m.Estimates() {
		return accounts.Estimate{}
	}
	limits, counts := outputLimits(a.Dialect), choiceFields(a.Dialect)
	output, choices, searches, service := int64(0), int64(1), int64(0), ""
	read := func(key, v gjson.Result) bool {
		switch n := v.Int(); {
		case slices.Contains(limits, key.Str):
			output = max(output, n)
		case slices.Contains(counts, key.Str):
			choices = max(choices, n)
		case key.Str == "tools":
			searches = searchesOf(v)
		case (key.Str == "service_tier" || key.Str == "speed") && (v.Str == "priority" || v.Str == "fast"):
			service = strings.Clone(v.Str)
		}
		return true
	}
	ir.Each(gjson.ParseBytes(a.Body), func(key, v gjson.Result) bool {
		if a.Dialect != llm.Gemini {
			return read(key, v)
		}
		if key.Str == "generationConfig" || key.Str == "generation_config" {
			ir.Each(v, read)
		}
		return true
	})
	return accounts.Estimate{Input: llm.Estimate(a.Body), Output: output, Choices: min(choices, maxChoices), Searches: searches, Service: service, Text: true}
}

// searchesOf returns how many searches the tools of a request allow, as Anthropic limits
// them:
//
//	[{"type":"web_search_20250305","name":"web_search","max_uses":5}]
func searchesOf(tools gjson.Result) (n int64) {
	ir.Each(tools, func(_, t gjson.Result) bool {
		if strings.HasPrefix(t.Get("type").Str, "web_search") {
			n += min(max(t.Get("max_uses").Int(), 0), maxUses)
		}
		return true
	})
	return n
}

// outputLimits are the fields that limit the output tokens. The largest counts: servers
// differ in which one they read, and in which of two with one name.
func outputLimits(d llm.Dialect) []string {
	switch d {
	case llm.Responses:
		return []string{"max_output_tokens"}
	case llm.Gemini:
		return []string{"maxOutputTokens", "max_output_tokens"}
	}
	return []string{"max_completion_tokens", "max_tokens"}
}

// choiceFields are the fields that ask for more than one answer.
func choiceFields(d llm.Dialect) []string {
	if d == llm.Gemini {
		return []string{"candidateCount", "candidate_count"}
	}
	return []string{"n"}
}
