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
	client := a.Dialect.Client()
	output, choices, searches, service := int64(0), int64(1), int64(0), ""
	read := func(key, v gjson.Result) bool {
		switch n := v.Int(); {
		case slices.Contains(client.OutputLimits, key.Str):
			output = max(output, n)
		case slices.Contains(client.Choices, key.Str):
			choices = max(choices, n)
		case key.Str == "tools":
			searches = searchesOf(v)
		case (key.Str == "service_tier" || key.Str == "speed") && (v.Str == "priority" || v.Str == "fast"):
			service = strings.Clone(v.Str)
		}
		return true
	}
	ir.Each(gjson.ParseBytes(a.Body), func(key, v gjson.Result) bool {
		if client.Config == nil {
			return read(key, v)
		}
		if slices.Contains(client.Config, key.Str) {
			ir.Each(v, read)
		}
		return true
	})
	return accounts.Estimate{Input: llm.Estimate(a.Body), Output: output, Choices: min(choices, maxChoices),
		Searches: searches, Service: service, Text: true}
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
