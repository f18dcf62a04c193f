package search

import (
	"strings"

	"github.com/tidwall/gjson"
)

// anthropicMessages is POST /v1/messages with the server tool web_search:
//
//	{model, max_tokens, messages, tools[{type:"web_search_20250305", name, max_uses, allowed_domains|blocked_domains, user_location}]}
//	→ {content[{type:"web_search_tool_result", content[{type:"web_search_result",url,title,page_age}]},
//	   {type:"text", text, citations[{type:"web_search_result_location",url,title,cited_text}]}], usage{server_tool_use{web_search_requests}}}
var anthropicMessages = shape{
	providers: []string{"anthropic"}, max: 20, chat: true, model: "claude-haiku-4-5", endpoint: "messages",
	build: func(a *ask) {
		tool := map[string]any{"type": "web_search_20250305", "name": "web_search", "max_uses": 2}
		// The tool takes one of the two lists.
		if len(a.include) > 0 {
			tool["allowed_domains"] = a.include
		} else if len(a.exclude) > 0 {
			tool["blocked_domains"] = a.exclude
		}
		if p := a.place(); p != nil {
			tool["user_location"] = p
		}
		a.body["model"], a.body["max_tokens"], a.body["tools"] = a.model, maxChatTokens, []any{tool}
		a.body["messages"] = []any{map[string]any{"role": "user", "content": a.prompt()}}
		a.without("content_options.full_page")
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		blocks := raw.Get("content")
		if !blocks.IsArray() {
			return errShape
		}
		f.queries = int(raw.Get("usage.server_tool_use.web_search_requests").Int())
		var text strings.Builder
		blocks.ForEach(func(_, b gjson.Result) bool {
			switch b.Get("type").Str {
			case "web_search_tool_result":
				// What was written before the search is no answer.
				text.Reset()
				list := b.Get("content")
				if code := list.Get("error_code").Str; code != "" {
					f.problems = append(f.problems, problem{Provider: f.provider, Message: cut(code, 100)})
				}
				if list.IsArray() {
					list.ForEach(func(_, v gjson.Result) bool {
						f.cite(hit{title: v.Get("title").Str, url: v.Get("url").Str, published: v.Get("page_age").Str})
						return true
					})
				}
			case "text":
				text.WriteString(b.Get("text").Str)
				b.Get("citations").ForEach(func(_, c gjson.Result) bool {
					f.cite(hit{title: c.Get("title").Str, url: c.Get("url").Str, snippet: c.Get("cited_text").Str})
					return true
				})
			}
			return true
		})
		f.answer = text.String()
		return nil
	},
}
