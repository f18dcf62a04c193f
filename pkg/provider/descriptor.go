// Package provider describes the upstream providers: a row each, and how an
// address and its headers are made from it.
package provider

import "weir/pkg/catalog"

// Family is the wire family of a base address.
type Family uint8

// The wire families. The zero value is OpenAI's chat completions style.
const (
	OpenAI Family = iota
	Anthropic
	Gemini
	Vertex
	Bedrock
	Azure
	Cohere
	Other // no chat; each service has a shape of its own
)

// Scheme is how a credential is presented. The zero value is Bearer.
type Scheme uint8

// The schemes.
const (
	Bearer   Scheme = iota // Authorization: Bearer <key or access token>
	KeyName                // the key in the header Auth.Header, formatted by Auth.Format
	None                   // no credential
	SigV4                  // AWS Signature Version 4
	GoogleSA               // an access token from a Google service account
)

// Auth says how a credential is presented.
type Auth struct {
	Scheme Scheme
	Header string // lower case; for KeyName
	Format string // "Token %s"; empty means the bare key
	// Optional: calls may go out without a credential.
	Optional bool
	// AlsoBearer: the key goes out as a bearer token besides
	// (docs/reference/spec.md, 4.2.4).
	AlsoBearer bool
	TokenURL   string // endpoint of access tokens; for GoogleSA
	Scope      string // of that token
	Service    string // name that is signed for; for SigV4
	Alt        []Auth // further schemes that the provider takes
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
	IDPrefix string // cut off the id
	None     bool   // the provider has no list
	Size     string // query that asks for large pages, "limit=1000"
	Token    string // query parameter that names the next page; a number when Next is empty
	Next     string // field of the answer with its value, or with the whole address when Token is empty
}

// Base is a further address of a provider, of another family.
type Base struct {
	Family    Family
	URL       string
	Auth      Auth
	Endpoints []Endpoint
}

// Descriptor is one provider. Zero values are the common case: chat format,
// bearer key, kind llm.
type Descriptor struct {
	ID, Alias, Name string
	Family          Family
	BaseURL         string
	Auth            Auth
	Header          [][2]string // sent with every call
	OptHeader       [][2]string // header, and the connection's variable that fills it when given
	Kinds           []catalog.Kind
	Endpoints       []Endpoint
	Models          List
	Alt             []Base
	Vars            []string // names in braces that a connection must give
	OptVars         []string // further variables of its addresses that it may give
	Search, Fetch   bool
	Results         int  // of its search, the most of one call
	News            bool // its search knows news
	Aggregator      bool
	Local           bool // runs on the operator's own network
	Compatible      bool // one of the two compatible families: made from an id, not a row
	Rebase          bool // a connection may give another base address
	ModelPath       bool // {model} keeps its slashes in an address
	// Spent are statuses by which the provider says that the account's plan or
	// credit is used up, besides 402.
	Spent []int
	// SpentInside reports that the code insufficient_quota applies to the
	// account within a 2xx answer too, as in an event of a stream.
	SpentInside bool
	// Embed names the shape of the embeddings endpoint where it is not
	// OpenAI's: "gemini", "cohere", "voyage", "jina", …
	Embed string
}
