package api

import (
	"slices"
	"strings"

	"weir/pkg/endpoint"
	"weir/pkg/people"
)

// roles are the least roles of people, where they differ from roleOf's. An entry is a beginning
// of a method and a pattern, of which the first one counts. The records of a member are filtered in
// the object of the machine.
var roles = [...]struct {
	route string
	role  people.Role
}{
	{"GET /api/budgets/", people.Viewer},
	{"GET /api/budgets", people.Member},
	{"GET /api/keys", people.Member},
	{"POST /api/keys", people.Member},
	{"PUT /api/keys/{id}", people.Member},
	{"DELETE /api/keys/{id}", people.Member},
	{"GET /api/usage/recent", people.Viewer},
	{"GET /api/usage", people.Member},
	{"GET /api/requests", people.Member},
	{"GET /api/setup", people.Member},
	{"POST /api/setup", people.Member},
	{"GET /api/models/list/", people.Member},
	{"GET /api/models/info", people.Member},
	{"GET /api/machines", people.Member}, // only those where the person has a role
	{"GET /api/passkeys", people.Member}, // their own
	{"POST /api/passkeys", people.Member},
	{"PUT /api/passkeys", people.Member},
	{"DELETE /api/passkeys", people.Member},

	{"POST /api/explain", people.Viewer},

	{"GET /api/captures", people.Owner},
	{"DELETE /api/captures", people.Owner},
	{"GET /api/device/{code}", people.Owner},
	{"POST /api/device/{code}", people.Owner}, // makes a key that manages
	{"GET /api/export", people.Owner},
	{"POST /api/export", people.Owner},
	{"POST /api/import", people.Owner},
	{"GET /api/people", people.Owner},
	{"PUT /api/people", people.Owner},
	{"DELETE /api/people", people.Owner},
	{"POST /api/invitations", people.Owner},
	{"DELETE /api/invitations", people.Owner},
	{"POST /api/destinations", people.Owner},
	{"PUT /api/destinations", people.Owner},
	{"DELETE /api/destinations", people.Owner},
}

// roleOf returns the least role of a person who may call a method of a route: a viewer reads and
// an editor changes, unless roles has another. Other routes than those of a machine admit people
// only if roles has them.
func roleOf(r *route, method string) people.Role {
	name := method + " " + r.pattern
	i := slices.IndexFunc(roles[:], func(e struct {
		route string
		role  people.Role
	}) bool {
		return strings.HasPrefix(name, e.route)
	})
	switch {
	case i >= 0:
		return roles[i].role
	case r.access != endpoint.Manage:
		return people.Nobody
	case method == "GET":
		return people.Viewer
	}
	return people.Editor
}
