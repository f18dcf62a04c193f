package v1beta

import (
	"context"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/llm/proxy"
	"weir/pkg/wire/httpmsg"
)

// answerer is the part of proxy.Proxy used here.
type answerer interface {
	Answer(ctx context.Context, c *auth.Call, a *proxy.Request) (*proxy.Result, error)
	CountGemini(ctx context.Context, c *auth.Call, model string, body []byte) (proxy.Tokens, error)
}

// generate answers with one GenerateContentResponse.
func (h *Handler) generate(ctx context.Context, c *auth.Call, model string) (*httpmsg.Response, error) {
	return h.answer(ctx, c, model, false)
}

// generateStream answers with a stream of them: server-sent events with ?alt=sse, else
// a JSON array.
func (h *Handler) generateStream(ctx context.Context, c *auth.Call, model string) (*httpmsg.Response, error) {
	return h.answer(ctx, c, model, true)
}

func (h *Handler) answer(ctx context.Context, c *auth.Call, model string, streams bool) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	req, err := proxy.ReadGemini(model, streams, body)
	if err != nil {
		return nil, err
	}
	req.Array = streams && endpoint.Query(c.Query, "alt") != "sse"
	result, err := h.Chats.Answer(ctx, c, req)
	if err != nil {
		return nil, err
	}
	return result.Response, nil
}
