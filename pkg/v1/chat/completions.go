package chat

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
}

// Handler serves the endpoint.
type Handler struct{ Proxy answerer }

// Complete answers one request (docs/reference/api-shapes.md, 3): a
// chat.completion, or with stream its chunks. The answer's model is the
// upstream's; x-weir-model is the target that answered.
func (h *Handler) Complete(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return proxy.Serve(ctx, h.Proxy, c, llm.Chat)
}
