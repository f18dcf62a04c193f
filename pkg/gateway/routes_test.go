package gateway

import (
	"strings"
	"testing"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
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
			if r.Method("POST") == nil && r.Upgrade == nil {
				t.Errorf("%s is explained but takes no POST, and opens no WebSocket", r.Pattern)
			}
		}
		if r.Method("POST") == nil && r.Upgrade == nil {
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

// Every route of pkg/api needs a manager, but these.
func TestAccessOfManagementRoutes(t *testing.T) {
	access := map[string]endpoint.Access{
		"/api/machines": endpoint.Operator, "/api/machines/{id}": endpoint.Operator, "/api/machines/{id}/restore": endpoint.Operator, "/api/version": endpoint.Operator,
		"/api/identity-providers": endpoint.Operator, "/api/identity-providers/{id}": endpoint.Operator,
		"/api/sign-ins": endpoint.Operator, "/api/sessions": endpoint.Operator, "/api/identity-providers/{id}/test": endpoint.Operator,
		"/api/sign-in/passkey": endpoint.Public, "/api/session/passkey": endpoint.Public,
		"/api/passkeys": endpoint.Operator, "/api/passkeys/challenge": endpoint.Operator, "/api/passkeys/{id}": endpoint.Operator,
		"/api/token": endpoint.Public, "/oidc/logout": endpoint.Public,
		"/metrics":     endpoint.Metrics,
		"/api/session": endpoint.Public, "/oauth/callback": endpoint.Public, "/oidc/callback": endpoint.Public, "/api/auth": endpoint.Public, "/api/sign-in/{id}": endpoint.Public, "/setup/claim": endpoint.Public, "/api/device": endpoint.Public, "/api/device/token": endpoint.Public, "/setup/{file}": endpoint.Public,
		"/status": endpoint.Public, "/status.json": endpoint.Public,
	}
	n := 0
	for _, r := range Routes() {
		if r.Pattern == "/health" || strings.HasPrefix(r.Pattern, "/v1") {
			continue
		}
		n++
		want, ok := access[r.Pattern]
		if !ok {
			want = endpoint.Manage
		}
		delete(access, r.Pattern)
		if r.Access != want || r.Cors != endpoint.NoCors || len(r.Methods) == 0 {
			t.Errorf("%s: access %d, cross-origin rule %d, %d methods", r.Pattern, r.Access, r.Cors, len(r.Methods))
		}
		for _, m := range r.Methods {
			if m.Handler == nil {
				t.Errorf("%s %s has no handler", m.Name, r.Pattern)
			}
		}
	}
	if n < 25 || len(access) > 0 {
		t.Errorf("%d routes; those without a row: %v", n, access)
	}
	for _, r := range dataRoutes((&wiring{}).endpoints(nil, nil)) {
		if !strings.HasPrefix(r.Pattern, "/v1/") && !isGemini(r.Pattern) {
			t.Errorf("%s is neither in the table of pkg/api nor under /v1 or /v1beta", r.Pattern)
		}
	}
}
