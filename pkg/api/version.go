package api

import (
	"context"
	"encoding/json"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/wire/httpmsg"
)

// ShowVersion serves GET /api/version: the version of the build, for the operator, that of a
// newer release if one is known, and with a source of prices what was last taken of it.
// fetchedAt is missing until then.
//
//	{"version":"0.1.0-g0123456789ab","newer"?:"v1.2.0","prices"?:{"source","signed","issuedAt"?,"fetchedAt"?,"failedAt"?,"error"?,
//	 "rows","held","dear"?,"addedModels","limits","refusedModels"}}
func (h *Handler) ShowVersion(ctx context.Context, _ *auth.Call) (*httpmsg.Response, error) {
	v := struct {
		Version string          `json:"version"`
		Newer   string          `json:"newer,omitempty"`
		Prices  *catalog.Update `json:"prices,omitempty"`
	}{Version: h.Version}
	if h.Newer != nil {
		v.Newer = h.Newer()
	}
	if h.Prices != nil {
		v.Prices = h.Prices(ctx)
	}
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return answer(200, body), nil
}
