package gateway

import (
	"strings"

	"weir/pkg/api"
	"weir/pkg/auth"
	"weir/pkg/auth/session"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/llm/proxy"
	"weir/pkg/v1/audio"
	"weir/pkg/v1/embeddings"
	"weir/pkg/v1/images"
	"weir/pkg/v1/messages"
	"weir/pkg/v1/models"
	"weir/pkg/v1/moderations"
	"weir/pkg/v1/realtime"
	"weir/pkg/v1/rerank"
	"weir/pkg/v1/responses"
	"weir/pkg/v1/search"
	"weir/pkg/v1/usage"
	"weir/pkg/v1/videos"
	"weir/pkg/v1/web"
	"weir/pkg/v1beta"
)

// handlers are the endpoints.
type handlers struct {
	embeddings *embeddings.Handler
	models     *models.Handler
	chats      *proxy.Proxy
	messages   *messages.Handler
	responses  *responses.Handler
	sockets    *responses.Sockets
	gemini     *v1beta.Handler

	audio  *audio.Handler
	images *images.Handler
	videos *videos.Handler

	search      *search.Handler
	web         *web.Handler
	rerank      *rerank.Handler
	moderations *moderations.Handler
	usage       *usage.Handler
	realtime    *realtime.Handler

	management *api.Handlers
}

const (
	maxJSON = 8 << 20 // bytes of a JSON body (docs/reference/reliability.md, T37)
	maxChat = 32 << 20
	maxAsk  = 256 << 10 // of a search or a fetch: a query or an address, and options
	maxForm = 256 << 20 // of a form that flows up; its endpoint bounds what is held
)

var health = Route{Pattern: "/health", Access: endpoint.Public, Methods: []Method{{Name: "GET", Handler: serveHealth}}}

// routes returns every URL. The /v1, /v1beta and /api routes exist under /{machineId}
// too. The routes of /api are the table of pkg/api.
func routes(h *handlers) []Route {
	return append(append([]Route{health}, dataRoutes(h)...), api.Routes(h.management)...)
}

// Routes returns every URL without working handlers, for the description of the API.
func Routes() []Route {
	return routes(&handlers{management: &api.Handlers{Sessions: &session.Sessions{}}})
}

