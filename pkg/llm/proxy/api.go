package proxy

import (
	"strings"

	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
)

// way is how a target is spoken to.
type way struct {
	dialect  llm.Dialect
	base     *provider.Base // a further base of the provider; nil is its own
	endpoint string         // of the provider's row
	stream   string         // the endpoint for streams, where it is another
	frames   bool           // streams come as Amazon's binary frames
	hosted   bool           // Claude at a cloud: version and model are not where Anthropic has them
	model    string         // the model id to send
}

// endpoints are the names of the addresses that speak a client's dialect.
var endpoints = [...]string{llm.Chat: "chat", llm.Responses: "responses", llm.Messages: "messages"}

// native is the dialect of the endpoint "chat" by the family of a base. The
// messages family has none.
func native(f provider.Family) (llm.Dialect, bool) {
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

// wayOf finds how a target is spoken to for a client of the dialect from: in
// that dialect where the provider has an address for it, else by its own chat.
// chatOnly passes over a Responses address that is not there. ok is false for
// a provider without chat.
func wayOf(to *routing.Target, conn *store.Connection, from llm.Dialect, chatOnly bool) (w way, ok bool) {
	d := to.Provider
	cloud := d.Family == provider.Vertex || d.Family == provider.Bedrock
	claude := cloud && strings.Contains(to.Model, "claude")
	if w, ok = own(d, from, claude, cloud, chatOnly); !ok && !claude {
		w, ok = further(d, conn, from, chatOnly)
	}
	switch own, speaks := native(d.Family); {
	case ok:
	case claude && d.Serves("messages") && d.Family == provider.Vertex:
		w, ok = way{dialect: llm.Messages, endpoint: "messages", hosted: true}, true
	case speaks && d.Serves("chat"):
		w, ok = way{dialect: own, endpoint: "chat"}, true
	case d.Serves("messages"):
		w, ok = way{dialect: llm.Messages, endpoint: "messages"}, true
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

// own is the address of the provider itself that speaks the client's dialect.
func own(d *provider.Descriptor, from llm.Dialect, claude, cloud, chatOnly bool) (way, bool) {
	name := endpoints[from]
	switch from {
	case llm.Chat:
		if got, speaks := native(d.Family); !speaks || got != llm.Chat {
			return way{}, false
		}
	case llm.Messages:
		if cloud && !claude {
			return way{}, false
		}
	case llm.Responses:
		if chatOnly {
			return way{}, false
		}
	}
	return way{dialect: from, endpoint: name, hosted: claude}, d.Serves(name)
}

// further is the address of a further base that speaks the client's dialect.
// Those have an address of their own: a key that was given for another one is
// not sent there.
func further(d *provider.Descriptor, conn *store.Connection, from llm.Dialect, chatOnly bool) (way, bool) {
	if conn != nil && d.Rebase && conn.Data.BaseURL != "" || d.Family == provider.Bedrock || d.Express(conn) || from == llm.Responses && chatOnly {
		return way{}, false
	}
	family := provider.OpenAI
	if from == llm.Messages {
		family = provider.Anthropic
	}
	b := d.BaseOf(family)
	if b == nil {
		return way{}, false
	}
	name := endpoints[from]
	for i := range b.Endpoints {
		if b.Endpoints[i].Name == name {
			return way{dialect: from, base: b, endpoint: name}, true
		}
	}
	return way{}, false
}
