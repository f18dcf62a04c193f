package search

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /search {query, max_results ≤ 20, country, search_domain_filter[], search_recency_filter,
// search_language_filter[]}
// → {id, results[{title,url,snippet,date,last_updated}]}
var perplexity = service{
	providers: []string{"perplexity"}, ignores: fieldFullPage,
	options: []string{"max_tokens_per_page", "search_mode", "search_after_date_filter", "search_before_date_filter"},
	build: func(c *call) {
		c.set("query", c.query)
		c.setInt("max_results", c.want)
		c.set("country", c.country)
		setPerplexityFilters(c)
		if c.language != "" {
			c.setList("search_language_filter", []string{c.lang()})
		}
	},
	read: func(_ *call, r *response, answer gjson.Result) bool {
		return r.readFirst(answer, perplexityResult, "results")
	},
}

// sonar is any of Perplexity's chat models; they always search:
// {model, messages, search_domain_filter[], search_recency_filter} → {choices,
// search_results[{title,url,date,snippet}], citations[]}
var sonar = service{
	providers: []string{"perplexity"}, ignores: fieldFullPage,
	chat:    &chatModel{model: "sonar", max: 20},
	options: []string{"search_mode", "search_context_size"},
	build: func(c *call) {
		c.set("model", c.model)
		c.setInt("max_tokens", maxAnswerTokens)
		c.setJSON("messages", messages(c.prompt()+c.siteOperators()))
		setPerplexityFilters(c)
		if c.country != "" {
			c.setJSON("web_search_options", `{"user_location":{"country":"`+c.country+`"}}`)
		}
	},
	read: func(c *call, r *response, answer gjson.Result) bool {
		if !answer.Get("choices.0.message").IsObject() {
			return false
		}
		r.readResults(answer.Get("search_results"), perplexityResult)
		return readCompletions(c, r, answer)
	},
}

// setPerplexityFilters sets the filters that Perplexity's search and chat share. The
// domain filter either includes or excludes domains.
func setPerplexityFilters(c *call) {
	c.set("search_recency_filter", c.timeRange())
	c.setList("search_domain_filter", c.include)
	if len(c.include) == 0 && len(c.exclude) > 0 {
		c.setJSON("search_domain_filter", `["-`+strings.Join(c.exclude, `","-`)+`"]`) // domains need no quoting
	}
}

func perplexityResult(v gjson.Result) result {
	return result{
		title: jsonvalue.Text(v, "title"), url: jsonvalue.Text(v, "url"), snippet: jsonvalue.Text(v, "snippet"),
		published: jsonvalue.Text(v, "date", "last_updated"),
	}
}
