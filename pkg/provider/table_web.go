package provider

import "weir/pkg/catalog"

// Own is the alias of the gateway itself as a provider of pages. It has no row
// and no connection.
const Own = "web"

// web are web search and fetch services.
var web = []Descriptor{{
	ID: "tavily", Alias: "tavily", Name: "Tavily",
	Family:  Other,
	BaseURL: "https://api.tavily.com",
	Kinds:   []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "search", URL: "https://api.tavily.com/search"},
		{Name: "fetch", URL: "https://api.tavily.com/extract"},
		{Name: "crawl", URL: "https://api.tavily.com/crawl"},
		{Name: "map", URL: "https://api.tavily.com/map"},
	},
	Models: List{None: true},
	Search: true, Results: 20, News: true, Fetch: true,
	Spent: []int{432, 433}, // the plan's and the pay-as-you-go limit
}, {
	ID: "exa", Alias: "exa", Name: "Exa",
	Family:  Other,
	BaseURL: "https://api.exa.ai",
	Auth:    Auth{Scheme: KeyName, Header: "x-api-key", Alt: []Auth{{}}},
	Kinds:   []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "search", URL: "https://api.exa.ai/search"},
		{Name: "fetch", URL: "https://api.exa.ai/contents"},
		{Name: "findSimilar", URL: "https://api.exa.ai/findSimilar"},
		{Name: "answer", URL: "https://api.exa.ai/answer"},
	},
	Models: List{None: true},
	Search: true, Results: 100, News: true, Fetch: true,
}, {
	ID: "brave", Alias: "brave", Name: "Brave Search API",
	Family:  Other,
	BaseURL: "https://api.search.brave.com/res/v1",
	Auth:    Auth{Scheme: KeyName, Header: "x-subscription-token"},
	Kinds:   []catalog.Kind{catalog.WebSearch},
	Endpoints: []Endpoint{
		{Name: "search", URL: "https://api.search.brave.com/res/v1/web/search", Method: "GET"},
		{Name: "news", URL: "https://api.search.brave.com/res/v1/news/search", Method: "GET"},
		{Name: "images", URL: "https://api.search.brave.com/res/v1/images/search", Method: "GET"},
	},
	Models: List{None: true},
	Search: true, Results: 20, News: true,
}, {
	ID: "serper", Alias: "serper", Name: "Serper",
	Family:  Other,
	BaseURL: "https://google.serper.dev",
	Auth:    Auth{Scheme: KeyName, Header: "x-api-key"},
	Kinds:   []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "search", URL: "https://google.serper.dev/search"},
		{Name: "news", URL: "https://google.serper.dev/news"},
		{Name: "images", URL: "https://google.serper.dev/images"},
		{Name: "fetch", URL: "https://scrape.serper.dev"},
	},
	Models: List{None: true},
	Search: true, Results: 100, News: true, Fetch: true,
}, {
	ID: "searxng", Alias: "searxng", Name: "SearXNG (self-hosted)",
	Family:  Other,
	BaseURL: "http://localhost:8080",
	Auth:    Auth{Scheme: None},
	Kinds:   []catalog.Kind{catalog.WebSearch},
	Endpoints: []Endpoint{
		{Name: "search", URL: "http://localhost:8080/search", Method: "GET"},
	},
	Models: List{None: true},
	Search: true, Results: 100, News: true, Local: true, Rebase: true,
}, {
	ID: "firecrawl", Alias: "firecrawl", Name: "Firecrawl",
	Family:  Other,
	BaseURL: "https://api.firecrawl.dev",
	Kinds:   []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "fetch", URL: "https://api.firecrawl.dev/v2/scrape"},
		{Name: "search", URL: "https://api.firecrawl.dev/v2/search"},
		{Name: "map", URL: "https://api.firecrawl.dev/v2/map"},
		{Name: "crawl", URL: "https://api.firecrawl.dev/v2/crawl"},
	},
	Models: List{None: true},
	Search: true, Results: 100, News: true, Fetch: true, Rebase: true,
}, {
	ID: "jina-reader", Alias: "jina-reader", Name: "Jina Reader and Search",
	Family:  Other,
	BaseURL: "https://r.jina.ai",
	Auth:    Auth{Optional: true},
	Kinds:   []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "fetch", URL: "https://r.jina.ai/"},
		{Name: "search", URL: "https://s.jina.ai/"},
	},
	Models: List{None: true},
	Search: true, Results: 20, Fetch: true, Rebase: true,
}, {
	ID: "linkup", Alias: "linkup", Name: "Linkup",
	Family:  Other,
	BaseURL: "https://api.linkup.so/v1",
	Kinds:   []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "search", URL: "https://api.linkup.so/v1/search"},
		{Name: "fetch", URL: "https://api.linkup.so/v1/fetch"},
		{Name: "research", URL: "https://api.linkup.so/v1/research"},
	},
	Models: List{None: true},
	Search: true, Results: 100, Fetch: true,
}, {
	ID: "you", Alias: "you", Name: "You.com",
	Family:  Other,
	BaseURL: "https://ydc-index.io",
	Auth:    Auth{Scheme: KeyName, Header: "x-api-key"},
	Kinds:   []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "search", URL: "https://ydc-index.io/v1/search", Method: "GET"},
		{Name: "fetch", URL: "https://ydc-index.io/v1/contents"},
		{Name: "research", URL: "https://api.you.com/v1/research"},
	},
	Models: List{None: true},
	Search: true, Results: 100, News: true, Fetch: true,
}}
