package responses

import (
	"context"
	"strconv"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/llm/proxy"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
)

// InputTokens serves POST /v1/responses/input_tokens: how many input tokens a
// request has.
//
//	{"model","input",…} → {"object":"response.input_tokens","input_tokens": n}
//
// x-weir-token-count reports whether the provider counted (exact) or the gateway
// did (estimate).
func (h *Handler) InputTokens(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	set, err := jsonscan.Read(body, "previous_response_id")
	if err != nil {
		return nil, endpoint.BadJSON(err)
	}
	var req proxy.Request
	if req.Previous, _, err = set.String("previous_response_id"); err != nil {
		return nil, apierr.Invalid("previous_response_id", "previous_response_id must be a string.")
	}
	if err := h.continues(ctx, c, &req); err != nil {
		return nil, err
	}
	n, err := h.Proxy.CountAt(ctx, c, llm.Responses, body, req.Connection)
	if err != nil {
		return nil, err
	}
	return n.Response(`{"object":"response.input_tokens","input_tokens":` + strconv.FormatInt(n.Input, 10) + `}`), nil
}
