package api

import (
	"context"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/wire/httpmsg"
)

// Handlers serve the management routes in the gateway.
type Handlers struct {
	Objects        *Handler
	ProviderModels *ProviderModels
	Connectivity   *Connectivity
	Explain        *Explainer
	OAuth          *OAuth
	Setup          *Setup
	ModelLists     *ModelLists
	Sessions       sessions
}

// sessions is the part of session.Sessions used here.
type sessions interface {
	Show(ctx context.Context, c *auth.Call) (*httpmsg.Response, error)
	Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error)
	End(ctx context.Context, c *auth.Call) (*httpmsg.Response, error)
}

// Limits of bodies, in bytes.
const (
	maxBody        = 1 << 20
	maxSignInBody  = 4 << 10
	maxExplainBody = 8 << 20
)

// route is a management route: its pattern, who may call it, the largest body in bytes (0
// allows none) and its methods.
type route struct {
	pattern string
	access  endpoint.Access
	maxBody int64
	methods []method
}

// method is one method of a route. object runs in the object of the machine, within one
// turn; a method other than GET is a mutation, whose audit record is written in the same
// turn. gateway runs in the gateway; if it is nil, the call is forwarded to the object.
type method struct {
	name    string
	object  func(c *change) (any, error)
	gateway func(h *Handlers) endpoint.Handler
}