// dataRoutes returns the routes of the data plane.
func dataRoutes(h *handlers) []Route {
	const data, open = endpoint.Data, endpoint.OpenCors
	get := func(f endpoint.Handler) []Method { return []Method{{Name: "GET", Handler: f}} }
	post := func(f endpoint.Handler) []Method { return []Method{{Name: "POST", Handler: f}} }
	list := func(pattern string, f endpoint.Handler) Route {
		return Route{Pattern: pattern, Access: endpoint.List, Models: true, Cors: endpoint.ListCors, Methods: get(f)}
	}
	form := func(pattern string, f endpoint.Handler) Route {
		return Route{
			Pattern: pattern, Access: data, Cors: open, MaxBody: maxForm, Methods: post(f),
			AnyEncoding: strings.HasPrefix(pattern, "/v1/videos/"), Explain: pattern == "/v1/videos/generations",
		}
	}
	return []Route{
		list("/v1/models", h.models.List),
		list("/v1/models/info", h.models.Info),
		list("/v1/models/{kind}", h.models.Kind),
		list("/v1/models/{alias}/{model...}", h.models.Model),
		{
			Pattern: "/v1/embeddings", Access: data, Cors: open, MaxBody: maxJSON, Explain: true,
			Methods: post(h.embeddings.Create),
		},
		{
			Pattern: "/v1/chat/completions", Access: data, Cors: open, MaxBody: maxChat,
			Explain: true, Translates: true, Methods: post(h.chats.Handler(llm.Chat)),
		},
		{
			Pattern: "/v1/completions", Access: data, Dialect: llm.Completions, Cors: open, MaxBody: maxChat,
			Explain: true, Translates: true, Methods: post(h.chats.Handler(llm.Completions)),
		},
		{
			Pattern: "/v1/messages", Access: data, Dialect: llm.Messages, Cors: open, MaxBody: maxChat,
			Explain: true, Translates: true, Methods: post(h.chats.Handler(llm.Messages)),
		},
		{
			Pattern: "/v1/messages/count_tokens", Access: data, Dialect: llm.Messages, Cors: open, MaxBody: maxChat,
			Explain: true, Methods: post(h.messages.CountTokens),
		},
		{
			Pattern: "/v1/responses", Access: data, Dialect: llm.Responses, Cors: open, MaxBody: maxChat,
			Explain: true, Translates: true, Methods: post(h.responses.Create), Upgrade: h.sockets.Connect,
		},
		{
			Pattern: "/v1/responses/compact", Access: data, Dialect: llm.Responses, Cors: open, MaxBody: maxChat,
			Explain: true, Translates: true, Methods: post(h.responses.Compact),
		},
		{
			Pattern: "/v1/responses/input_tokens", Access: data, Dialect: llm.Responses, Cors: open, MaxBody: maxChat,
			Explain: true, Methods: post(h.responses.InputTokens),
		},
		{Pattern: "/v1/responses/{id}", Access: data, Dialect: llm.Responses, Cors: open, Methods: []Method{
			{Name: "GET", Handler: h.responses.Get}, {Name: "DELETE", Handler: h.responses.Delete},
		}},
		{
			Pattern: "/v1/responses/{id}/input_items", Access: data, Dialect: llm.Responses, Cors: open,
			Methods: get(h.responses.Items),
		},
		{
			Pattern: "/v1/responses/{id}/cancel", Access: data, Dialect: llm.Responses, Cors: open, MaxBody: maxJSON,
			Methods: post(h.responses.Cancel),
		},

		{
			Pattern: "/v1beta/models", Access: endpoint.List, Dialect: llm.Gemini, Cors: open,
			Methods: get(h.gemini.List),
		},
		{
			Pattern: "/v1beta/models/{model...}", Access: data, Dialect: llm.Gemini, Cors: open, MaxBody: maxChat,
			Explain: true, Translates: true,
			Methods: []Method{
				{Name: "GET", Handler: h.gemini.Model, Access: endpoint.List}, {Name: "POST", Handler: h.gemini.Call},
			},
		},

		{
			Pattern: "/v1/audio/speech", Access: data, Cors: open, MaxBody: maxJSON, Explain: true,
			Methods: post(h.audio.Speech),
		},
		{Pattern: "/v1/audio/voices", Access: data, Cors: open, Methods: get(h.audio.Voices)},
		form("/v1/audio/transcriptions", h.audio.Transcriptions),
		form("/v1/audio/translations", h.audio.Translations),
		{
			Pattern: "/v1/images/generations", Access: data, Cors: open, MaxBody: endpoint.MaxForm, Explain: true,
			Methods: post(h.images.Generations),
		},
		form("/v1/images/edits", h.images.Edits),
		form("/v1/images/variations", h.images.Variations),
		form("/v1/videos/generations", h.videos.Generations),
		form("/v1/videos/edits", h.videos.Edits),
		form("/v1/videos/extensions", h.videos.Extensions),
		{Pattern: "/v1/videos/{request_id}", Access: data, Cors: open, Methods: get(h.videos.Get)},
		{Pattern: "/v1/videos/{request_id}/content", Access: data, Cors: open, Methods: get(h.videos.Content)},

		{
			Pattern: "/v1/search", Access: data, Cors: open, MaxBody: maxAsk, Explain: true,
			Methods: post(h.search.Create),
		},
		{
			Pattern: "/v1/web/fetch", Access: data, Cors: open, MaxBody: maxAsk, Explain: true,
			Methods: post(h.web.Fetch),
		},
		{
			Pattern: "/v1/rerank", Access: data, Cors: open, MaxBody: maxJSON, Explain: true,
			Methods: post(h.rerank.Create),
		},
		{
			Pattern: "/v1/realtime", Access: endpoint.Realtime, Cors: open, Explain: true,
			Methods: get(upgradeRequired), Upgrade: h.realtime.Connect,
		},
		{Pattern: "/v1/usage", Access: endpoint.Own, Cors: open, Methods: get(h.usage.Get)},
		{Pattern: "/v1/usage/requests/{id}", Access: endpoint.Own, Cors: open, Methods: get(h.usage.Request)},
		{
			Pattern: "/v1/realtime/client_secrets", Access: data, Cors: open, MaxBody: maxJSON,
			Methods: post(h.realtime.CreateSecret),
		},
		{
			Pattern: "/v1/moderations", Access: data, Cors: open, MaxBody: maxChat, Explain: true,
			Methods: post(h.moderations.Create),
		},
	}
}

// explained returns the endpoint of a call whose plan POST /api/explain shows, or nil.
// It sets the route and the parameters of the call, and the method of one that opens a
// WebSocket.
func explained(h *handlers, c *auth.Call) endpoint.Handler {
	machine, path := split(c.Request)
	r, params := newTable(dataRoutes(h)).find(path)
	if r == nil || !r.Explain || machine != "" {
		return nil
	}
	c.Route, c.Params = r.Pattern, params
	if m := r.Method("POST"); m != nil {
		return m.Handler
	}
	c.Method = "GET"
	return r.Upgrade
}
