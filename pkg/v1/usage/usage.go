// Package usage serves GET /v1/usage: what a key may know of itself.
package usage

import (
	"context"
	"encoding/json"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// Handler asks the machine's object, which has the counts.
type Handler struct {
	Objects rpc.Stub
}

// Get serves GET /v1/usage: the limits of the caller's key and what it has used.
func (h *Handler) Get(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := json.Marshal(rpc.KeyUsageQuery{KeyID: c.Key.ID})
	if err != nil {
		return nil, err
	}
	status, raw, err := h.Objects.Call(ctx, c.MachineID, "key.usage", body)
	if err != nil {
		e := rpc.ReadFailure(503, nil)
		e.Err = err
		return nil, e
	}
	if status != 200 {
		return nil, rpc.ReadFailure(status, raw)
	}
	return &httpmsg.Response{
		Status: 200,
		Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}},
		Body:   stream.FromBytes(raw),
	}, nil
}
