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

// chooseAPI returns the API of a target for a client of the dialect from: the
// one of that dialect if the provider has it, or the provider's own chat.
// chatOnly excludes a Responses API that the server lacks. ok is false for a
// provider without chat.
func chooseAPI(to *routing.Target, conn *store.Connection, from llm.Dialect, chatOnly bool) (w api, ok bool) {
	d := to.Provider
	hosts := d.Cloud == provider.Vertex || d.Cloud == provider.Bedrock
	claude := hosts && strings.Contains(to.Model, "claude")
	switch {
	case from == llm.Responses && chatOnly:
	case ownAPI(d, from, hosts, claude):
		w, ok = api{dialect: from, endpoint: from.Endpoint(), hosted: claude}, true
	case !claude:
		w, ok = furtherAPI(d, conn, from)
	}
	switch own := d.Dialect.Endpoint(); {
	case ok:
	case claude && d.Serves("messages") && d.Cloud == provider.Vertex:
		w, ok = api{dialect: llm.Messages, endpoint: "messages", hosted: true}, true
	case d.Serves(own):
		w, ok = api{dialect: d.Dialect, endpoint: own}, true
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
		w.frames = d.Cloud == provider.Bedrock
	}
	if w.base != nil && d.Cloud == provider.Vertex && !strings.Contains(w.model, "/") {
		w.model = "google/" + w.model // as its OpenAI-style address names publishers
	}
	return w, true
}

// ownAPI reports whether the provider itself has an API in the client's dialect. hosts
// reports a cloud that hosts Claude, claude that the model is one.
func ownAPI(d *provider.Descriptor, from llm.Dialect, hosts, claude bool) bool {
	switch name := from.Endpoint(); {
	case name == "chat" && (d.Dialect != from || claude), from == llm.Messages && hosts && !claude:
		return false
	default:
		return d.Serves(name)
	}
}

// furtherAPI returns the API of a further base in the client's dialect. A
// further base has another address: a key for a custom address is not sent to
// it.
func furtherAPI(d *provider.Descriptor, conn *store.Connection, from llm.Dialect) (api, bool) {
	if conn != nil && d.Rebase && conn.Data.BaseURL != "" || d.Cloud == provider.Bedrock || d.Express(conn) {
		return api{}, false
	}
	name := from.Endpoint()
	for i := range d.Alt {
		if b := &d.Alt[i]; b.Serves(name) && (name != "chat" || from == llm.Chat) {
			return api{dialect: from, base: b, endpoint: name}, true
		}
	}
	return api{}, false
}
