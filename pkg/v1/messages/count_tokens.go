// Package messages serves POST /v1/messages/count_tokens. The gateway serves POST /v1/messages
// by pkg/llm/proxy, as all endpoints of chat.
package messages

import (
	"context"
	"strconv"

	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/llm/proxy"
	"weir/pkg/wire/httpmsg"
)

// counter is the part of proxy.Proxy used here.
type counter interface {
	Count(ctx context.Context, c *auth.Call, d llm.Dialect, body []byte) (proxy.Tokens, error)
}

// Handler serves the endpoint.
type Handler struct{ Proxy counter }

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
	return n.Response(`{"input_tokens":` + strconv.FormatInt(n.Input, 10) + `}`), nil
}
