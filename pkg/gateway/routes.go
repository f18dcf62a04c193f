package gateway

import (
	"strings"

	"weir/pkg/api"
	"weir/pkg/auth/session"
	"weir/pkg/endpoint"
	"weir/pkg/v1/audio"
	"weir/pkg/v1/chat"
	"weir/pkg/v1/embeddings"
	"weir/pkg/v1/images"
	"weir/pkg/v1/messages"
	"weir/pkg/v1/models"
	"weir/pkg/v1/moderations"
	"weir/pkg/v1/rerank"
	"weir/pkg/v1/responses"
	"weir/pkg/v1/search"
	"weir/pkg/v1/videos"
	"weir/pkg/v1/web"
)

// handlers are the endpoints.
type handlers struct {
	embeddings *embeddings.Handler
	models     *models.Handler
	chat       *chat.Handler
	messages   *messages.Handler
	responses  *responses.Handler

	audio  *audio.Handler
	images *images.Handler
	videos *videos.Handler

	search      *search.Handler
	web         *web.Handler
	rerank      *rerank.Handler
	moderations *moderations.Handler

	manage         *api.Handler
	providerModels *api.ProviderModels
	connectivity   *api.Connectivity
	explain        *api.Explainer
	oauth          *api.OAuth
	sessions       *session.Sessions
	modelLists     *api.ModelLists
}

const (
	maxJSON   = 8 << 20 // bytes of a JSON body (docs/reference/reliability.md, T37)
	maxChat   = 32 << 20
	maxAsk    = 256 << 10 // of a search or a fetch: a query or an address, and options
	maxForm   = 256 << 20 // of a form that flows up; its endpoint bounds what is held
	maxManage = 1 << 20   // of a management call
	maxBodies = 32 << 20  // of all bodies together that are held in Go's memory
	maxSignIn = 4 << 10   // of a sign-in
)

var health = Route{Pattern: "/health", Access: Public, Methods: []Method{{Name: "GET", Handler: serveHealth}}}

