package search

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/wire/jsonvalue"
)

// POST /v1/messages with the server tool web_search:
// {model, max_tokens, messages, tools[{type:"web_search_20250305", name, max_uses,
// allowed_domains|blocked_domains, user_location}]}
// → {content[{type:"web_search_tool_result", content[{type:"web_search_result",url,title,page_age}]},
//
//	{type:"text", text, citations[{type:"web_search_result_location",url,title,cited_text}]}], usage{server_tool_use{web_search_requests}}}
var anthropic = service{
	providers: []string{"anthropic"}, ignores: fieldFullPage,
	chat: &chatModel{model: "claude-haiku-4-5", max: 20, dialect: llm.Messages},
	build: func(c *call) {
		c.set("model", c.model)
		c.setInt("max_tokens", maxAnswerTokens)
		c.setJSON("messages", messages(c.prompt()))
		tool := `[{"type":"web_search_20250305","name":"web_search","max_uses":2`
		if list := jsonvalue.Strings(c.include); list != "" { // one of the two
			tool += `,"allowed_domains":` + list
		} else if list := jsonvalue.Strings(c.exclude); list != "" {
			tool += `,"blocked_domains":` + list
		}
		c.setJSON("tools", tool+c.userLocation()+"}]")
	},
	read: func(_ *call, r *response, answer gjson.Result) bool {
		blocks := answer.Get("content")
		if !blocks.IsArray() {
			return false
		}
		r.queries = int(answer.Get("usage.server_tool_use.web_search_requests").Int())
		var text []byte
		jsonvalue.Each(blocks, func(_, b gjson.Result) bool {
			switch b.Get("type").Str {
			case "web_search_tool_result":
				text = nil // the text before a search is not the answer
				list := b.Get("content")
				if code := list.Get("error_code").Str; code != "" {
					r.problems = append(r.problems, problem{r.provider, truncate(code, 100)})
				}
				if list.IsArray() {
					jsonvalue.Each(list, func(_, v gjson.Result) bool {
						r.cite(result{title: v.Get("title").Str, url: v.Get("url").Str, published: v.Get("page_age").Str})
						return true
					})
				}
			case "text":
				text = append(text, b.Get("text").Str...)
				jsonvalue.Each(b.Get("citations"), func(_, v gjson.Result) bool {
					r.cite(result{title: v.Get("title").Str, url: v.Get("url").Str, snippet: v.Get("cited_text").Str})
					return true
				})
			}
			return true
		})
		r.answer = string(text)
		return true
	},
}