// routes are the management routes. A path without names in braces is found first;
// the other patterns match in the order of the routes.
//
// To add a route: write a method of change for it in the file that its URL names
// (pkg/api/keys.go for /api/keys), and add its row here. The gateway and the
// object both read this table; TestEveryHandlerHasRow names a handler that was
// forgotten.
var routes = [...]route{
	{"/api/session", endpoint.Public, maxSignInBody, []method{
		{"GET", nil, func(h *Handlers) endpoint.Handler { return h.Sessions.Show }},
		{"POST", nil, func(h *Handlers) endpoint.Handler { return h.Sessions.Create }},
		{"DELETE", nil, func(h *Handlers) endpoint.Handler { return h.Sessions.End }},
	}},
	{"/api/catalog/providers", endpoint.Manage, 0, []method{
		{"GET", nil, func(h *Handlers) endpoint.Handler { return h.OAuth.Catalog }},
	}},

	{"/api/version", endpoint.Operator, 0, []method{
		{"GET", nil, func(h *Handlers) endpoint.Handler { return h.Objects.ShowVersion }},
	}},
	{"/api/machines", endpoint.Operator, maxBody, []method{
		{"GET", nil, func(h *Handlers) endpoint.Handler { return h.Objects.Machines }},
		{"POST", nil, func(h *Handlers) endpoint.Handler { return h.Objects.CreateMachine }},
	}},
	{"/api/machines/{id}", endpoint.Operator, 0, []method{
		{"DELETE", nil, func(h *Handlers) endpoint.Handler { return h.Objects.DeleteMachine }},
	}},

	{"/api/providers", endpoint.Manage, maxBody, []method{
		{"GET", (*change).providerList, nil},
		{"POST", (*change).providerCreate, nil},
	}},
	{"/api/providers/{id}", endpoint.Manage, maxBody, []method{
		{"GET", (*change).providerGet, nil},
		{"PUT", (*change).providerUpdate, nil},
		{"DELETE", (*change).providerDelete, nil},
	}},
	{"/api/providers/{id}/models", endpoint.Manage, 0, []method{
		{"GET", nil, func(h *Handlers) endpoint.Handler { return h.ProviderModels.List }},
	}},
	{"/api/providers/{id}/test", endpoint.Manage, maxBody, []method{
		{"POST", nil, func(h *Handlers) endpoint.Handler { return h.Connectivity.Test }},
	}},
	{"/api/providers/{id}/restore", endpoint.Manage, maxBody, []method{
		{"POST", (*change).providerRestore, nil},
	}},

	{"/api/oauth/{provider}/authorize", endpoint.Manage, maxBody, []method{
		{"POST", (*change).oauthAuthorize, func(h *Handlers) endpoint.Handler { return h.OAuth.Authorize }},
	}},
	{"/api/oauth/{provider}/device", endpoint.Manage, maxBody, []method{
		{"POST", (*change).oauthDevice, func(h *Handlers) endpoint.Handler { return h.OAuth.Forward }},
	}},
	{"/api/oauth/{provider}/poll", endpoint.Manage, maxBody, []method{
		{"POST", (*change).oauthPoll, func(h *Handlers) endpoint.Handler { return h.OAuth.Forward }},
	}},
	{"/api/oauth/{provider}/cancel", endpoint.Manage, maxBody, []method{
		{"POST", (*change).oauthCancel, func(h *Handlers) endpoint.Handler { return h.OAuth.Forward }},
	}},
	{"/oauth/callback", endpoint.Public, 0, []method{
		{"GET", nil, func(h *Handlers) endpoint.Handler { return h.OAuth.Callback }},
	}},

	{"/api/combos", endpoint.Manage, maxBody, []method{
		{"GET", (*change).comboList, nil},
		{"POST", (*change).comboCreate, nil},
	}},
	{"/api/combos/{id}", endpoint.Manage, maxBody, []method{
		{"GET", (*change).comboGet, nil},
		{"PUT", (*change).comboUpdate, nil},
		{"DELETE", (*change).comboDelete, nil},
	}},

	{"/api/budgets", endpoint.Manage, maxBody, []method{
		{"GET", (*change).budgetList, nil},
		{"POST", (*change).budgetCreate, nil},
	}},
	{"/api/budgets/{id}", endpoint.Manage, maxBody, []method{
		{"GET", (*change).budgetGet, nil},
		{"PUT", (*change).budgetUpdate, nil},
		{"DELETE", (*change).budgetDelete, nil},
	}},

	{"/api/keys", endpoint.Manage, maxBody, []method{
		{"GET", (*change).keyList, nil},
		{"POST", (*change).keyCreate, nil},
	}},
	{"/api/keys/{id}", endpoint.Manage, maxBody, []method{
		{"GET", (*change).keyGet, nil},
		{"PUT", (*change).keyUpdate, nil},
		{"DELETE", (*change).keyDelete, nil},
	}},
	{"/api/keys/{id}/rotate", endpoint.Manage, maxBody, []method{
		{"POST", (*change).keyRotate, nil},
	}},
	{"/api/keys/{id}/usage", endpoint.Manage, maxBody, []method{
		{"GET", (*change).keyUsage, nil},
	}},

	{"/api/setup", endpoint.Manage, maxBody, []method{
		{"GET", nil, func(h *Handlers) endpoint.Handler { return h.Setup.Tools }},
		{"POST", (*change).leaseCreate, func(h *Handlers) endpoint.Handler { return h.Setup.Create }},
	}},
	{"/setup/claim", endpoint.Public, maxClaimBody, []method{
		{"POST", nil, func(h *Handlers) endpoint.Handler { return h.Setup.Claim }},
	}},
	{"/setup/{file}", endpoint.Public, 0, []method{
		{"GET", nil, func(h *Handlers) endpoint.Handler { return h.Setup.Script }},
	}},

	{"/api/models/list/{kind}", endpoint.Manage, 0, []method{
		{"GET", nil, func(h *Handlers) endpoint.Handler { return h.ModelLists.Kind }},
	}},
	{"/api/models/info", endpoint.Manage, 0, []method{
		{"GET", nil, func(h *Handlers) endpoint.Handler { return h.ModelLists.Info }},
	}},
	{"/api/models/alias", endpoint.Manage, maxBody, []method{
		{"GET", (*change).aliasList, nil},
		{"PUT", (*change).aliasPut, nil},
		{"DELETE", (*change).aliasDelete, nil},
	}},
	{"/api/models/custom", endpoint.Manage, maxBody, []method{
		{"GET", (*change).customList, nil},
		{"POST", (*change).customCreate, nil},
		{"DELETE", (*change).customDelete, nil},
	}},
	{"/api/models/disabled", endpoint.Manage, maxBody, []method{
		{"GET", (*change).disabledList, nil},
		{"POST", (*change).disabledAdd, nil},
		{"DELETE", (*change).disabledDelete, nil},
	}},
	{"/api/models/availability", endpoint.Manage, maxBody, []method{
		{"GET", (*change).availability, nil},
	}},

	{"/api/quota", endpoint.Manage, maxBody, []method{
		{"GET", (*change).quota, nil},
	}},

	{"/api/settings", endpoint.Manage, maxBody, []method{
		{"GET", (*change).settingsGet, nil},
		{"PATCH", (*change).settingsPatch, nil},
	}},
	{"/api/audit", endpoint.Manage, maxBody, []method{
		{"GET", (*change).auditList, nil},
	}},
	{"/api/health", endpoint.Manage, maxBody, []method{
		{"GET", (*change).health, nil},
	}},
	{"/api/usage", endpoint.Manage, maxBody, []method{
		{"GET", (*change).usageList, nil},
	}},
	{"/api/usage.csv", endpoint.Manage, 0, []method{
		{"GET", nil, func(h *Handlers) endpoint.Handler { return h.Objects.UsageCSV }},
	}},
	{"/api/usage/recent", endpoint.Manage, maxBody, []method{
		{"GET", (*change).usageRecent, nil},
	}},
	{"/api/requests", endpoint.Manage, maxBody, []method{
		{"GET", (*change).requestList, func(h *Handlers) endpoint.Handler { return h.Objects.Requests }},
	}},
	{"/api/requests.csv", endpoint.Manage, 0, []method{
		{"GET", nil, func(h *Handlers) endpoint.Handler { return h.Objects.RequestsCSV }},
	}},
	{"/api/requests/{id}", endpoint.Manage, maxBody, []method{
		{"GET", (*change).requestGet, func(h *Handlers) endpoint.Handler { return h.Objects.Request }},
	}},
	{"/api/captures", endpoint.Manage, maxBody, []method{
		{"GET", (*change).captureList, nil},
		{"DELETE", (*change).captureDeleteAll, nil},
	}},
	{"/api/captures/{id}", endpoint.Manage, maxBody, []method{
		{"GET", (*change).captureShow, nil},
		{"DELETE", (*change).captureDelete, nil},
	}},
	{"/api/export", endpoint.Manage, maxBody, []method{
		{"GET", (*change).export, nil},
		{"POST", (*change).exportSealed, nil},
	}},
	{"/api/import", endpoint.Manage, maxBody, []method{
		{"POST", (*change).importDoc, nil},
	}},
	{"/api/explain", endpoint.Manage, maxExplainBody, []method{
		{"POST", nil, func(h *Handlers) endpoint.Handler { return h.Explain.Explain }},
	}},
}

// findMethod returns a method of a pattern, or nil.
func findMethod(name, pattern string) *method {
	for i := range routes {
		if r := &routes[i]; r.pattern == pattern {
			for j := range r.methods {
				if r.methods[j].name == name {
					return &r.methods[j]
				}
			}
		}
	}
	return nil
}

// Routes returns the management routes. They answer no other origin.
func Routes(h *Handlers) []endpoint.Route {
	out := make([]endpoint.Route, len(routes))
	for i := range routes {
		r := &routes[i]
		out[i] = endpoint.Route{Pattern: r.pattern, Access: r.access, MaxBody: r.maxBody}
		for _, m := range r.methods {
			serve := endpoint.Handler(h.Objects.Forward)
			if m.gateway != nil {
				serve = m.gateway(h)
			}
			out[i].Methods = append(out[i].Methods, endpoint.Method{Name: m.name, Handler: serve})
		}
	}
	return out
}
