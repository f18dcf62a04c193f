package responses

import (
	"context"
	"errors"

	"weir/pkg/auth"
	"weir/pkg/llm/proxy"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// Get serves GET /v1/responses/{id}.
func (h *Handler) Get(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.kept(ctx, c, "GET", "")
}

// Items serves GET /v1/responses/{id}/input_items.
func (h *Handler) Items(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.kept(ctx, c, "GET", "/input_items")
}

// Delete serves DELETE /v1/responses/{id}.
func (h *Handler) Delete(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.kept(ctx, c, "DELETE", "")
}

// Cancel serves POST /v1/responses/{id}/cancel.
func (h *Handler) Cancel(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.kept(ctx, c, "POST", "/cancel")
}

// kept passes a call about a kept response to the account that made it. One
// that this machine did not make is not there, and no upstream is asked.
func (h *Handler) kept(ctx context.Context, c *auth.Call, method, rest string) (*httpmsg.Response, error) {
	id := c.Params[0]
	if !plain(id) {
		return nil, notFound()
	}
	job, err := h.find(ctx, c.Machine.ID, id)
	if errors.Is(err, errUnknown) {
		return nil, notFound()
	}
	if err != nil {
		return nil, err
	}
	resp, err := h.Dialog.Fetch(ctx, c, &proxy.Kept{
		Method: method, ID: id, Rest: rest, Provider: job.Provider, Model: job.Model, Connection: job.ConnectionID,
	})
	if errors.Is(err, proxy.ErrGone) {
		return nil, notFound()
	}
	return resp, err
}

// plain reports whether an id is written as upstreams write theirs, so that it
// is one segment of an address and nothing else.
func plain(id string) bool {
	if id == "" || len(id) > 256 {
		return false
	}
	for i := 0; i < len(id); i++ {
		c := id[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

func notFound() error {
	return apierr.New(404, "response_not_found", "There is no such response.")
}
