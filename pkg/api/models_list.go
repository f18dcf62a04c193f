package api

import (
	"context"

	"weir/pkg/auth"
	"weir/pkg/wire/httpmsg"
)

// modelLists is the part of models.Handler used here.
type modelLists interface {
	Detailed(ctx context.Context, c *auth.Call) (*httpmsg.Response, error)
	Info(ctx context.Context, c *auth.Call) (*httpmsg.Response, error)
}

// ModelLists serves the model lists of the data plane to whoever manages a
// machine, as a key without a list of models sees them.
type ModelLists struct {
	Models modelLists
	Cache  cache
}

// Kind serves GET /api/models/list/{kind}; see models.Handler.Detailed.
func (h *ModelLists) Kind(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	sub, err := h.asData(ctx, c)
	if err != nil {
		return nil, err
	}
	return h.Models.Detailed(ctx, sub)
}

// Info serves GET /api/models/info?id=&kind=; see models.Handler.Info.
func (h *ModelLists) Info(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	sub, err := h.asData(ctx, c)
	if err != nil {
		return nil, err
	}
	return h.Models.Info(ctx, sub)
}

func (h *ModelLists) asData(ctx context.Context, c *auth.Call) (*auth.Call, error) {
	m, err := load(ctx, h.Cache, c)
	if err != nil {
		return nil, err
	}
	sub := *c
	sub.Machine, sub.Key = m, nil
	return &sub, nil
}
