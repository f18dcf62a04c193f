package proxy

import (
	"strings"

	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
)

// api is which API of a target's account is called, and how.
type api struct {
	dialect  llm.Dialect
	base     *provider.Base // a further base of the provider; nil is its own
	endpoint string         // of the provider's row
	stream   string         // the endpoint for streams, where it is another
	frames   bool           // streams come as Amazon's binary frames
	hosted   bool           // Claude at a cloud: version and model are not where Anthropic has them
	model    string         // the model id to send
}

// endpoints are the endpoints of a provider in a client's dialect.
var endpoints = [...]string{llm.Chat: "chat", llm.Responses: "responses", llm.Messages: "messages", llm.Gemini: "chat", llm.Completions: ""}

// nativeDialect returns the dialect of the endpoint "chat" of a family. The
// messages family has none.
func nativeDialect(f provider.Family) (llm.Dialect, bool) {
	switch f {
	case provider.OpenAI, provider.Azure:
		return llm.Chat, true
	case provider.Gemini, provider.Vertex:
		return llm.Gemini, true
	case provider.Cohere:
		return llm.Cohere, true
	case provider.Bedrock:
		return llm.Converse, true
	}
	return 0, false
}

// chooseAPI returns the API of a target for a client of the dialect from: the
// one of that dialect if the provider has it, or the provider's own chat.
// chatOnly excludes a Responses API that the server lacks. ok is false for a
// provider without chat.
func chooseAPI(to *routing.Target, conn *store.Connection, from llm.Dialect, chatOnly bool) (w api, ok bool) {
	d := to.Provider
	cloud := d.Family == provider.Vertex || d.Family == provider.Bedrock
	claude := cloud && strings.Contains(to.Model, "claude")
	if w, ok = ownAPI(d, from, claude, cloud, chatOnly); !ok && !claude {
		w, ok = furtherAPI(d, conn, from, chatOnly)
	}
	switch own, speaks := nativeDialect(d.Family); {
	case ok:
	case claude && d.Serves("messages") && d.Family == provider.Vertex:
		w, ok = api{dialect: llm.Messages, endpoint: "messages", hosted: true}, true
	case speaks && d.Serves("chat"):
		w, ok = api{dialect: own, endpoint: "chat"}, true
	case d.Serves("messages"):
		w, ok = api{dialect: llm.Messages, endpoint: "messages"}, true
	}
	if !ok {
		return w, false
	}
	w.model = to.Model
	w.stream = w.endpoint
	if w.base == nil && d.Serves(w.endpoint+"Stream") {
		w.stream = w.endpoint + "Stream"
		w.frames = d.Family == provider.Bedrock
	}
	if w.base != nil && d.Family == provider.Vertex && !strings.Contains(w.model, "/") {
		w.model = "google/" + w.model // as its OpenAI-style address names publishers
	}
	return w, true
}

// ownAPI returns the API of the provider itself in the client's dialect.
func ownAPI(d *provider.Descriptor, from llm.Dialect, claude, cloud, chatOnly bool) (api, bool) {
	name := endpoints[from]
	switch from {
	case llm.Chat, llm.Gemini:
		if got, speaks := nativeDialect(d.Family); !speaks || got != from || claude {
			return api{}, false
		}
	case llm.Messages:
		if cloud && !claude {
			return api{}, false
		}
	case llm.Responses:
		if chatOnly {
			return api{}, false
		}
	}
	return api{dialect: from, endpoint: name, hosted: claude}, d.Serves(name)
}

// furtherAPI returns the API of a further base in the client's dialect. A
// further base has another address: a key for a custom address is not sent to
// it.
func furtherAPI(d *provider.Descriptor, conn *store.Connection, from llm.Dialect, chatOnly bool) (api, bool) {
	if conn != nil && d.Rebase && conn.Data.BaseURL != "" || d.Family == provider.Bedrock || d.Express(conn) || from == llm.Responses && chatOnly || from == llm.Gemini {
		return api{}, false
	}
	family := provider.OpenAI
	if from == llm.Messages {
		family = provider.Anthropic
	}
	b := d.BaseOf(family)
	if b == nil {
		return api{}, false
	}
	name := endpoints[from]
	for i := range b.Endpoints {
		if b.Endpoints[i].Name == name {
			return api{dialect: from, base: b, endpoint: name}, true
		}
	}
	return api{}, false
}
