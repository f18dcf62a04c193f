package api

import (
	"context"

	"weir/pkg/auth"
	"weir/pkg/wire/httpmsg"
)

// Access says who may call a management route.
type Access uint8

// Who may call.
const (
	Managers  Access = iota // the operator, or a key with scope manage, of the machine
	Operators               // the operator only
	Open                    // no credential is needed
)

// Route is one URL of the management with its methods. The gateway serves it, and
// under /{machineId} too if its pattern begins with /api.
type Route struct {
	Pattern string
	Access  Access
	MaxBody int64 // bytes; 0 allows no body
	Methods []Method
}

// Method is one method of a route.
type Method struct {
	Name  string
	Serve Endpoint
}

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

// row is one method of a management route. object runs in the object of the
// machine, within one turn; a method other than GET is a mutation, whose audit
// record is written in the same turn. gateway runs in the gateway; if it is nil,
// the call is forwarded to the object.
type row struct {
	method, pattern string
	object          func(c *change) (any, error)
	gateway         func(h *Handlers) Endpoint
}

// rows are the management routes. A path without names in braces is found first;
// the other patterns match in the order of the rows.
//
// To add a route: write a method of change for it in the file that its URL names
// (pkg/api/keys.go for /api/keys), and add its row here. The gateway and the
// object both read this table; TestEveryHandlerHasRow names a handler that was
// forgotten.
var rows = [...]row{
	{"GET", "/api/session", nil, func(h *Handlers) Endpoint { return h.Sessions.Show }},
	{"POST", "/api/session", nil, func(h *Handlers) Endpoint { return h.Sessions.Create }},
	{"DELETE", "/api/session", nil, func(h *Handlers) Endpoint { return h.Sessions.End }},
	{"GET", "/api/catalog/providers", nil, func(h *Handlers) Endpoint { return h.OAuth.Catalog }},

	{"GET", "/api/version", nil, func(h *Handlers) Endpoint { return h.Objects.ShowVersion }},
	{"GET", "/api/machines", nil, func(h *Handlers) Endpoint { return h.Objects.Machines }},
	{"POST", "/api/machines", nil, func(h *Handlers) Endpoint { return h.Objects.CreateMachine }},
	{"DELETE", "/api/machines/{id}", nil, func(h *Handlers) Endpoint { return h.Objects.DeleteMachine }},

	{"GET", "/api/providers", (*change).providerList, nil},
	{"POST", "/api/providers", (*change).providerCreate, nil},
	{"GET", "/api/providers/{id}", (*change).providerGet, nil},
	{"PUT", "/api/providers/{id}", (*change).providerUpdate, nil},
	{"DELETE", "/api/providers/{id}", (*change).providerDelete, nil},
	{"GET", "/api/providers/{id}/models", nil, func(h *Handlers) Endpoint { return h.ProviderModels.List }},
	{"POST", "/api/providers/{id}/test", nil, func(h *Handlers) Endpoint { return h.Connectivity.Test }},
	{"POST", "/api/providers/{id}/restore", (*change).providerRestore, nil},

	{"POST", "/api/oauth/{provider}/authorize", (*change).oauthAuthorize, func(h *Handlers) Endpoint { return h.OAuth.Authorize }},
	{"POST", "/api/oauth/{provider}/device", (*change).oauthDevice, func(h *Handlers) Endpoint { return h.OAuth.Forward }},
	{"POST", "/api/oauth/{provider}/poll", (*change).oauthPoll, func(h *Handlers) Endpoint { return h.OAuth.Forward }},
	{"POST", "/api/oauth/{provider}/cancel", (*change).oauthCancel, func(h *Handlers) Endpoint { return h.OAuth.Forward }},
	{"GET", "/oauth/callback", nil, func(h *Handlers) Endpoint { return h.OAuth.Callback }},

	{"GET", "/api/combos", (*change).comboList, nil},
	{"POST", "/api/combos", (*change).comboCreate, nil},
	{"GET", "/api/combos/{id}", (*change).comboGet, nil},
	{"PUT", "/api/combos/{id}", (*change).comboUpdate, nil},
	{"DELETE", "/api/combos/{id}", (*change).comboDelete, nil},

	{"GET", "/api/budgets", (*change).budgetList, nil},
	{"POST", "/api/budgets", (*change).budgetCreate, nil},
	{"GET", "/api/budgets/{id}", (*change).budgetGet, nil},
	{"PUT", "/api/budgets/{id}", (*change).budgetUpdate, nil},
	{"DELETE", "/api/budgets/{id}", (*change).budgetDelete, nil},

	{"GET", "/api/keys", (*change).keyList, nil},
	{"POST", "/api/keys", (*change).keyCreate, nil},
	{"GET", "/api/keys/{id}", (*change).keyGet, nil},
	{"PUT", "/api/keys/{id}", (*change).keyUpdate, nil},
	{"DELETE", "/api/keys/{id}", (*change).keyDelete, nil},
	{"POST", "/api/keys/{id}/rotate", (*change).keyRotate, nil},
	{"GET", "/api/keys/{id}/usage", (*change).keyUsage, nil},

	{"GET", "/api/setup", nil, func(h *Handlers) Endpoint { return h.Setup.Tools }},
	{"POST", "/api/setup", (*change).leaseCreate, func(h *Handlers) Endpoint { return h.Setup.Create }},
	{"POST", "/setup/claim", nil, func(h *Handlers) Endpoint { return h.Setup.Claim }},
	{"GET", "/setup/{file}", nil, func(h *Handlers) Endpoint { return h.Setup.Script }},

	{"GET", "/api/models/list/{kind}", nil, func(h *Handlers) Endpoint { return h.ModelLists.Kind }},
	{"GET", "/api/models/info", nil, func(h *Handlers) Endpoint { return h.ModelLists.Info }},
	{"GET", "/api/models/alias", (*change).aliasList, nil},
	{"PUT", "/api/models/alias", (*change).aliasPut, nil},
	{"DELETE", "/api/models/alias", (*change).aliasDelete, nil},
	{"GET", "/api/models/custom", (*change).customList, nil},
	{"POST", "/api/models/custom", (*change).customCreate, nil},
	{"DELETE", "/api/models/custom", (*change).customDelete, nil},
	{"GET", "/api/models/disabled", (*change).disabledList, nil},
	{"POST", "/api/models/disabled", (*change).disabledAdd, nil},
	{"DELETE", "/api/models/disabled", (*change).disabledDelete, nil},
	{"GET", "/api/models/availability", (*change).availability, nil},

	{"GET", "/api/quota", (*change).quota, nil},

	{"GET", "/api/settings", (*change).settingsGet, nil},
	{"PATCH", "/api/settings", (*change).settingsPatch, nil},
	{"GET", "/api/audit", (*change).auditList, nil},
	{"GET", "/api/health", (*change).health, nil},
	{"GET", "/api/usage", (*change).usageList, nil},
	{"GET", "/api/usage.csv", nil, func(h *Handlers) Endpoint { return h.Objects.UsageCSV }},
	{"GET", "/api/usage/recent", (*change).usageRecent, nil},
	{"GET", "/api/requests", (*change).requestList, func(h *Handlers) Endpoint { return h.Objects.Requests }},
	{"GET", "/api/requests.csv", nil, func(h *Handlers) Endpoint { return h.Objects.RequestsCSV }},
	{"GET", "/api/requests/{id}", (*change).requestGet, func(h *Handlers) Endpoint { return h.Objects.Request }},
	{"GET", "/api/captures", (*change).captureList, nil},
	{"DELETE", "/api/captures", (*change).captureDeleteAll, nil},
	{"GET", "/api/captures/{id}", (*change).captureShow, nil},
	{"DELETE", "/api/captures/{id}", (*change).captureDelete, nil},
	{"GET", "/api/export", (*change).export, nil},
	{"POST", "/api/export", (*change).exportSealed, nil},
	{"POST", "/api/import", (*change).importDoc, nil},
	{"POST", "/api/explain", nil, func(h *Handlers) Endpoint { return h.Explain.Explain }},
}

