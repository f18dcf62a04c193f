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
	return h.forward(ctx, c, "GET", "")
}

// Items serves GET /v1/responses/{id}/input_items.
func (h *Handler) Items(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.forward(ctx, c, "GET", "/input_items")
}

// Delete serves DELETE /v1/responses/{id}.
func (h *Handler) Delete(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.forward(ctx, c, "DELETE", "")
}

// Cancel serves POST /v1/responses/{id}/cancel.
func (h *Handler) Cancel(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.forward(ctx, c, "POST", "/cancel")
}

// forward sends a call about a stored response to the account that created it.
// A response of another machine is not found, and no upstream is called.
func (h *Handler) forward(ctx context.Context, c *auth.Call, method, rest string) (*httpmsg.Response, error) {
	id := c.Params[0]
	if !isID(id) {
		return nil, notFound()
	}
	job, err := h.find(ctx, c.Machine.ID, id)
	if errors.Is(err, errUnknown) {
		return nil, notFound()
	}
	if err != nil {
		return nil, err
	}
	resp, err := h.Proxy.Fetch(ctx, c, &proxy.StoredCall{
		Method: method, ID: id, Subpath: rest, Provider: job.Provider, Model: job.Model, Connection: job.ConnectionID,
		Unbilled: job.Unbilled != nil && method == "GET" && rest == "", Counted: job.Counted,
	})
	if errors.Is(err, proxy.ErrConnectionGone) {
		return nil, notFound()
	}
	return resp, err
}

// isID reports whether an id is one segment of a path, as upstreams write
// theirs.
func isID(id string) bool {
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
	return apierr.New(404, "response_not_found", "No response with this id is stored.")
}
