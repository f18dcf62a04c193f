package api

import (
	"testing"

	"weir/pkg/auth/session"
	"weir/pkg/people"
)

// The least role of each route. "" admits no person. A row that is missing fails the test, so that
// a new route gets its role by decision.
var wantRoles = map[string]people.Role{
	"GET /api/session":                       "",
	"POST /api/session":                      "",
	"DELETE /api/session":                    "",
	"GET /api/catalog/providers":             "viewer",
	"GET /metrics":                           "",
	"HEAD /metrics":                          "",
	"GET /api/version":                       "",
	"GET /api/machines":                      "member",
	"POST /api/machines":                     "",
	"PATCH /api/machines/{id}":               "",
	"DELETE /api/machines/{id}":              "",
	"POST /api/machines/{id}/restore":        "",
	"GET /api/providers":                     "viewer",
	"POST /api/providers":                    "editor",
	"GET /api/providers/{id}":                "viewer",
	"PUT /api/providers/{id}":                "editor",
	"DELETE /api/providers/{id}":             "editor",
	"GET /api/providers/{id}/models":         "viewer",
	"POST /api/providers/{id}/test":          "editor",
	"POST /api/providers/{id}/restore":       "editor",
	"POST /api/oauth/{provider}/authorize":   "editor",
	"POST /api/oauth/{provider}/device":      "editor",
	"POST /api/oauth/{provider}/poll":        "editor",
	"POST /api/oauth/{provider}/cancel":      "editor",
	"GET /oauth/callback":                    "",
	"GET /oidc/callback":                     "",
	"GET /api/auth":                          "",
	"POST /api/sign-in/{id}":                 "",
	"GET /api/identity-providers":            "",
	"POST /api/identity-providers":           "",
	"PUT /api/identity-providers/{id}":       "",
	"DELETE /api/identity-providers/{id}":    "",
	"GET /api/sign-ins":                      "",
	"POST /api/identity-providers/{id}/test": "",
	"POST /api/token":                        "",
	"POST /oidc/logout":                      "",
	"POST /api/sign-in/passkey":              "",
	"POST /api/session/passkey":              "",
	"GET /api/passkeys":                      "member",
	"POST /api/passkeys":                     "member",
	"POST /api/passkeys/challenge":           "member",
	"PUT /api/passkeys/{id}":                 "member",
	"DELETE /api/passkeys/{id}":              "member",
	"DELETE /api/sessions":                   "",
	"DELETE /api/people/{id}/sessions":       "owner",
	"POST /api/device":                       "",
	"POST /api/device/token":                 "",
	"GET /api/device/{code}":                 "owner",
	"POST /api/device/{code}":                "owner",
	"GET /status":                            "",
	"GET /status.json":                       "",
	"GET /api/combos":                        "viewer",
	"POST /api/combos":                       "editor",
	"GET /api/combos/{id}":                   "viewer",
	"PUT /api/combos/{id}":                   "editor",
	"DELETE /api/combos/{id}":                "editor",
	"GET /api/budgets":                       "member",
	"POST /api/budgets":                      "editor",
	"GET /api/budgets/{id}":                  "viewer",
	"PUT /api/budgets/{id}":                  "editor",
	"DELETE /api/budgets/{id}":               "editor",
	"GET /api/destinations":                  "viewer",
	"POST /api/destinations":                 "owner",
	"GET /api/destinations/{id}":             "viewer",
	"PUT /api/destinations/{id}":             "owner",
	"DELETE /api/destinations/{id}":          "owner",
	"GET /api/destinations/{id}/deliveries":  "viewer",
	"POST /api/destinations/{id}/test":       "owner",
	"GET /api/keys":                          "member",
	"POST /api/keys":                         "member",
	"GET /api/keys/{id}":                     "member",
	"PUT /api/keys/{id}":                     "member",
	"DELETE /api/keys/{id}":                  "member",
	"POST /api/keys/{id}/rotate":             "member",
	"GET /api/keys/{id}/usage":               "member",
	"GET /api/keys/{id}/networks":            "member",
	"GET /api/people":                        "owner",
	"PUT /api/people/{id}":                   "owner",
	"DELETE /api/people/{id}":                "owner",
	"POST /api/invitations":                  "owner",
	"DELETE /api/invitations/{id}":           "owner",
	"GET /api/setup":                         "member",
	"POST /api/setup":                        "member",
	"POST /setup/claim":                      "",
	"GET /setup/{file}":                      "",
	"GET /api/models/list/{kind}":            "member",
	"GET /api/models/info":                   "member",
	"GET /api/models/alias":                  "viewer",
	"PUT /api/models/alias":                  "editor",
	"DELETE /api/models/alias":               "editor",
	"GET /api/models/custom":                 "viewer",
	"POST /api/models/custom":                "editor",
	"DELETE /api/models/custom":              "editor",
	"GET /api/models/disabled":               "viewer",
	"POST /api/models/disabled":              "editor",
	"DELETE /api/models/disabled":            "editor",
	"GET /api/models/availability":           "viewer",
	"GET /api/quota":                         "viewer",
	"GET /api/settings":                      "viewer",
	"PATCH /api/settings":                    "editor",
	"GET /api/audit":                         "viewer",
	"GET /api/health":                        "viewer",
	"GET /api/health/providers":              "viewer",
	"GET /api/health/timeline":               "viewer",
	"GET /api/usage":                         "member",
	"GET /api/usage.csv":                     "member",
	"GET /api/usage/recent":                  "viewer",
	"GET /api/requests":                      "member",
	"GET /api/requests.csv":                  "member",
	"GET /api/requests/{id}":                 "member",
	"GET /api/captures":                      "owner",
	"DELETE /api/captures":                   "owner",
	"GET /api/captures/{id}":                 "owner",
	"DELETE /api/captures/{id}":              "owner",
	"GET /api/export":                        "owner",
	"POST /api/export":                       "owner",
	"POST /api/import":                       "owner",
	"POST /api/compare":                      "editor",
	"POST /api/explain":                      "viewer",
}

func TestRolesOfRoutes(t *testing.T) {
	seen := 0
	for _, r := range Routes(&Handlers{Objects: &Handler{}, Sessions: &session.Sessions{}}) {
		for i := range r.Methods {
			m := &r.Methods[i]
			name := m.Name + " " + r.Pattern
			want, listed := wantRoles[name]
			if seen++; !listed || m.Role != want {
				t.Errorf("%s: got %q, want %q (listed: %v)", name, m.Role, want, listed)
			}
			for _, role := range []people.Role{people.Nobody, people.None, people.Member, people.Viewer, people.Editor,
				people.Owner} {
				admitted := want != people.Nobody && role.AtLeast(want) &&
					!(role == people.Viewer && want == people.Member && m.Name != "GET")
				if m.Admits(role) != admitted {
					t.Errorf("%s by %q: admitted %v, want %v", name, role, !admitted, admitted)
				}
			}
		}
	}
	if seen != len(wantRoles) {
		t.Errorf("%d methods of routes, %d in the table", seen, len(wantRoles))
	}
}
