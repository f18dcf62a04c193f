package gateway

import (
	"strings"
	"testing"

	"weir/pkg/api"
	"weir/pkg/auth"
	"weir/pkg/auth/session"
	"weir/pkg/wire/httpmsg"
)

// POST /api/explain runs the endpoint of the route table with another sender.
func TestExplainUsesTheRouteTable(t *testing.T) {
	h := (&wiring{}).endpoints(nil, nil)
	post := func(path string) *auth.Call {
		return &auth.Call{Request: &httpmsg.Request{Method: "POST", Path: path}}
	}
	explain := map[string]bool{}
	for _, r := range dataRoutes(h) {
		if r.Explain {
			explain[r.Pattern] = true
			if r.method("POST") == nil && r.Upgrade == nil {
				t.Errorf("%s is explained but takes no POST, and opens no WebSocket", r.Pattern)
			}
		}
		if r.method("POST") == nil && r.Upgrade == nil {
			continue // a POST to its path is of another route
		}
		if got := explained(h, post(r.Pattern)) != nil; got != r.Explain {
			t.Errorf("%s is explained: %v, want %v", r.Pattern, got, r.Explain)
		}
	}
	for _, path := range []string{
		"/v1/embeddings", "/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/messages/count_tokens", "/v1/audio/speech",
		"/v1/images/generations", "/v1/videos/generations", "/v1/search", "/v1/web/fetch", "/v1/rerank", "/v1/moderations",
		"/v1beta/models/{model...}", "/v1/realtime",
	} {
		if !explain[path] {
			t.Errorf("%s is not explained", path)
		}
	}
	for _, path := range []string{"", "/", "/health", "/api/keys", "/v1/nothing", "/v1/audio/transcriptions"} {
		if explained(h, post(path)) != nil {
			t.Errorf("%q is explained", path)
		}
	}
	for path, want := range map[string]struct{ method, route, param string }{
		"/v1beta/models/openai/gpt-4o:generateContent": {"POST", "/v1beta/models/{model...}", "openai/gpt-4o:generateContent"},
		"/v1/models/gemini-2.5-flash:embedContent":     {"POST", "/v1beta/models/{model...}", "gemini-2.5-flash:embedContent"},
		"/v1/realtime": {"GET", "/v1/realtime", ""},
	} {
		c := post(path)
		if explained(h, c) == nil || c.Method != want.method || c.Route != want.route || strings.Join(c.Params, " ") != want.param {
			t.Errorf("%s: %s %s with %q", path, c.Method, c.Route, c.Params)
		}
	}
}

// The gateway serves the management routes of the table of pkg/api, and no
// other.
func TestManagementRoutesAreThoseOfTheTable(t *testing.T) {
	h := &api.Handlers{Objects: &api.Handler{}, ProviderModels: &api.ProviderModels{}, Connectivity: &api.Connectivity{}, Explain: &api.Explainer{},
		OAuth: &api.OAuth{Handler: &api.Handler{}}, Setup: &api.Setup{Handler: &api.Handler{}}, ModelLists: &api.ModelLists{}, Sessions: &session.Sessions{}}
	got := managementRoutes(h)
	if want := api.Routes(h); len(got) != len(want) || len(got) < 25 {
		t.Fatalf("%d routes, the table has %d", len(got), len(want))
	}
	access := map[string]Access{"/api/machines": Operator, "/api/machines/{id}": Operator, "/api/version": Operator, "/api/session": Public, "/oauth/callback": Public, "/setup/claim": Public, "/setup/{file}": Public}
	for _, r := range got {
		want, ok := access[r.Pattern]
		if !ok {
			want = Manage
		}
		if r.Access != want || r.Cors != NoCors || len(r.Methods) == 0 {
			t.Errorf("%s: access %d, cross-origin rule %d, %d methods", r.Pattern, r.Access, r.Cors, len(r.Methods))
		}
		for _, m := range r.Methods {
			if m.Handler == nil {
				t.Errorf("%s %s has no handler", m.Name, r.Pattern)
			}
		}
	}
	for _, r := range dataRoutes((&wiring{}).endpoints(nil, nil)) {
		if !strings.HasPrefix(r.Pattern, "/v1/") && !isGemini(r.Pattern) {
			t.Errorf("%s is neither in the table of pkg/api nor under /v1 or /v1beta", r.Pattern)
		}
	}
}
