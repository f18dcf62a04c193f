// Package messages serves POST /v1/messages and /v1/messages/count_tokens.
package messages

import (
	"context"

	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/llm/proxy"
	"weir/pkg/wire/httpmsg"
)

// talker is the part of proxy.Dialog used here.
type talker interface {
	Answer(ctx context.Context, c *auth.Call, a *proxy.Ask) (*proxy.Reply, error)
	Count(ctx context.Context, c *auth.Call, body []byte) (proxy.Tokens, error)
}

// Handler serves the endpoints.
type Handler struct{ Dialog talker }

// Create answers one request (docs/reference/api-shapes.md, 8): a message, or
// with stream its events.
func (h *Handler) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	ask, err := proxy.Read(llm.Messages, body)
	if err != nil {
		return nil, err
	}
	reply, err := h.Dialog.Answer(ctx, c, ask)
	if err != nil {
		return nil, err
	}
	return reply.Response, nil
}
