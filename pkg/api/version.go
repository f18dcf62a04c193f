package api

import (
	"context"
	"encoding/json"

	"weir/pkg/auth"
	"weir/pkg/wire/httpmsg"
)

// ShowVersion serves GET /api/version: the version of the build, for the operator.
//
//	{"version":"0.1.0-g0123456789ab"}
func (h *Handler) ShowVersion(context.Context, *auth.Call) (*httpmsg.Response, error) {
	body, err := json.Marshal(struct {
		Version string `json:"version"`
	}{h.Version})
	if err != nil {
		return nil, err
	}
	return answer(200, body), nil
}
