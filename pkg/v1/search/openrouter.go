package search

import "strconv"

// OpenAI's chat completions with OpenRouter's server tool, for any model:
// {model, messages, tools[{type:"openrouter:web_search", parameters{max_results}}]}
var openRouter = service{
	providers: []string{"openrouter"}, ignores: fieldCountry | fieldFullPage,
	chat: &chatModel{model: "openai/gpt-5-mini", max: 25},
	build: func(c *call) {
		c.set("model", c.model)
		c.setInt("max_tokens", maxAnswerTokens)
		c.setJSON("messages", messages(c.prompt()+c.siteOperators()))
		c.setJSON("tools", `[{"type":"openrouter:web_search","parameters":{"max_results":`+strconv.Itoa(c.want)+`}}]`)
	},
	read: readCompletions,
}
