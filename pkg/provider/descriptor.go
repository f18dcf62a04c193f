// Package provider describes the upstream providers, one row each, and builds URLs and
// headers from the rows.
package provider

import (
	"time"

	"weir/pkg/catalog"
	"weir/pkg/llm"
)

// Cloud is a cloud whose URLs or credentials have rules of their own.
type Cloud uint8

// The clouds. Other providers have the zero value.
const (
	Azure   Cloud = iota + 1
	Bedrock       // hosts Claude too
	Vertex        // hosts Claude too
)

// Scheme is how a credential is sent. The zero value is Bearer.
type Scheme uint8

// The schemes.
const (
	Bearer   Scheme = iota // Authorization: Bearer <key or access token>
	KeyName                // the key in the header Auth.Header, formatted by Auth.Format
	None                   // no credential
	SigV4                  // AWS Signature Version 4
	GoogleSA               // an access token from a Google service account
)

// Auth describes how a credential is sent.
type Auth struct {
	Scheme Scheme
	Header string // lower case; for KeyName
	Format string // "Token %s"; empty means the bare key
	// Optional reports that calls may be sent without a credential.
	Optional bool
	// AlsoBearer reports that the key is sent as a bearer token too
	// (docs/reference/spec.md, 4.2.4).
	AlsoBearer bool
	TokenURL   string // endpoint for access tokens; for GoogleSA
	Scope      string // of that token
	Service    string // service name in the signature; for SigV4
	Alt        []Auth // further schemes that the provider accepts
}

// Endpoint is one endpoint of a provider. {model} and other names in braces are
// replaced by values that are percent-encoded as one path segment each.
type Endpoint struct {
	Name string // "chat", "embeddings", "models", …
	// Path starts with a slash and follows the base URL, or its origin if AtRoot is
	// set. An endpoint on another host has an absolute URL here.
	Path   string
	AtRoot bool
	Method string // empty means POST
}

// List describes how a model list is read, and how its next page is requested.
type List struct {
	Array    string // name of the array, "" for a bare array; several separated by a space
	ID       string // field with the id, "owner/name" joins two
	IDPrefix string // removed from the id
	None     bool   // the provider has no list
	Skip     string // prefix of listed ids that only an API without an endpoint here serves
	Size     string // query that requests large pages, "limit=1000"
	Token    string // query parameter of the next page; a page number if Next is empty
	Next     string // field of the response with its value, or with the whole URL if Token is empty
}

// Base is a further base URL of a provider, with endpoints of other dialects. Its endpoint
// "chat" is OpenAI's.
type Base struct {
	URL       string
	Auth      Auth
	Endpoints []Endpoint
}

// Descriptor is one provider. Zero values are the common case: chat format,
// bearer key, kind llm.
type Descriptor struct {
	ID, Alias, Name string
	Initials        string      // of its mark; "" for the first two letters of Name
	KeyURL          string      // the page where its keys are created; "" if it has none
	KeyPrefixes     []string    // texts with which its keys begin, and no other provider's keys
	StatusPage      string      // its public status, with Atlassian's /api/v2/summary.json; "" without one
	ModelsDev       []string    // its ids at models.dev, whose document may refresh its prices
	Dialect         llm.Dialect // of its chat, at the endpoint that llm.Dialect.Endpoint names
	Cloud           Cloud
	BaseURL         string
	Auth            Auth
	Header          [][2]string // sent with every call
	OptHeader       [][2]string // header, and the connection's variable with its value
	Kinds           []catalog.Kind
	Endpoints       []Endpoint
	Models          List
	Alt             []Base
	Vars            []string // names in braces that a connection must define
	OptVars         []string // further variables of its URLs that a connection may define
	// KeyVariables of the environment usually have its key, besides ID_API_KEY, and
	// Environment those of Vars.
	KeyVariables  []string
	Environment   [][2]string // name of Vars, variable
	Search, Fetch bool
	Results       int  // largest number of results of one search
	News          bool // its search has a filter for news
	Local         bool // runs on the operator's own network
	Compatible    bool // one of the two compatible families: derived from an id, not a row
	Rebase        bool // a connection may have another base URL
	StreamUsage   bool // its chat accepts stream_options, by its API reference
	ModelPath     bool // {model} keeps its slashes in a URL
	StatesCost    bool // the usage of its answers has what they cost, see ir.Usage.Charge
	// Spent are the statuses, apart from 402, that mean that the account's plan or
	// credit is used up.
	Spent []int
	// RequestsPer is what x-ratelimit-limit-requests counts, if the vendor documents
	// it: requests a day at Groq.
	RequestsPer time.Duration
	// SpentInside reports that the code insufficient_quota applies to the
	// account within a 2xx answer too, as in an event of a stream.
	SpentInside bool
	// Embed names the format of the embeddings endpoint if it is not OpenAI's:
	// "gemini", "cohere", "voyage", "jina", …
	Embed string
	// Test is the model that a connection test calls: small, cheap and open to every
	// account. Without one the test takes a model of the provider's own list.
	Test string
	// Check names the endpoint whose GET a connection test calls where the provider
	// has neither chat, embeddings, search nor a list of models. It costs nothing and
	// refuses a wrong key.
	Check string
}
