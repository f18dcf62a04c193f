package api

import (
	"weir/pkg/auth/session"
	"weir/pkg/endpoint"
)

// Handlers serve the management routes in the gateway.
type Handlers struct {
	Objects        *Handler
	Metrics        *Scraper
	ProviderModels *ProviderModels
	Connectivity   *Connectivity
	Explain        *Explainer
	OAuth          *OAuth
	Setup          *Setup
	Device         *Device
	Feeds          *Feeds
	Status         *Status
	ModelLists     *ModelLists
	Sessions       *session.Sessions
	People         *People
	SignIn         *SignIn
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

// method is one method of a route. Without a handler the call is forwarded to the object of
// the machine, where package manage serves it.
type method struct {
	name    string
	handler func(h *Handlers) endpoint.Handler
}

// routes are the management routes. A path without names in braces is found first;
// the other patterns match in the order of the routes.
//
// To add a route: add its row here. If it reads or changes the machine, write its handler in
// pkg/machine/manage and add its row there as well.
var routes = [...]route{
	{"/api/session", endpoint.Public, maxSignInBody, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Sessions.Show }},
		{"POST", func(h *Handlers) endpoint.Handler { return h.Sessions.Create }},
		{"DELETE", func(h *Handlers) endpoint.Handler { return h.Sessions.End }},
	}},
	{"/api/catalog/providers", endpoint.Manage, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.OAuth.Catalog }},
	}},

	{"/metrics", endpoint.Metrics, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Metrics.Serve }},
		{"HEAD", func(h *Handlers) endpoint.Handler { return h.Metrics.Serve }},
	}},
	{"/api/version", endpoint.Operator, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Objects.ShowVersion }},
	}},
	{"/api/machines", endpoint.Operator, maxBody, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Objects.Machines }},
		{"POST", func(h *Handlers) endpoint.Handler { return h.Objects.CreateMachine }},
	}},
	{"/api/machines/{id}", endpoint.Operator, maxSignInBody, []method{
		{"PATCH", func(h *Handlers) endpoint.Handler { return h.Objects.RenameMachine }},
		{"DELETE", func(h *Handlers) endpoint.Handler { return h.Objects.DeleteMachine }},
	}},
	{"/api/machines/{id}/restore", endpoint.Operator, maxSignInBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.Objects.RestoreMachine }},
	}},

	{"/api/providers", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"POST", nil},
	}},
	{"/api/providers/{id}", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"PUT", nil},
		{"DELETE", nil},
	}},
	{"/api/providers/{id}/models", endpoint.Manage, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.ProviderModels.List }},
	}},
	{"/api/providers/{id}/test", endpoint.Manage, maxBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.Connectivity.Test }},
	}},
	{"/api/providers/{id}/restore", endpoint.Manage, maxBody, []method{
		{"POST", nil},
	}},

	{"/api/oauth/{provider}/authorize", endpoint.Manage, maxBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.OAuth.Authorize }},
	}},
	{"/api/oauth/{provider}/device", endpoint.Manage, maxBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.OAuth.Forward }},
	}},
	{"/api/oauth/{provider}/poll", endpoint.Manage, maxBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.OAuth.Forward }},
	}},
	{"/api/oauth/{provider}/cancel", endpoint.Manage, maxBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.OAuth.Forward }},
	}},
	{"/oauth/callback", endpoint.Public, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.OAuth.Callback }},
	}},

	{"/api/auth", endpoint.Public, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.SignIn.Methods }},
	}},
	{"/api/sign-in/{id}", endpoint.Public, maxSignInBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.SignIn.Begin }},
	}},
	{"/api/sign-in/passkey", endpoint.Public, maxSignInBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.SignIn.BeginPasskey }},
	}},
	{"/api/session/passkey", endpoint.Public, maxTokenBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.SignIn.FinishPasskey }},
	}},
	{"/api/passkeys", endpoint.Operator, maxTokenBody, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return forPerson(h.SignIn.OwnPasskeys) }},
		{"POST", func(h *Handlers) endpoint.Handler { return forPerson(h.SignIn.AddPasskey) }},
	}},
	{"/api/passkeys/challenge", endpoint.Operator, maxSignInBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return forPerson(h.SignIn.ChallengePasskey) }},
	}},
	{"/api/passkeys/{id}", endpoint.Operator, maxSignInBody, []method{
		{"PUT", func(h *Handlers) endpoint.Handler { return forPerson(h.SignIn.RenamePasskey) }},
		{"DELETE", func(h *Handlers) endpoint.Handler { return forPerson(h.SignIn.DeletePasskey) }},
	}},
	{"/oidc/callback", endpoint.Public, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.SignIn.Callback }},
	}},
	{"/api/identity-providers", endpoint.Operator, maxBody, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.SignIn.List }},
		{"POST", func(h *Handlers) endpoint.Handler { return h.SignIn.Put }},
	}},
	{"/api/identity-providers/{id}", endpoint.Operator, maxBody, []method{
		{"PUT", func(h *Handlers) endpoint.Handler { return h.SignIn.Put }},
		{"DELETE", func(h *Handlers) endpoint.Handler { return h.SignIn.Delete }},
	}},

	{"/api/identity-providers/{id}/test", endpoint.Operator, maxBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.SignIn.Examine }},
	}},
	{"/api/token", endpoint.Public, maxTokenBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.SignIn.Token }},
	}},
	{"/oidc/logout", endpoint.Public, maxTokenBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.SignIn.Logout }},
	}},
	{"/api/sessions", endpoint.Operator, 0, []method{
		{"DELETE", func(h *Handlers) endpoint.Handler { return h.SignIn.EndAll }},
	}},
	{"/api/sign-ins", endpoint.Operator, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.SignIn.Records }},
	}},

	{"/status", endpoint.Public, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Status.Page }},
	}},
	{"/status.json", endpoint.Public, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Status.JSON }},
	}},

	{"/api/combos", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"POST", nil},
	}},
	{"/api/combos/{id}", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"PUT", nil},
		{"DELETE", nil},
	}},

	{"/api/budgets", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"POST", nil},
	}},
	{"/api/budgets/{id}", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"PUT", nil},
		{"DELETE", nil},
	}},

	{"/api/destinations", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"POST", nil},
	}},
	{"/api/destinations/{id}", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"PUT", nil},
		{"DELETE", nil},
	}},
	{"/api/destinations/{id}/deliveries", endpoint.Manage, 0, []method{
		{"GET", nil},
	}},
	{"/api/destinations/{id}/test", endpoint.Manage, maxBody, []method{
		{"POST", nil},
	}},

	{"/api/keys", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"POST", nil},
	}},
	{"/api/keys/{id}", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"PUT", nil},
		{"DELETE", nil},
	}},
	{"/api/keys/{id}/rotate", endpoint.Manage, maxBody, []method{
		{"POST", nil},
	}},
	{"/api/keys/{id}/usage", endpoint.Manage, maxBody, []method{
		{"GET", nil},
	}},
	{"/api/keys/{id}/networks", endpoint.Manage, maxBody, []method{
		{"GET", nil},
	}},

	{"/api/setup", endpoint.Manage, maxBody, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Setup.Tools }},
		{"POST", func(h *Handlers) endpoint.Handler { return h.Setup.Create }},
	}},
	{"/setup/claim", endpoint.Public, maxClaimBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.Setup.Claim }},
	}},
	{"/setup/{file}", endpoint.Public, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Setup.Script }},
	}},

	{"/api/device", endpoint.Public, maxSignInBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.Device.Start }},
	}},
	{"/api/device/token", endpoint.Public, maxSignInBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.Device.Token }},
	}},
	{"/api/device/{code}", endpoint.Manage, maxSignInBody, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Device.Show }},
		{"POST", func(h *Handlers) endpoint.Handler { return h.Device.Decide }},
	}},

	{"/api/people", endpoint.Manage, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.People.List }},
	}},
	{"/api/people/{id}", endpoint.Manage, maxBody, []method{
		{"PUT", func(h *Handlers) endpoint.Handler { return h.People.Update }},
		{"DELETE", func(h *Handlers) endpoint.Handler { return h.People.Remove }},
	}},
	{"/api/people/{id}/sessions", endpoint.Manage, 0, []method{
		{"DELETE", func(h *Handlers) endpoint.Handler { return h.SignIn.EndPerson }},
	}},
	{"/api/invitations", endpoint.Manage, maxBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.People.Invite }},
	}},
	{"/api/invitations/{id}", endpoint.Manage, 0, []method{
		{"DELETE", func(h *Handlers) endpoint.Handler { return h.People.Withdraw }},
	}},

	{"/api/models/list/{kind}", endpoint.Manage, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.ModelLists.Kind }},
	}},
	{"/api/models/info", endpoint.Manage, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.ModelLists.Info }},
	}},
	{"/api/models/alias", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"PUT", nil},
		{"DELETE", nil},
	}},
	{"/api/models/custom", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"POST", nil},
		{"DELETE", nil},
	}},
	{"/api/models/disabled", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"POST", nil},
		{"DELETE", nil},
	}},
	{"/api/models/availability", endpoint.Manage, maxBody, []method{
		{"GET", nil},
	}},

	{"/api/quota", endpoint.Manage, maxBody, []method{
		{"GET", nil},
	}},

	{"/api/settings", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"PATCH", nil},
	}},
	{"/api/audit", endpoint.Manage, maxBody, []method{
		{"GET", nil},
	}},
	{"/api/health", endpoint.Manage, maxBody, []method{
		{"GET", nil},
	}},
	{"/api/health/providers", endpoint.Manage, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Feeds.List }},
	}},
	{"/api/health/timeline", endpoint.Manage, 0, []method{
		{"GET", nil},
	}},
	{"/api/usage", endpoint.Manage, maxBody, []method{
		{"GET", nil},
	}},
	{"/api/usage.csv", endpoint.Manage, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Objects.UsageCSV }},
	}},
	{"/api/usage/recent", endpoint.Manage, maxBody, []method{
		{"GET", nil},
	}},
	{"/api/requests", endpoint.Manage, maxBody, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Objects.Requests }},
	}},
	{"/api/requests.csv", endpoint.Manage, 0, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Objects.RequestsCSV }},
	}},
	{"/api/requests/{id}", endpoint.Manage, maxBody, []method{
		{"GET", func(h *Handlers) endpoint.Handler { return h.Objects.Request }},
	}},
	{"/api/captures", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"DELETE", nil},
	}},
	{"/api/captures/{id}", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"DELETE", nil},
	}},
	{"/api/compare", endpoint.Manage, maxBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.SignIn.Compare }},
	}},
	{"/api/export", endpoint.Manage, maxBody, []method{
		{"GET", nil},
		{"POST", func(h *Handlers) endpoint.Handler { return h.People.Export }},
	}},
	{"/api/import", endpoint.Manage, maxBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.People.Import }},
	}},
	{"/api/explain", endpoint.Manage, maxExplainBody, []method{
		{"POST", func(h *Handlers) endpoint.Handler { return h.Explain.Explain }},
	}},
}

// Routes returns the management routes. They answer no other origin.
func Routes(h *Handlers) []endpoint.Route {
	out := make([]endpoint.Route, len(routes))
	for i := range routes {
		r := &routes[i]
		out[i] = endpoint.Route{Pattern: r.pattern, Access: r.access, MaxBody: r.maxBody}
		for _, m := range r.methods {
			serve := endpoint.Handler(h.Objects.Forward)
			if m.handler != nil {
				serve = m.handler(h)
			}
			out[i].Methods = append(out[i].Methods, endpoint.Method{Name: m.name, Handler: serve, Role: roleOf(r, m.name)})
		}
	}
	return out
}
