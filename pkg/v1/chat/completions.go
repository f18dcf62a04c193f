package chat

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
}

// Handler serves the endpoint.
type Handler struct{ Dialog talker }

// Complete answers one request (docs/reference/api-shapes.md, 3): a
// chat.completion, or with stream its chunks. The answer's model is what the
// upstream calls itself; x-weir-model names what answered.
func (h *Handler) Complete(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	ask, err := proxy.Read(llm.Chat, body)
	if err != nil {
		return nil, err
	}
	reply, err := h.Dialog.Answer(ctx, c, ask)
	if err != nil {
		return nil, err
	}
	return reply.Response, nil
}
