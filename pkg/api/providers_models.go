package api

import (
	"context"
	"errors"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/snapshot"
	"weir/pkg/v1/models"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// ProviderModels serves GET /api/providers/{id}/models: the upstream's own
// list.
type ProviderModels struct {
	Models *models.Handler
	Cache  cache
}

// List serves the route.
func (h *ProviderModels) List(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	m, err := load(ctx, h.Cache, c)
	if err != nil {
		return nil, err
	}
	conn := m.Connection(c.Params[0])
	if conn == nil {
		return nil, rpc.ErrNoConnection()
	}
	c.Machine = m
	return h.Models.Connection(ctx, c, conn)
}

// load returns the machine that a management call is for.
func load(ctx context.Context, cache cache, c *auth.Call) (*snapshot.Machine, error) {
	if c.Machine != nil {
		return c.Machine, nil
	}
	m, err := cache.Get(ctx, c.MachineID)
	if errors.Is(err, snapshot.ErrUnknown) {
		return nil, apierr.New(404, "machine_not_found", "No machine has this id.")
	}
	return m, err
}
