// Package clientheader is the list of a client's header fields that mean
// something to the gateway: on which routes each is read, and to which
// upstreams it is forwarded. Every other field stops at the platform
// (docs/reference/reliability.md, T20).
//
// To read or forward another field, add a row to the table and run
// go generate ./worker/contract, which writes the list for the platform's
// JavaScript.
package clientheader

import (
	"strings"

	"weir/pkg/wire/tracecontext"
)

// Hop counts the gateways of this kind that a call has passed.
const Hop = "x-weir-hop"

// Routes is a set of route classes.
type Routes uint8

// The route classes.
const (
	// Calls are the busiest routes. Each look-up of a field costs as much as a
	// small allocation there, so their list is short.
	Calls Routes = 1 << iota
	Messages
	Responses
	Gemini
	Data       // the other routes of /v1
	Management // /api, sign-in and pages

	everywhere = Calls | Messages | Responses | Gemini | Data | Management
	unhurried  = everywhere &^ Calls
	sessions   = unhurried &^ Management
)

// Class is a route class, which the platform recognizes by the path of a request,
// without the machine id in front.
type Class struct {
	Routes Routes
	Name   string
	// Paths belong to the class with all below them, unless an earlier class
	// has them. "" is every path.
	Paths []string
	// CORS reports whether any origin may read an answer
	// (docs/reference/spec.md, 4.13).
	CORS bool
}

// Classes returns the route classes in the order in which they are tried.
func Classes() []Class {
	return []Class{
		{Routes: Calls, Name: "calls", Paths: []string{"/v1/embeddings", "/v1/chat/completions"}, CORS: true},
		{Routes: Messages, Name: "messages", Paths: []string{"/v1/messages"}, CORS: true},
		{Routes: Responses, Name: "responses", Paths: []string{"/v1/responses"}, CORS: true},
		{Routes: Gemini, Name: "gemini", Paths: []string{"/v1beta", "/v1alpha"}, CORS: true},
		{Routes: Data, Name: "data", Paths: []string{"/v1"}, CORS: true},
		{Routes: Management, Name: "management", Paths: []string{""}},
	}
}

// ClassOf returns the class of a path.
func ClassOf(path string) Class {
	list := Classes()
	for _, c := range list {
		for _, p := range c.Paths {
			if path == p || strings.HasPrefix(path, p+"/") {
				return c
			}
		}
	}
	return list[len(list)-1]
}

// Upstreams is a set of kinds of upstream requests.
type Upstreams uint8

// The kinds of upstream requests. Messages and Responses are those of a client
// of the same dialect; the media requests are those that repeat the client's.
const (
	ToMessages Upstreams = 1 << iota
	ToResponses
	ToSpeech
	ToTranscriptions
	ToImages
	ToVideos
	ToRealtime

	toMedia = ToSpeech | ToTranscriptions | ToImages | ToVideos
)

// Field is one row of the table.
type Field struct {
	// Name is in lower case. One that ends with "-" stands for every field whose
	// name begins with it.
	Name string
	// Read are the routes on which the gateway receives the field.
	Read Routes
	// Sent are the upstreams to which the field is forwarded as it is.
	Sent Upstreams
}

var fields = [...]Field{
	{Name: "authorization", Read: everywhere},
	{Name: "x-api-key", Read: everywhere},
	{Name: "x-goog-api-key", Read: Gemini | Data},
	{Name: "content-length", Read: everywhere},
	{Name: "content-encoding", Read: everywhere, Sent: ToVideos},
	{Name: "origin", Read: everywhere},
	{Name: "upgrade", Read: everywhere},
	{Name: "idempotency-key", Read: everywhere, Sent: ToSpeech | ToImages | ToVideos},
	{Name: "x-connection-id", Read: everywhere},
	{Name: "x-stainless-timeout", Read: everywhere},
	{Name: "x-server-timeout", Read: Gemini},
	{Name: Hop, Read: everywhere},
	{Name: "x-weir-tags", Read: everywhere &^ Management},
	{Name: tracecontext.Parent, Read: everywhere &^ Management},
	{Name: tracecontext.State, Read: everywhere &^ Management},
	{Name: "user-agent", Read: everywhere &^ Management},

	{Name: "content-type", Read: unhurried, Sent: toMedia},
	{Name: "accept", Read: Data | Management, Sent: toMedia}, // chooses the form of metrics
	{Name: "anthropic-version", Read: Data | Management},     // asks for a model list in Anthropic's form
	{Name: "sec-websocket-protocol", Read: Data},             // has the key of a browser's WebSocket
	{Name: "x-model", Read: Data},
	{Name: "x-provider", Read: Data},
	{Name: "x-weir-internal-models-fetch", Read: Data | Gemini | Management},

	// In these the clients of a dialect name their version, features, tool and
	// session. The lists are open, as the vendors' protocols for gateways ask for
	// (docs/reference/clients.md).
	{Name: "anthropic-", Read: Messages, Sent: ToMessages},
	{Name: "x-app", Read: Messages, Sent: ToMessages},
	{Name: "x-claude-code-", Read: Messages, Sent: ToMessages},
	{Name: "conversation_id", Read: Responses, Sent: ToResponses},
	{Name: "openai-beta", Read: Responses | Data, Sent: ToResponses | ToRealtime},
	{Name: "openai-safety-identifier", Read: Data, Sent: ToRealtime},
	{Name: "originator", Read: Responses, Sent: ToResponses},
	{Name: "session-id", Read: Responses, Sent: ToResponses},
	{Name: "session_id", Read: Responses, Sent: ToResponses},
	{Name: "thread-id", Read: Responses, Sent: ToResponses},
	{Name: "x-codex-", Read: Responses, Sent: ToResponses},
	{Name: "x-openai-", Read: Responses, Sent: ToResponses},

	// By these tools name their session (docs/routing.md).
	{Name: "agent-session-id", Read: sessions},
	{Name: "x-client-session-id", Read: sessions},
	{Name: "x-litellm-session-id", Read: sessions},
	{Name: "x-openwebui-chat-id", Read: sessions},
	{Name: "x-session-affinity", Read: sessions | Calls},
	{Name: "x-session-id", Read: sessions | Calls},

	{Name: "cf-connecting-ip", Read: everywhere},
	{Name: "cf-ipcountry", Read: everywhere &^ Management},
	{Name: "cookie", Read: Management},
	{Name: "cf-access-jwt-assertion", Read: Management}, // by which proxies say who calls
	{Name: "x-goog-iap-jwt-assertion", Read: Management},
	{Name: "if-match", Read: Management},
	{Name: "sec-fetch-site", Read: Management},
	{Name: "x-csrf-token", Read: Management},
}

// Read returns the rows of the fields that are read on a route class.
func Read(r Routes) (out []Field) {
	for _, f := range fields {
		if f.Read&r != 0 {
			out = append(out, f)
		}
	}
	return out
}

// Sent reports whether a field of a client's request is forwarded to an
// upstream. name is in lower case.
func Sent(name string, to Upstreams) bool {
	for i := range fields {
		f := &fields[i]
		if f.Sent&to == 0 {
			continue
		}
		if f.Name == name || f.prefix() && strings.HasPrefix(name, f.Name) {
			return true
		}
	}
	return false
}

func (f *Field) prefix() bool { return strings.HasSuffix(f.Name, "-") }
