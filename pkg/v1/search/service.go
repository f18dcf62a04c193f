package search

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/routing"
)

// service is one way to search the web: a provider's search service, or a chat
// model with a search tool. See docs/reference/api-shapes.md, 12.1.
//
// A new one is a file of its own and a line in services; the provider's row has
// the endpoint.
type service struct {
	providers []string     // ids
	chat      *chatModel   // nil for a search service
	ignores   requestField // request fields that the service has no parameter for
	options   []string     // provider_options that a client may set
	formats   []string     // formats of whole pages, the default first; empty for no pages
	get       bool         // parameters go into the URL instead of a JSON body
	paged     bool         // the service applies the offset

	// build sets the parameters of a call.
	build func(c *call)
	// read fills the response from an answer. It reports whether the answer has
	// the shape of the service.
	read func(c *call, r *response, answer gjson.Result) bool
}

// chatModel is what a service needs to know if it is a chat model.
type chatModel struct {
	model   string // used if the client names only the provider
	match   string // part of the names of its models; "" is any model
	max     int    // results of one answer
	dialect llm.Dialect
}

// requestField is a set of fields of a client's request.
type requestField uint8

const (
	fieldSearchType requestField = 1 << iota
	fieldCountry
	fieldLanguage
	fieldTimeRange
	fieldFullPage
)

// services are all services. The first one that fits a target is used.
var services = [...]*service{
	&tavily, &exa, &brave, &serper, &searxng, &linkup, &you, &perplexity, &firecrawl, &jina, &zai, &ollama,
	&openAISearchModels, &openAI, &xAI, &anthropic, &gemini, &openRouter, &sonar,
}

// serviceOf returns the service for a target: the provider's search service, or
// the search tool of one of its chat models, or nil.
func serviceOf(to *routing.Target) *service {
	for _, s := range services {
		if chat := to.Model != "search" || !to.Provider.Search; chat != (s.chat != nil) ||
			!slices.Contains(s.providers, to.Provider.ID) {
			continue
		}
		if s.chat == nil || strings.Contains(to.Model, s.chat.match) {
			return s
		}
	}
	return nil
}
