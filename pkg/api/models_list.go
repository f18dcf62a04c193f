package api

import (
	"context"

	"weir/pkg/auth"
	"weir/pkg/v1/models"
	"weir/pkg/wire/httpmsg"
)

// ModelLists serves the model lists of the data plane to whoever manages a
// machine, as a key without a list of models sees them.
type ModelLists struct {
	Models *models.Handler
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