// findRow returns the row of a method and a pattern, or nil.
func findRow(method, pattern string) *row {
	for i := range rows {
		if rows[i].method == method && rows[i].pattern == pattern {
			return &rows[i]
		}
	}
	return nil
}

// accessOf returns who may call a pattern: every route that is not named needs a
// manager.
func accessOf(pattern string) Access {
	switch pattern {
	case "/api/machines", "/api/machines/{id}", "/api/version":
		return Operators
	case "/api/session", "/oauth/callback", "/setup/claim", "/setup/{file}":
		return Open
	}
	return Managers
}

// maxBodyOf returns the limit of the bodies of a row.
func maxBodyOf(r *row) int64 {
	switch {
	case r.object == nil && r.method != "POST":
		return 0
	case r.pattern == "/api/session":
		return maxSignInBody
	case r.pattern == "/api/explain":
		return maxExplainBody
	case r.pattern == "/setup/claim":
		return maxClaimBody
	}
	return maxBody
}

// Routes returns the management routes, one for each pattern.
func Routes(h *Handlers) []Route {
	var out []Route
	for i := range rows {
		r := &rows[i]
		serve := Endpoint(h.Objects.Forward)
		if r.gateway != nil {
			serve = r.gateway(h)
		}
		if n := len(out); n == 0 || out[n-1].Pattern != r.pattern {
			out = append(out, Route{Pattern: r.pattern, Access: accessOf(r.pattern)})
		}
		last := &out[len(out)-1]
		last.MaxBody = max(last.MaxBody, maxBodyOf(r))
		last.Methods = append(last.Methods, Method{r.method, serve})
	}
	return out
}
