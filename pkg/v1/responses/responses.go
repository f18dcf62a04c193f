// Package responses serves POST /v1/responses, the calls about a response by its
// id, and the compaction and the tokens of a conversation.
//
// A response that the upstream stores is bound to the account that created it:
// reading, deleting, cancelling and continuing it go to that account only.
package responses

import (
	"context"
	"errors"
	"slices"

	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/llm/proxy"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// answerer is the part of proxy.Proxy used here.
type answerer interface {
	Answer(ctx context.Context, c *auth.Call, a *proxy.Request) (*proxy.Result, error)
	Fetch(ctx context.Context, c *auth.Call, f *proxy.StoredCall) (*httpmsg.Response, error)
	CountAt(ctx context.Context, c *auth.Call, d llm.Dialect, body []byte, connection string) (proxy.Tokens, error)
}

// Handler serves the endpoints.
type Handler struct {
	Proxy  answerer
	Object rpc.Stub
}

const kind = "response" // of a job

// request reads a request, and finds the account that stores what it continues.
func (h *Handler) request(ctx context.Context, c *auth.Call) (body []byte, req *proxy.Request, err error) {
	if body, err = c.ReadBody(); err == nil {
		req, err = proxy.ReadRequest(llm.Responses, body)
	}
	if err == nil {
		err = h.continues(ctx, c, req)
	}
	return body, req, err
}

// Create answers one request (docs/reference/api-shapes.md, 4). A request that
// continues a stored response goes to the account that stores it; only
// upstreams of this dialect store any.
func (h *Handler) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	_, req, err := h.request(ctx, c)
	if err != nil {
		return nil, err
	}
	result, err := h.Proxy.Answer(ctx, c, req)
	if err != nil {
		return nil, err
	}
	if result.ResponseID != "" && !req.Unstored {
		h.bind(ctx, c, result)
	}
	return result.Response, nil
}

// continues binds a request to the account that stores its previous response.
func (h *Handler) continues(ctx context.Context, c *auth.Call, req *proxy.Request) error {
	if req.Previous == "" {
		return nil
	}
	job, err := h.find(ctx, c.Machine.ID, req.Previous)
	switch {
	case errors.Is(err, errUnknown):
		e := apierr.Invalid("previous_response_id",
			"No account of this machine stores the previous response. Send the whole conversation in input, without previous_response_id.")
		e.Code = "previous_response_not_found"
		return e
	case err != nil:
		return err
	}
	req.Connection = job.ConnectionID
	return nil
}

// bind records which account stores a response, before the client gets its id.
// If the object is unavailable, it is called again after the answer, which
// matters more than its record.
func (h *Handler) bind(ctx context.Context, c *auth.Call, result *proxy.Result) {
	job := rpc.Job{
		ID: result.ResponseID, Kind: kind, ConnectionID: result.Connection.ID,
		Provider: result.Target.Provider.ID, Model: result.Target.Model, KeyID: c.Trace.KeyID, RequestID: c.ID,
		Unbilled: result.Unbilled, Counted: result.Counted, Labels: result.Labels,
	}
	put := func(ctx context.Context) bool {
		_, err := rpc.Call[struct{}](ctx, h.Object, c.Machine.ID, "job.put", job)
		return err == nil
	}
	if !put(ctx) {
		result.After = slices.Insert(result.After, 0, func(ctx context.Context) { put(ctx) }) // before it is billed
	}
}

var errUnknown = errors.New("responses: no such job")

// find returns the record of a stored response.
func (h *Handler) find(ctx context.Context, machineID, id string) (*rpc.Job, error) {
	job, err := rpc.Call[rpc.Job](ctx, h.Object, machineID, "job.get", map[string]string{"id": id})
	switch {
	case rpc.Status(err) == 404:
		return nil, errUnknown
	case err != nil:
		e := apierr.New(503, "unavailable", "The record of the response cannot be read at the moment. Try again.")
		e.Err = err
		return nil, e
	case job.Kind != kind || job.ID != id:
		return nil, errUnknown
	}
	return &job, nil
}
