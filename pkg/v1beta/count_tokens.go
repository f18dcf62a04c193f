package v1beta

import (
	"cmp"
	"context"
	"strconv"

	"weir/pkg/auth"
	"weir/pkg/wire/httpmsg"
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
	return n.Response(cmp.Or(n.Answer, `{"totalTokens":`+strconv.FormatInt(n.Input, 10)+`}`)), nil
}
