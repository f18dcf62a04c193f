// Package messages serves POST /v1/messages and /v1/messages/count_tokens.
package messages

import (
	"context"

	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/llm/proxy"
	"weir/pkg/wire/httpmsg"
)

// answerer is the part of proxy.Proxy used here.
type answerer interface {
	Answer(ctx context.Context, c *auth.Call, a *proxy.Request) (*proxy.Result, error)
	Count(ctx context.Context, c *auth.Call, d llm.Dialect, body []byte) (proxy.Tokens, error)
}

// Handler serves the endpoints.
type Handler struct{ Proxy answerer }

// Create answers one request (docs/reference/api-shapes.md, 8): a message, or
// with stream its events.
func (h *Handler) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return proxy.Serve(ctx, h.Proxy, c, llm.Messages)
}
