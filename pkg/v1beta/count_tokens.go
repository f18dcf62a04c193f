package v1beta

import (
	"context"
	"strconv"

	"weir/pkg/auth"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// countTokens answers how many input tokens a request has:
//
//	{"totalTokens": n, …}
//
// A Gemini upstream's answer passes as it is. x-weir-token-count reports whether the
// provider counted (exact) or the gateway did (estimate).
func (h *Handler) countTokens(ctx context.Context, c *auth.Call, model string) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	n, err := h.Chats.CountGemini(ctx, c, model, body)
	if err != nil {
		return nil, err
	}
	how, answer := "estimate", n.Answer
	if n.Exact {
		how = "exact"
	}
	if answer == "" {
		answer = `{"totalTokens":` + strconv.FormatInt(n.Input, 10) + `}`
	}
	return &httpmsg.Response{
		Status: 200,
		Header: httpmsg.Header{
			{Name: "content-type", Value: "application/json"},
			{Name: "x-weir-token-count", Value: how},
		},
		Body: stream.FromString(answer),
	}, nil
}
