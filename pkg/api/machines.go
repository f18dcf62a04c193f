package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"strconv"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
)

// Machines serves GET /api/machines?limit=&cursor=&q=&deleted=: a page of the machines, for a person of those
// where they have a role. q is a part of the id or of the name; the answer's field next is
// the cursor of the next page. deleted=true asks for those that can be restored, instead of the others.
func (h *Handler) Machines(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	q, err := query(c.Query)
	if err != nil {
		return nil, err
	}
	ask := struct {
		Limit   int    `json:"limit,omitempty"`
		Cursor  string `json:"cursor,omitempty"`
		Query   string `json:"q,omitempty"`
		Person  string `json:"person,omitempty"`
		Deleted bool   `json:"deleted,omitempty"`
	}{Cursor: q["cursor"], Query: q["q"], Deleted: q["deleted"] == "true"}
	if c.Person != nil {
		ask.Person = c.Person.ID
	}
	if v, ok := q["limit"]; ok {
		if ask.Limit, err = strconv.Atoi(v); err != nil || ask.Limit < 1 {
			return nil, apierr.Invalid("limit", "limit must be an integer from 1 to 1000.")
		}
	}
	raw, err := rpc.Call[json.RawMessage](ctx, h.Objects, rpc.RegistryID, "list", ask)
	if err != nil {
		return nil, err
	}
	return answer(200, raw), nil
}

// CreateMachine serves POST /api/machines.
//
//	{"name":"…","scopes":["data"],"machineId":"…"} → 201 {"machineId":"…","apiKey":"…"}
//
// The key is shown this once; its scope is data unless scopes says otherwise. With machineId
// the machine has the id of one that moves here, by which its keys can come along: 409 if it
// is here.
func (h *Handler) CreateMachine(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	raw, err := jsonBody(c)
	if err != nil {
		return nil, err
	}
	var in map[string]json.RawMessage
	if raw != nil {
		_, err := jsonscan.Read(raw, "name", "scopes", "machineId", "withoutKey", "mutationId")
		if err != nil || json.Unmarshal(raw, &in) != nil || in == nil {
			return nil, apierr.Invalid("", "The body must be a JSON object without duplicate fields.")
		}
	}
	for _, name := range []string{"withoutKey", "mutationId"} { // of the object alone
		if _, given := in[name]; given {
			return nil, apierr.Invalid(name, "%s is not a field of a machine.", name)
		}
	}
	id, err := rpc.NewMachineID(rand.Reader)
	if err != nil {
		return nil, err
	}
	mutation, err := mutationID(c)
	if err != nil {
		return nil, err
	}
	if in == nil {
		in = map[string]json.RawMessage{}
	}
	if mutation != "" { // the same key makes the same machine
		id = h.machineIDOf(mutation)
		if in["mutationId"], err = json.Marshal(mutation); err != nil {
			return nil, err
		}
	}
	if v, given := in["machineId"]; given {
		if json.Unmarshal(v, &id) != nil || !rpc.IsMachineID(id) {
			return nil, apierr.Invalid("machineId", "machineId must be the id of a machine: 16 of a to z and 0 to 9.")
		}
		delete(in, "machineId")
	}
	if raw, err = json.Marshal(in); err != nil {
		return nil, err
	}
	body, err := rpc.Call[json.RawMessage](ctx, h.Objects, id, "create", json.RawMessage(raw))
	if err != nil {
		return nil, err
	}
	h.Cache.Invalidate(id)
	return answer(201, body), nil
}

// machineIDOf returns the id of the machine that an Idempotency-Key of the
// operator creates.
func (h *Handler) machineIDOf(mutation string) string {
	mac := hmac.New(sha256.New, h.KeySecret)
	mac.Write([]byte("machine:" + mutation))
	return rpc.MachineIDOf([sha256.Size]byte(mac.Sum(nil)))
}

// RenameMachine serves PATCH /api/machines/{id}.
//
//	{"name":"…"} → 200 {"machineId":"…","name":"…","createdAt":…}
func (h *Handler) RenameMachine(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	raw, err := jsonBody(c)
	if err != nil {
		return nil, err
	}
	return h.ofMachine(ctx, c, 200, "rename", raw)
}

// DeleteMachine serves DELETE /api/machines/{id}?now=: the machine can be restored for seven days.
// now=true erases it at once, also if it was deleted before.
func (h *Handler) DeleteMachine(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	q, err := query(c.Query)
	if err != nil {
		return nil, err
	}
	var body json.RawMessage
	if q["now"] == "true" {
		body = json.RawMessage(`{"now":true}`)
	}
	return h.ofMachine(ctx, c, 204, "delete", body)
}

// RestoreMachine serves POST /api/machines/{id}/restore.
//
//	→ 200 {"machineId":"…","name":"…","createdAt":…}
func (h *Handler) RestoreMachine(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.ofMachine(ctx, c, 200, "restore", nil)
}

// ofMachine calls the machine that the path names, for the operator.
func (h *Handler) ofMachine(ctx context.Context, c *auth.Call, status int, op string,
	raw json.RawMessage) (*httpmsg.Response, error) {
	id := c.Params[0]
	if !rpc.IsMachineID(id) {
		return nil, apierr.New(404, "machine_not_found", "No machine has this id.")
	}
	body, err := rpc.Call[json.RawMessage](ctx, h.Objects, id, op, raw)
	h.Cache.Invalidate(id)
	if err != nil {
		return nil, err
	}
	if status == 204 {
		return &httpmsg.Response{Status: status}, nil
	}
	return answer(status, body), nil
}
