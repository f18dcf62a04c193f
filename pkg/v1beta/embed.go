package v1beta

import (
	"context"

	"weir/pkg/auth"
	"weir/pkg/wire/httpmsg"
)

func (h *Handler) embed(ctx context.Context, c *auth.Call, model string) (*httpmsg.Response, error) {
	return h.Embeddings.Gemini(ctx, c, model, false)
}

func (h *Handler) embedBatch(ctx context.Context, c *auth.Call, model string) (*httpmsg.Response, error) {
	return h.Embeddings.Gemini(ctx, c, model, true)
}
