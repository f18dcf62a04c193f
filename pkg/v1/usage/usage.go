// Package usage serves GET /v1/usage and GET /v1/usage/requests/{id}: what a key may know
// of itself and of its calls.
package usage

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

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
	raw, err := rpc.Call[json.RawMessage](ctx, h.Objects, c.MachineID, "key.usage", rpc.KeyUsageQuery{KeyID: c.Key.ID})
	if err != nil {
		return nil, err
	}
	return answer(raw), nil
}

// Request serves GET /v1/usage/requests/{id}: the tokens and the cost of a call of the
// caller's key, by its x-request-id. The object looks through a part of the list at a
// time.
func (h *Handler) Request(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	q := rpc.KeyRequestQuery{KeyID: c.Key.ID, ID: c.Params[0]}
	for {
		raw, err := rpc.Call[json.RawMessage](ctx, h.Objects, c.MachineID, "key.request", q)
		if err != nil {
			return nil, err
		}
		if q.Scan = gjson.GetBytes(raw, "scan").Int(); q.Scan == 0 {
			return answer(raw), nil
		}
	}
}

func answer(raw []byte) *httpmsg.Response {
	return &httpmsg.Response{
		Status: 200,
		Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}},
		Body:   stream.FromBytes(raw),
	}
}
