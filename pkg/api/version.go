package api

import (
	"context"
	"encoding/json"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/wire/httpmsg"
)

// ShowVersion serves GET /api/version: the version of the build, for the operator, and
// with a source of prices what was last taken of it. fetchedAt is missing until then.
//
//	{"version":"0.1.0-g0123456789ab","prices"?:{"source","signed","issuedAt"?,"fetchedAt"?,"failedAt"?,"error"?,
//	 "rows","held","dear"?,"addedModels","limits","refusedModels"}}
func (h *Handler) ShowVersion(ctx context.Context, _ *auth.Call) (*httpmsg.Response, error) {
	v := struct {
		Version string          `json:"version"`
		Prices  *catalog.Update `json:"prices,omitempty"`
	}{Version: h.Version}
	if h.Prices != nil {
		v.Prices = h.Prices(ctx)
	}
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return answer(200, body), nil
}
