package gateway

import (
	"strings"

	"weir/pkg/api"
	"weir/pkg/auth"
	"weir/pkg/auth/session"
	"weir/pkg/endpoint"
	"weir/pkg/v1/audio"
	"weir/pkg/v1/chat"
	"weir/pkg/v1/completions"
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
	chat       *chat.Handler
	messages   *messages.Handler
	responses  *responses.Handler
	sockets    *responses.Sockets
	gemini     *v1beta.Handler

	completions *completions.Handler

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

var health = Route{Pattern: "/health", Access: Public, Methods: []Method{{Name: "GET", Handler: serveHealth}}}

// routes returns every URL. The /v1, /v1beta and /api routes exist under /{machineId}
// too. The routes of /api are the table of pkg/api.
func routes(h *handlers) []Route {
	return append(append([]Route{health}, dataRoutes(h)...), managementRoutes(h.management)...)
}

// Routes returns every URL without working handlers, for the description of the API.
func Routes() []Route {
	return routes(&handlers{management: &api.Handlers{Sessions: &session.Sessions{}}})
}

// dataRoutes returns the routes of the data plane.
func dataRoutes(h *handlers) []Route {
	get := func(f Handler) []Method { return []Method{{Name: "GET", Handler: f}} }
	post := func(f Handler) []Method { return []Method{{Name: "POST", Handler: f}} }
	list := func(pattern string, f Handler) Route {
		return Route{Pattern: pattern, Access: List, Dialect: ModelList, Cors: ListCors, Methods: get(f)}
	}
	form := func(pattern string, f Handler) Route {
		return Route{Pattern: pattern, Access: Data, Cors: OpenCors, MaxBody: maxForm, AnyEncoding: strings.HasPrefix(pattern, "/v1/videos/"), Explain: pattern == "/v1/videos/generations", Methods: post(f)}
	}
	return []Route{
		list("/v1/models", h.models.List),
		list("/v1/models/info", h.models.Info),
		list("/v1/models/{kind}", h.models.Kind),
		list("/v1/models/{alias}/{model...}", h.models.Model),
		{Pattern: "/v1/embeddings", Explain: true, Access: Data, Cors: OpenCors, MaxBody: maxJSON, Methods: post(h.embeddings.Create)},
		{Pattern: "/v1/chat/completions", Explain: true, Translates: true, Access: Data, Cors: OpenCors, MaxBody: maxChat, Methods: post(h.chat.Complete)},
		{Pattern: "/v1/completions", Explain: true, Translates: true, Access: Data, Cors: OpenCors, MaxBody: maxChat, Methods: post(h.completions.Create)},
		{Pattern: "/v1/messages", Explain: true, Translates: true, Access: Data, Dialect: Anthropic, Cors: OpenCors, MaxBody: maxChat, Methods: post(h.messages.Create)},
		{Pattern: "/v1/messages/count_tokens", Explain: true, Access: Data, Dialect: Anthropic, Cors: OpenCors, MaxBody: maxChat, Methods: post(h.messages.CountTokens)},
		{Pattern: "/v1/responses", Explain: true, Translates: true, Access: Data, Cors: OpenCors, MaxBody: maxChat, Methods: post(h.responses.Create), Upgrade: h.sockets.Connect},
		{Pattern: "/v1/responses/compact", Explain: true, Translates: true, Access: Data, Cors: OpenCors, MaxBody: maxChat, Methods: post(h.responses.Compact)},
		{Pattern: "/v1/responses/input_tokens", Explain: true, Access: Data, Cors: OpenCors, MaxBody: maxChat, Methods: post(h.responses.InputTokens)},
		{Pattern: "/v1/responses/{id}", Access: Data, Cors: OpenCors, Methods: []Method{
			{Name: "GET", Handler: h.responses.Get}, {Name: "DELETE", Handler: h.responses.Delete},
		}},
		{Pattern: "/v1/responses/{id}/input_items", Access: Data, Cors: OpenCors, Methods: get(h.responses.Items)},
		{Pattern: "/v1/responses/{id}/cancel", Access: Data, Cors: OpenCors, MaxBody: maxJSON, Methods: post(h.responses.Cancel)},

		{Pattern: "/v1beta/models", Access: List, Dialect: Gemini, Cors: OpenCors, Methods: get(h.gemini.List)},
		{Pattern: "/v1beta/models/{model...}", Explain: true, Translates: true, Access: Data, Dialect: Gemini, Cors: OpenCors, MaxBody: maxChat, Methods: []Method{
			{Name: "GET", Handler: h.gemini.Model, Access: List}, {Name: "POST", Handler: h.gemini.Call},
		}},

		{Pattern: "/v1/audio/speech", Explain: true, Access: Data, Cors: OpenCors, MaxBody: maxJSON, Methods: post(h.audio.Speech)},
		{Pattern: "/v1/audio/voices", Access: Data, Cors: OpenCors, Methods: get(h.audio.Voices)},
		form("/v1/audio/transcriptions", h.audio.Transcriptions),
		form("/v1/audio/translations", h.audio.Translations),
		{Pattern: "/v1/images/generations", Explain: true, Access: Data, Cors: OpenCors, MaxBody: endpoint.MaxForm, Methods: post(h.images.Generations)},
		form("/v1/images/edits", h.images.Edits),
		form("/v1/images/variations", h.images.Variations),
		form("/v1/videos/generations", h.videos.Generations),
		form("/v1/videos/edits", h.videos.Edits),
		form("/v1/videos/extensions", h.videos.Extensions),
		{Pattern: "/v1/videos/{request_id}", Access: Data, Cors: OpenCors, Methods: get(h.videos.Get)},
		{Pattern: "/v1/videos/{request_id}/content", Access: Data, Cors: OpenCors, Methods: get(h.videos.Content)},

		{Pattern: "/v1/search", Explain: true, Access: Data, Cors: OpenCors, MaxBody: maxAsk, Methods: post(h.search.Create)},
		{Pattern: "/v1/web/fetch", Explain: true, Access: Data, Cors: OpenCors, MaxBody: maxAsk, Methods: post(h.web.Fetch)},
		{Pattern: "/v1/rerank", Explain: true, Access: Data, Cors: OpenCors, MaxBody: maxJSON, Methods: post(h.rerank.Create)},
		{Pattern: "/v1/realtime", Explain: true, Access: Realtime, Cors: OpenCors, Methods: get(upgradeRequired), Upgrade: h.realtime.Connect},
		{Pattern: "/v1/usage", Access: Own, Cors: OpenCors, Methods: get(h.usage.Get)},
		{Pattern: "/v1/usage/requests/{id}", Access: Own, Cors: OpenCors, Methods: get(h.usage.Request)},
		{Pattern: "/v1/realtime/client_secrets", Access: Data, Cors: OpenCors, MaxBody: maxJSON, Methods: post(h.realtime.CreateSecret)},
		{Pattern: "/v1/moderations", Explain: true, Access: Data, Cors: OpenCors, MaxBody: maxChat, Methods: post(h.moderations.Create)},
	}
}

// managementRoutes returns the routes of pkg/api.
func managementRoutes(h *api.Handlers) []Route {
	access := map[api.Access]Access{api.Managers: Manage, api.Operators: Operator, api.Open: Public}
	var out []Route
	for _, r := range api.Routes(h) {
		route := Route{Pattern: r.Pattern, Access: access[r.Access], MaxBody: r.MaxBody}
		for _, m := range r.Methods {
			route.Methods = append(route.Methods, Method{Name: m.Name, Handler: m.Serve})
		}
		out = append(out, route)
	}
	return out
}

// explained returns the endpoint of a call whose plan POST /api/explain shows, or nil.
// It sets the route and the parameters of the call, and the method of one that opens a
// WebSocket.
func explained(h *handlers, c *auth.Call) api.Endpoint {
	machine, path := split(c.Request)
	r, params := newTable(dataRoutes(h)).find(path)
	if r == nil || !r.Explain || machine != "" {
		return nil
	}
	c.Route, c.Params = r.Pattern, params
	if m := r.method("POST"); m != nil {
		return m.Handler
	}
	c.Method = "GET"
	return r.Upgrade
}
