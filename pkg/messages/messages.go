// Package messages serves POST /v1/messages and /v1/messages/count_tokens.
package messages

import (
	"context"

	"weir/pkg/auth"
	"weir/pkg/dialog"
	"weir/pkg/edge"
	"weir/pkg/translate"
)

// talker is the part of dialog.Dialog used here.
type talker interface {
	Answer(ctx context.Context, c *auth.Call, a *dialog.Ask) (*dialog.Reply, error)
	Count(ctx context.Context, c *auth.Call, body []byte) (dialog.Tokens, error)
}

// Handler serves the endpoints.
type Handler struct{ Dialog talker }

// Create answers one request (api-shapes 8): a message, or with stream its
// events.
func (h *Handler) Create(ctx context.Context, c *auth.Call) (*edge.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	ask, err := dialog.Read(translate.Messages, body)
	if err != nil {
		return nil, err
	}
	reply, err := h.Dialog.Answer(ctx, c, ask)
	if err != nil {
		return nil, err
	}
	return reply.Response, nil
}
