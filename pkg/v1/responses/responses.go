// Package responses serves POST /v1/responses, and what is done with a
// response by its id.
//
// A response that the upstream keeps is bound to the account that made it:
// reading, deleting, cancelling and going on from it go to that account only.
package responses

import (
	"context"
	"encoding/json"
	"errors"

	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/llm/proxy"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// talker is the part of proxy.Dialog used here.
type talker interface {
	Answer(ctx context.Context, c *auth.Call, a *proxy.Ask) (*proxy.Reply, error)
	Fetch(ctx context.Context, c *auth.Call, f *proxy.Kept) (*httpmsg.Response, error)
}

// objects is the part of rpc.Stub used here.
type objects interface {
	Call(ctx context.Context, machineID, op string, body []byte) (status int, answer []byte, err error)
}

// Handler serves the endpoints.
type Handler struct {
	Dialog talker
	Object objects
}

const kind = "response" // of a job

// Create answers one request (docs/reference/api-shapes.md, 4). One that goes
// on from a kept response goes to the account that keeps it; only upstreams
// that speak this dialect themselves keep any.
func (h *Handler) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	ask, err := proxy.Read(llm.Responses, body)
	if err != nil {
		return nil, err
	}
	if ask.Previous != "" {
		job, err := h.find(ctx, c.Machine.ID, ask.Previous)
		switch {
		case errors.Is(err, errUnknown):
			e := apierr.Invalid("previous_response_id", "The previous response is not kept by any account of this machine.")
			e.Code = "previous_response_not_found"
			return nil, e
		case err != nil:
			return nil, err
		}
		ask.Connection = job.ConnectionID
	}
	reply, err := h.Dialog.Answer(ctx, c, ask)
	if err != nil {
		return nil, err
	}
	if reply.ResponseID != "" && !ask.Unstored {
		h.bind(ctx, c, reply)
	}
	return reply.Response, nil
}

// bind notes which account keeps a response, before the client learns its id.
// When the object cannot be reached it is tried again after the answer, which
// is worth more than its record.
func (h *Handler) bind(ctx context.Context, c *auth.Call, reply *proxy.Reply) {
	job, err := json.Marshal(rpc.Job{
		ID: reply.ResponseID, Kind: kind, ConnectionID: reply.Connection.ID,
		Provider: reply.Target.Provider.ID, Model: reply.Target.Model, KeyID: c.Trace.KeyID,
	})
	if err != nil {
		return
	}
	put := func(ctx context.Context) bool {
		status, _, err := h.Object.Call(ctx, c.Machine.ID, "job.put", job)
		return err == nil && status == 200
	}
	if !put(ctx) {
		reply.After = append(reply.After, func(ctx context.Context) { put(ctx) })
	}
}

var errUnknown = errors.New("responses: no such job")

// find returns the record of a stored response.
func (h *Handler) find(ctx context.Context, machineID, id string) (*rpc.Job, error) {
	body, err := json.Marshal(struct {
		ID string `json:"id"`
	}{id})
	if err != nil {
		return nil, err
	}
	status, answer, err := h.Object.Call(ctx, machineID, "job.get", body)
	var job rpc.Job
	switch {
	case err == nil && status == 404:
		return nil, errUnknown
	case err != nil || status != 200 || json.Unmarshal(answer, &job) != nil:
		e := apierr.New(503, "unavailable", "The record of the response cannot be read at the moment.")
		e.Err = err
		return nil, e
	case job.Kind != kind || job.ID != id:
		return nil, errUnknown
	}
	return &job, nil
}
