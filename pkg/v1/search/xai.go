package search

import (
	"weir/pkg/llm"
	"weir/pkg/wire/jsonvalue"
)

// xAI's form of Responses: its tool includes or excludes at most five domains, and
// the answer may list all sources under citations.
var xAI = service{
	providers: []string{"xai"}, ignores: fieldCountry | fieldFullPage,
	chat: &chatModel{model: "grok-4.3", max: 20, dialect: llm.Responses},
	build: func(c *call) {
		c.set("model", c.model)
		c.set("input", c.prompt())
		c.setJSON("store", "false")
		c.setInt("max_output_tokens", maxThinkingTokens)
		tool := `[{"type":"web_search"`
		if list := jsonvalue.Strings(c.include[:min(len(c.include), 5)]); list != "" {
			tool += `,"filters":{"allowed_domains":` + list + `}`
		} else if list := jsonvalue.Strings(c.exclude[:min(len(c.exclude), 5)]); list != "" {
			tool += `,"filters":{"excluded_domains":` + list + `}`
		}
		c.setJSON("tools", tool+"}]")
	},
	read: readResponses,
}
