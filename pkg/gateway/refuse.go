package gateway

import (
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// Refuse answers a request that the host does not pass to Serve, in the dialect
// and with the cross-origin fields of its path.
func (g *Gateway) Refuse(r *httpmsg.Request, e *apierr.Error) *httpmsg.Response {
	r.ID = g.requestID()
	r.Route = "none"
	_, path := split(r)
	return g.finish(r, g.unmatched(path), nil, nil, e)
}
