package search

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/wire/jsonvalue"
)

// openAISearchModels are OpenAI's chat models that always search. POST /v1/chat/completions
// {model, messages, web_search_options{user_location{type,approximate{country}}}}
// → {choices[{message{content, annotations[{type:"url_citation", url_citation{url,title,start_index}}]}}]}
var openAISearchModels = service{
	providers: []string{"openai"}, ignores: fieldFullPage,
	chat: &chatModel{match: "-search-", max: 20},
	build: func(c *call) {
		c.set("model", c.model)
		c.setInt("max_tokens", maxAnswerTokens)
		c.setJSON("messages", messages(c.prompt()+c.siteOperators()))
		options := `{"search_context_size":"medium"`
		if c.country != "" {
			options += `,"user_location":{"type":"approximate","approximate":{"country":"` + c.country + `"}}`
		}
		c.setJSON("web_search_options", options+"}")
	},
	read: readCompletions,
}

// openAI is any other of OpenAI's chat models. POST /v1/responses with the hosted tool web_search:
// {model, input, tools[{type:"web_search", filters{allowed_domains}, user_location}], tool_choice, include[], store}
// → {output[{type:"web_search_call", action{sources[{url}]}}, {type:"message",
// content[{type:"output_text", text, annotations[{type:"url_citation",url,title,start_index}]}]}]}
//
// Cited pages come before the other sources.
var openAI = service{
	providers: []string{"openai"}, ignores: fieldFullPage,
	chat:    &chatModel{model: "gpt-5-mini", max: 20, dialect: llm.Responses},
	options: []string{"search_context_size"},
	build: func(c *call) {
		c.set("model", c.model)
		c.set("input", c.prompt())
		c.setJSON("store", "false")
		c.setInt("max_output_tokens", maxThinkingTokens)
		c.set("tool_choice", "required")
		c.setJSON("include", `["web_search_call.action.sources"]`)
		tool := `[{"type":"web_search"`
		if list := jsonvalue.Strings(c.include); list != "" {
			tool += `,"filters":{"allowed_domains":` + list + `}`
		}
		c.setJSON("tools", tool+c.userLocation()+"}]")
		if strings.HasPrefix(c.model, "gpt-5") || strings.HasPrefix(c.model, "o") {
			c.setJSON("reasoning", `{"effort":"low"}`)
		}
	},
	read: readResponses,
}

// readCompletions reads an answer of chat completions.
func readCompletions(_ *call, r *response, answer gjson.Result) bool {
	m := answer.Get("choices.0.message")
	if !m.IsObject() {
		return false
	}
	r.answer = m.Get("content").Str
	r.readAnnotations(r.answer, m.Get("annotations"))
	if len(r.results) == 0 {
		jsonvalue.Each(answer.Get("citations"), func(_, url gjson.Result) bool {
			r.cite(result{url: url.Str})
			return true
		})
	}
	r.cost = jsonvalue.Number(answer, "usage.cost.total_cost")
	return true
}

// readResponses reads an answer of Responses.
func readResponses(_ *call, r *response, answer gjson.Result) bool {
	out := answer.Get("output")
	if !out.IsArray() {
		return false
	}
	var sources []string
	var text []byte
	jsonvalue.Each(out, func(_, item gjson.Result) bool {
		switch item.Get("type").Str {
		case "web_search_call":
			r.queries++
			jsonvalue.Each(item.Get("action.sources"), func(_, s gjson.Result) bool {
				sources = append(sources, s.Get("url").Str)
				return true
			})
		case "message":
			jsonvalue.Each(item.Get("content"), func(_, c gjson.Result) bool {
				if c.Get("type").Str == "output_text" {
					if text != nil {
						text = append(text, '\n')
					}
					text = append(text, c.Get("text").Str...)
					r.readAnnotations(c.Get("text").Str, c.Get("annotations"))
				}
				return true
			})
		}
		return true
	})
	jsonvalue.Each(answer.Get("citations"), func(_, url gjson.Result) bool {
		sources = append(sources, url.Str)
		return true
	})
	for _, url := range sources {
		r.cite(result{url: url})
	}
	r.answer = string(text)
	return true
}
