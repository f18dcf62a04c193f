package messages

import (
	"context"
	"strconv"

	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// CountTokens answers how many input tokens a request has:
//
//	{"input_tokens": n}
//
// x-weir-token-count reports whether the provider counted (exact) or the
// gateway did (estimate).
func (h *Handler) CountTokens(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	n, err := h.Proxy.Count(ctx, c, llm.Messages, body)
	if err != nil {
		return nil, err
	}
	how := "estimate"
	if n.Exact {
		how = "exact"
	}
	return &httpmsg.Response{
		Status: 200,
		Header: httpmsg.Header{
			{Name: "content-type", Value: "application/json"},
			{Name: "x-weir-token-count", Value: how},
		},
		Body: stream.FromString(`{"input_tokens":` + strconv.FormatInt(n.Input, 10) + `}`),
	}, nil
}
