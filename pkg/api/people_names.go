package api

import (
	"bytes"
	"context"
	"slices"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/people"
)

// nameRoutes are the routes whose answers have ids of people: as the actor of a record, the person
// of a key and the value of the tag person. Their answers get the member "people", the names by
// the ids, as far as they are known: machines do not store names.
var nameRoutes = [...]string{"/api/audit", "/api/keys", "/api/keys/{id}", "/api/keys/{id}/usage", "/api/usage",
	"/api/budgets"}

// named adds the names of people to the answer to a management call. A registry that does not
// answer fails no call.
func (h *Handler) named(ctx context.Context, c *auth.Call, env *rpc.ManageCall, body []byte) []byte {
	if env.Method != "GET" || !slices.Contains(nameRoutes[:], env.Route) || !bytes.HasSuffix(body, []byte("}")) ||
		env.Person != nil && !env.Person.Role.AtLeast(people.Viewer) {
		return body
	}
	names := h.peopleNames(ctx, scopeOf(c), idsOf(body))
	if len(names) == 0 {
		return body
	}
	out := append(slices.Clip(body[:len(body)-1]), `,"people":`...)
	return append(append(out, rpc.JSON(names)...), '}')
}

// idsOf returns the ids of people in a text, each once.
func idsOf(text []byte) (ids []string) {
	for {
		_, after, found := bytes.Cut(text, []byte(people.IDPrefix))
		if !found {
			return ids
		}
		if text = after; len(after) >= people.IDDigits {
			if id := people.IDPrefix + string(after[:people.IDDigits]); people.IsID(id) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
}

// scopeOf returns the machine whose people the answers to a call may name, "" for all: a text of an
// owner, such as the name of a key, may have the id of anyone.
func scopeOf(c *auth.Call) string {
	if c.Operator {
		return ""
	}
	return c.MachineID
}

// peopleNames returns the names of people by their ids, as far as they can be had; see rpc.PeopleNames.
func (h *Handler) peopleNames(ctx context.Context, machineID string, ids []string) map[string]string {
	if len(ids) == 0 {
		return nil
	}
	names, err := rpc.Call[map[string]string](ctx, h.Objects, rpc.RegistryID, "person.names",
		rpc.PeopleNames{MachineID: machineID, IDs: ids})
	if err != nil {
		return nil
	}
	return names
}
