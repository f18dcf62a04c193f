package provider

import "weir/pkg/catalog"

// Own is the alias of the gateway itself as a provider of pages. It has no row
// and no connection.
const Own = "web"

// web are web search and fetch services.
var web = []Descriptor{{
	ID: "tavily", Alias: "tavily", Name: "Tavily",
	KeyURL:  "https://app.tavily.com/",
	BaseURL: "https://api.tavily.com",
	Kinds:   []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "search", Path: "/search"},
		{Name: "fetch", Path: "/extract"},
		{Name: "crawl", Path: "/crawl"},
		{Name: "map", Path: "/map"},
	},
	Models: List{None: true},
	Search: true, Results: 20, News: true, Fetch: true,
	Spent: []int{432, 433}, // the plan's and the pay-as-you-go limit
}, {
	ID: "exa", Alias: "exa", Name: "Exa",
	KeyURL:  "https://dashboard.exa.ai/api-keys",
	BaseURL: "https://api.exa.ai",
	Auth:    Auth{Scheme: KeyName, Header: "x-api-key", Alt: []Auth{{}}},
	Kinds:   []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "search", Path: "/search"},
		{Name: "fetch", Path: "/contents"},
		{Name: "findSimilar", Path: "/findSimilar"},
		{Name: "answer", Path: "/answer"},
	},
	Models: List{None: true},
	Search: true, Results: 100, News: true, Fetch: true,
}, {
	ID: "brave", Alias: "brave", Name: "Brave Search API",
	KeyVariables: []string{"BRAVE_SEARCH_API_KEY"},
	KeyURL:       "https://api-dashboard.search.brave.com/app/keys",
	BaseURL:      "https://api.search.brave.com/res/v1",
	Auth:         Auth{Scheme: KeyName, Header: "x-subscription-token"},
	Kinds:        []catalog.Kind{catalog.WebSearch},
	Endpoints: []Endpoint{
		{Name: "search", Path: "/web/search", Method: "GET"},
		{Name: "news", Path: "/news/search", Method: "GET"},
		{Name: "images", Path: "/images/search", Method: "GET"},
	},
	Models: List{None: true},
	Search: true, Results: 20, News: true,
}, {
	ID: "serper", Alias: "serper", Name: "Serper",
	Initials: "Sp",
	KeyURL:   "https://serper.dev/api-keys",
	BaseURL:  "https://google.serper.dev",
	Auth:     Auth{Scheme: KeyName, Header: "x-api-key"},
	Kinds:    []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "search", Path: "/search"},
		{Name: "news", Path: "/news"},
		{Name: "images", Path: "/images"},
		{Name: "fetch", Path: "https://scrape.serper.dev"},
	},
	Models: List{None: true},
	Search: true, Results: 100, News: true, Fetch: true,
}, {
	ID: "searxng", Alias: "searxng", Name: "SearXNG (self-hosted)",
	Initials: "SX",
	BaseURL:  "http://localhost:8080",
	Auth:     Auth{Scheme: None},
	Kinds:    []catalog.Kind{catalog.WebSearch},
	Endpoints: []Endpoint{
		{Name: "search", Path: "/search", Method: "GET"},
	},
	Models: List{None: true},
	Search: true, Results: 100, News: true, Local: true, Rebase: true,
}, {
	ID: "firecrawl", Alias: "firecrawl", Name: "Firecrawl",
	Initials: "FC",
	KeyURL:   "https://www.firecrawl.dev/app/api-keys",
	BaseURL:  "https://api.firecrawl.dev",
	Kinds:    []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "fetch", Path: "/v2/scrape"},
		{Name: "search", Path: "/v2/search"},
		{Name: "map", Path: "/v2/map"},
		{Name: "crawl", Path: "/v2/crawl"},
	},
	Models: List{None: true},
	Search: true, Results: 100, News: true, Fetch: true, Rebase: true,
}, {
	ID: "jina-reader", Alias: "jina-reader", Name: "Jina Reader and Search",
	Initials: "JR",
	KeyURL:   "https://jina.ai/api-dashboard/key-manager",
	BaseURL:  "https://r.jina.ai",
	Auth:     Auth{Optional: true},
	Kinds:    []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "fetch", Path: "/"},
		{Name: "search", Path: "https://s.jina.ai/"},
	},
	Models: List{None: true},
	Search: true, Results: 20, Fetch: true, Rebase: true,
}, {
	ID: "linkup", Alias: "linkup", Name: "Linkup",
	KeyURL:  "https://app.linkup.so/",
	BaseURL: "https://api.linkup.so/v1",
	Kinds:   []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "search", Path: "/search"},
		{Name: "fetch", Path: "/fetch"},
		{Name: "research", Path: "/research"},
	},
	Models: List{None: true},
	Search: true, Results: 100, Fetch: true,
}, {
	ID: "you", Alias: "you", Name: "You.com",
	KeyVariables: []string{"YDC_API_KEY"},
	KeyURL:       "https://you.com/platform",
	BaseURL:      "https://ydc-index.io",
	Auth:         Auth{Scheme: KeyName, Header: "x-api-key"},
	Kinds:        []catalog.Kind{catalog.WebSearch, catalog.WebFetch},
	Endpoints: []Endpoint{
		{Name: "search", Path: "/v1/search", Method: "GET"},
		{Name: "fetch", Path: "/v1/contents"},
		{Name: "research", Path: "https://api.you.com/v1/research"},
	},
	Models: List{None: true},
	Search: true, Results: 100, News: true, Fetch: true,
}}
