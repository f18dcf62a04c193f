// Package completions serves POST /v1/completions, OpenAI's legacy endpoint.
package completions

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

// Create answers one request, by a chat model that gets the prompt as a message of the
// user: a text_completion, or with stream its chunks.
//
//	{"model","prompt",…} → {"id","object":"text_completion","choices":[{"text","index","logprobs","finish_reason"}],"usage"}
func (h *Handler) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return proxy.Serve(ctx, h.Proxy, c, llm.Completions)
}
