package chat

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
}

// Handler serves the endpoint.
type Handler struct{ Dialog talker }

// Complete answers one request (api-shapes 3): a chat.completion, or with
// stream its chunks. The answer's model is what the upstream calls itself;
// x-weir-model names what answered.
func (h *Handler) Complete(ctx context.Context, c *auth.Call) (*edge.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	ask, err := dialog.Read(translate.Chat, body)
	if err != nil {
		return nil, err
	}
	reply, err := h.Dialog.Answer(ctx, c, ask)
	if err != nil {
		return nil, err
	}
	return reply.Response, nil
}
