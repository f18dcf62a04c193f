package search

import (
	"strings"

	"github.com/tidwall/gjson"
)

// openAIResponses is POST /v1/responses with the hosted tool web_search:
//
//	{model, input, tools[{type:"web_search", filters{allowed_domains}, user_location}], tool_choice, include[], store}
//	→ {output[{type:"web_search_call", action{sources[{url}]}}, {type:"message", content[{type:"output_text", text, annotations[{type:"url_citation",url,title,start_index}]}]}]}
//
// The pages cited come first, then the other sources.
var openAIResponses = shape{
	providers: []string{"openai"}, max: 20, chat: true, model: "gpt-5-mini", endpoint: "responses",
	options: []string{"search_context_size"},
	build: func(a *ask) {
		tool := a.responses()
		if len(a.include) > 0 {
			tool["filters"] = map[string]any{"allowed_domains": a.include}
		}
		if p := a.place(); p != nil {
			tool["user_location"] = p
		}
		a.body["tool_choice"] = "required"
		a.body["include"] = []string{"web_search_call.action.sources"}
		if strings.HasPrefix(a.model, "gpt-5") || strings.HasPrefix(a.model, "o") {
			a.body["reasoning"] = map[string]any{"effort": "low"}
		}
		a.without("content_options.full_page")
	},
	read: readResponses,
}

// xaiResponses is xAI's form of the same; its tool filters both ways, and the
// answer may have all sources under citations.
var xaiResponses = shape{
	providers: []string{"xai"}, max: 20, chat: true, model: "grok-4.3", endpoint: "responses",
	build: func(a *ask) {
		tool := a.responses()
		if len(a.include) > 0 {
			tool["filters"] = map[string]any{"allowed_domains": a.include[:min(len(a.include), 5)]}
		} else if len(a.exclude) > 0 {
			tool["filters"] = map[string]any{"excluded_domains": a.exclude[:min(len(a.exclude), 5)]}
		}
		a.without("country", "content_options.full_page")
	},
	read: readResponses,
}

// responses sets what both have in common, and gives the tool.
func (a *ask) responses() map[string]any {
	tool := map[string]any{"type": "web_search"}
	a.body["model"], a.body["input"], a.body["store"] = a.model, a.prompt(), false
	a.body["tools"], a.body["max_output_tokens"] = []any{tool}, 2*maxChatTokens
	return tool
}

func readResponses(f *found, raw gjson.Result, a *ask) error {
	out := raw.Get("output")
	if !out.IsArray() {
		return errShape
	}
	var sources []string
	var texts []string
	out.ForEach(func(_, item gjson.Result) bool {
		switch item.Get("type").Str {
		case "web_search_call":
			f.queries++
			item.Get("action.sources").ForEach(func(_, s gjson.Result) bool {
				sources = append(sources, s.Get("url").Str)
				return true
			})
		case "message":
			item.Get("content").ForEach(func(_, c gjson.Result) bool {
				if c.Get("type").Str == "output_text" {
					texts = append(texts, c.Get("text").Str)
					f.annotations(c.Get("text").Str, c.Get("annotations"))
				}
				return true
			})
		}
		return true
	})
	raw.Get("citations").ForEach(func(_, c gjson.Result) bool {
		sources = append(sources, c.Str)
		return true
	})
	for _, s := range sources {
		f.cite(hit{url: s})
	}
	f.answer = strings.Join(texts, "\n")
	return nil
}
