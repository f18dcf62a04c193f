package manage

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"

	"weir/pkg/apierr"
	"weir/pkg/auth"
	"weir/pkg/edge"
	"weir/pkg/fields"
	"weir/pkg/machine"
)

// Machines serves GET /api/machines: every machine, for the operator.
func (h *Handler) Machines(ctx context.Context, _ *auth.Call) (*edge.Response, error) {
	raw, err := h.ask(ctx, machine.RegistryID, "list", nil)
	if err != nil {
		return nil, err
	}
	return answer(200, raw), nil
}

// CreateMachine serves POST /api/machines.
//
//	{"name":"…","scopes":["data"]} → 201 {"machineId":"…","apiKey":"…"}
//
// The key is shown this once; its scope is data unless scopes says otherwise.
func (h *Handler) CreateMachine(ctx context.Context, c *auth.Call) (*edge.Response, error) {
	raw, err := jsonBody(c)
	if err != nil {
		return nil, err
	}
	var in map[string]json.RawMessage
	if raw != nil {
		if _, err := fields.Read(raw, "name", "scopes", "mutationId"); err != nil || json.Unmarshal(raw, &in) != nil {
			return nil, apierr.Invalid("", "the body must be an object in which no field comes twice")
		}
	}
	if _, given := in["mutationId"]; given {
		return nil, apierr.Invalid("mutationId", "is not a field of a machine")
	}
	id, err := auth.NewMachineID()
	if err != nil {
		return nil, err
	}
	mutation, err := mutationID(c)
	if err != nil {
		return nil, err
	}
	if mutation != "" { // the same key makes the same machine
		id = h.machineIDOf(mutation)
		if in == nil {
			in = map[string]json.RawMessage{}
		}
		if in["mutationId"], err = json.Marshal(mutation); err != nil {
			return nil, err
		}
		if raw, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	if raw == nil {
		raw = []byte("{}")
	}
	body, err := h.ask(ctx, id, "create", raw)
	if err != nil {
		return nil, err
	}
	h.Cache.Invalidate(id)
	return answer(201, body), nil
}

// machineIDOf gives the id that an Idempotency-Key of the operator stands for.
func (h *Handler) machineIDOf(mutation string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	mac := hmac.New(sha256.New, h.KeySecret)
	mac.Write([]byte("machine:" + mutation))
	id := mac.Sum(nil)[:16]
	for i, b := range id {
		id[i] = letters[int(b)%len(letters)]
	}
	return string(id)
}

// DeleteMachine serves DELETE /api/machines/{id}.
func (h *Handler) DeleteMachine(ctx context.Context, c *auth.Call) (*edge.Response, error) {
	id := c.Params[0]
	if !auth.IsMachineID(id) {
		return nil, apierr.New(404, "machine_not_found", "there is no such machine")
	}
	_, err := h.ask(ctx, id, "delete", nil)
	h.Cache.Invalidate(id)
	if err != nil {
		return nil, err
	}
	return &edge.Response{Status: 204}, nil
}