// routes lists every URL. What is not here does not exist. The /v1 and /api
// routes exist under /{machineId} too.
func routes(h *handlers) []Route {
	get := func(f Handler) []Method { return []Method{{Name: "GET", Handler: f}} }
	post := func(f Handler) []Method { return []Method{{Name: "POST", Handler: f}} }
	list := func(pattern string, f Handler) Route {
		return Route{Pattern: pattern, Access: List, Dialect: ModelList, Cors: ListCors, Methods: get(f)}
	}
	form := func(pattern string, f Handler) Route {
		return Route{Pattern: pattern, Access: Data, Cors: OpenCors, MaxBody: maxForm, AnyEncoding: strings.HasPrefix(pattern, "/v1/videos/"), Methods: post(f)}
	}
	kept := func(pattern string, methods ...string) Route {
		r := Route{Pattern: pattern, Access: Manage, MaxBody: maxManage}
		for _, m := range methods {
			r.Methods = append(r.Methods, Method{Name: m, Handler: h.manage.Forward})
		}
		return r
	}
	return []Route{
		health,
		list("/v1/models", h.models.List),
		list("/v1/models/info", h.models.Info),
		list("/v1/models/{kind}", h.models.Kind),
		list("/v1/models/{alias}/{model...}", h.models.Model),
		{Pattern: "/v1/embeddings", Access: Data, Cors: OpenCors, MaxBody: maxJSON, Methods: post(h.embeddings.Create)},
		{Pattern: "/v1/chat/completions", Access: Data, Cors: OpenCors, MaxBody: maxChat, Methods: post(h.chat.Complete)},
		{Pattern: "/v1/messages", Access: Data, Dialect: Anthropic, Cors: OpenCors, MaxBody: maxChat, Methods: post(h.messages.Create)},
		{Pattern: "/v1/messages/count_tokens", Access: Data, Dialect: Anthropic, Cors: OpenCors, MaxBody: maxChat, Methods: post(h.messages.CountTokens)},
		{Pattern: "/v1/responses", Access: Data, Cors: OpenCors, MaxBody: maxChat, Methods: post(h.responses.Create)},
		{Pattern: "/v1/responses/{id}", Access: Data, Cors: OpenCors, Methods: []Method{
			{Name: "GET", Handler: h.responses.Get}, {Name: "DELETE", Handler: h.responses.Delete},
		}},
		{Pattern: "/v1/responses/{id}/input_items", Access: Data, Cors: OpenCors, Methods: get(h.responses.Items)},
		{Pattern: "/v1/responses/{id}/cancel", Access: Data, Cors: OpenCors, MaxBody: maxJSON, Methods: post(h.responses.Cancel)},

		{Pattern: "/v1/audio/speech", Access: Data, Cors: OpenCors, MaxBody: maxJSON, Methods: post(h.audio.Speech)},
		{Pattern: "/v1/audio/voices", Access: Data, Cors: OpenCors, Methods: get(h.audio.Voices)},
		form("/v1/audio/transcriptions", h.audio.Transcriptions),
		form("/v1/audio/translations", h.audio.Translations),
		{Pattern: "/v1/images/generations", Access: Data, Cors: OpenCors, MaxBody: endpoint.MaxForm, Methods: post(h.images.Generations)},
		form("/v1/images/edits", h.images.Edits),
		form("/v1/images/variations", h.images.Variations),
		form("/v1/videos/generations", h.videos.Generations),
		form("/v1/videos/edits", h.videos.Edits),
		form("/v1/videos/extensions", h.videos.Extensions),
		{Pattern: "/v1/videos/{request_id}", Access: Data, Cors: OpenCors, Methods: get(h.videos.Get)},
		{Pattern: "/v1/videos/{request_id}/content", Access: Data, Cors: OpenCors, Methods: get(h.videos.Content)},

		{Pattern: "/v1/search", Access: Data, Cors: OpenCors, MaxBody: maxAsk, Methods: post(h.search.Create)},
		{Pattern: "/v1/web/fetch", Access: Data, Cors: OpenCors, MaxBody: maxAsk, Methods: post(h.web.Fetch)},
		{Pattern: "/v1/rerank", Access: Data, Cors: OpenCors, MaxBody: maxJSON, Methods: post(h.rerank.Create)},
		{Pattern: "/v1/moderations", Access: Data, Cors: OpenCors, MaxBody: maxChat, Methods: post(h.moderations.Create)},

		{Pattern: "/api/session", Access: Public, MaxBody: maxSignIn, Methods: []Method{
			{Name: "GET", Handler: h.sessions.Show}, {Name: "POST", Handler: h.sessions.Create}, {Name: "DELETE", Handler: h.sessions.End},
		}},
		{Pattern: "/api/catalog/providers", Access: Manage, Methods: get(h.oauth.Catalog)},
		{Pattern: "/api/machines", Access: Operator, MaxBody: maxManage, Methods: []Method{
			{Name: "GET", Handler: h.manage.Machines}, {Name: "POST", Handler: h.manage.CreateMachine},
		}},
		{Pattern: "/api/machines/{id}", Access: Operator, Methods: []Method{{Name: "DELETE", Handler: h.manage.DeleteMachine}}},
		kept("/api/providers", "GET", "POST"),
		kept("/api/providers/{id}", "GET", "PUT", "DELETE"),
		{Pattern: "/api/providers/{id}/models", Access: Manage, Methods: get(h.providerModels.List)},
		{Pattern: "/api/providers/{id}/test", Access: Manage, MaxBody: maxManage, Methods: post(h.connectivity.Test)},
		{Pattern: "/api/oauth/{provider}/authorize", Access: Manage, MaxBody: maxManage, Methods: post(h.oauth.Authorize)},
		{Pattern: "/api/oauth/{provider}/device", Access: Manage, MaxBody: maxManage, Methods: post(h.oauth.Forward)},
		{Pattern: "/api/oauth/{provider}/poll", Access: Manage, MaxBody: maxManage, Methods: post(h.oauth.Forward)},
		{Pattern: "/api/oauth/{provider}/cancel", Access: Manage, MaxBody: maxManage, Methods: post(h.oauth.Forward)},
		{Pattern: "/oauth/callback", Access: Public, Methods: get(h.oauth.Callback)},
		kept("/api/combos", "GET", "POST"),
		kept("/api/combos/{id}", "GET", "PUT", "DELETE"),
		kept("/api/keys", "GET", "POST"),
		kept("/api/keys/{id}", "GET", "DELETE"),
		{Pattern: "/api/models/list/{kind}", Access: Manage, Methods: get(h.modelLists.Kind)},
		{Pattern: "/api/models/info", Access: Manage, Methods: get(h.modelLists.Info)},
		kept("/api/models/alias", "GET", "PUT", "DELETE"),
		kept("/api/models/custom", "GET", "POST", "DELETE"),
		kept("/api/models/disabled", "GET", "POST", "DELETE"),
		kept("/api/models/availability", "GET"),
		kept("/api/settings", "GET", "PATCH"),
		kept("/api/audit", "GET"),
		kept("/api/usage", "GET"),
		kept("/api/requests", "GET"),
		kept("/api/export", "GET", "POST"),
		kept("/api/import", "POST"),
		{Pattern: "/api/explain", Access: Manage, MaxBody: maxJSON, Methods: post(h.explain.Explain)},
	}
}
