package manage

import (
	"context"
	"encoding/json"

	"weir/pkg/apierr"
	"weir/pkg/auth"
	"weir/pkg/edge"
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
//	{"name":"…"} → 201 {"machineId":"…","apiKey":"…"}
//
// The key is shown this once.
func (h *Handler) CreateMachine(ctx context.Context, c *auth.Call) (*edge.Response, error) {
	raw, err := jsonBody(c)
	if err != nil {
		return nil, err
	}
	var in map[string]json.RawMessage
	if raw != nil && json.Unmarshal(raw, &in) != nil {
		return nil, apierr.Invalid("", "the body must be an object")
	}
	if _, given := in["mutationId"]; given {
		return nil, apierr.Invalid("mutationId", "is not a field of a machine")
	}
	id, err := auth.NewMachineID()
	if err != nil {
		return nil, err
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
