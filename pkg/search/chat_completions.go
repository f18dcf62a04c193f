package search

import (
	"strings"

	"github.com/tidwall/gjson"
)

// openAISearchModels is POST /v1/chat/completions with one of the models that
// always search:
//
//	{model, messages, web_search_options{user_location{type,approximate{country}}}}
//	→ {choices[{message{content, annotations[{type:"url_citation", url_citation{url,title,start_index}}]}}]}
var openAISearchModels = shape{
	providers: []string{"openai"}, max: 20, chat: true, endpoint: "chat",
	fits: func(model string) bool { return strings.Contains(model, "-search-") },
	build: func(a *ask) {
		a.completions()
		options := map[string]any{"search_context_size": "medium"}
		if a.country != "" {
			options["user_location"] = map[string]any{"type": "approximate", "approximate": map[string]any{"country": a.country}}
		}
		a.body["web_search_options"] = options
		a.without("content_options.full_page")
	},
	read: readCompletions,
}

// openRouterChat is the same with OpenRouter's server tool for any model:
//
//	{model, messages, tools[{type:"openrouter:web_search", parameters{max_results}}]}
var openRouterChat = shape{
	providers: []string{"openrouter"}, max: 25, chat: true, model: "openai/gpt-5-mini", endpoint: "chat",
	build: func(a *ask) {
		a.completions()
		a.body["tools"] = []any{map[string]any{"type": "openrouter:web_search", "parameters": map[string]any{"max_results": a.want}}}
		a.without("country", "content_options.full_page")
	},
	read: readCompletions,
}

// perplexityChat is one of Perplexity's chat models, which always search:
//
//	{model, messages, search_domain_filter[], search_recency_filter} → {choices, search_results[{title,url,date,snippet}], citations[]}
var perplexityChat = shape{
	providers: []string{"perplexity"}, max: 20, chat: true, model: "sonar", endpoint: "chat",
	options: []string{"search_mode", "search_context_size"},
	build: func(a *ask) {
		a.completions()
		a.perplexed()
		if a.country != "" {
			a.body["web_search_options"] = map[string]any{"user_location": map[string]any{"country": a.country}}
		}
		a.without("content_options.full_page")
	},
	read: readCompletions,
}

func (a *ask) completions() {
	text := a.prompt()
	if len(a.include)+len(a.exclude) > 0 {
		text += a.sites()[len(a.query):]
	}
	a.body["model"], a.body["max_tokens"] = a.model, maxChatTokens
	a.body["messages"] = []any{map[string]any{"role": "user", "content": text}}
}

func readCompletions(f *found, raw gjson.Result, a *ask) error {
	m := raw.Get("choices.0.message")
	if !m.IsObject() {
		return errShape
	}
	f.answer = m.Get("content").Str
	f.perplexed(raw.Get("search_results"))
	f.annotations(f.answer, m.Get("annotations"))
	if len(f.results) == 0 {
		raw.Get("citations").ForEach(func(_, c gjson.Result) bool {
			f.cite(hit{url: c.Str})
			return true
		})
	}
	f.cost = number(raw.Get("usage.cost.total_cost"))
	return nil
}
