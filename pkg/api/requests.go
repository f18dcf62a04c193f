package api

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/httpmsg"
)

// Requests answers GET /api/requests. The object is asked until it has read the list, as
// far as the page needs it: a call of it reads a bounded part, so that others are served
// in between.
func (h *Handler) Requests(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err != nil {
		return nil, err
	}
	raw, _, err := h.requestPage(ctx, c.MachineID, env)
	if err != nil {
		return nil, err
	}
	return answer(200, raw), nil
}

// requestPage returns a page of requests as JSON, and the cursor of the next one, "" for
// none.
func (h *Handler) requestPage(ctx context.Context, machineID string,
	env rpc.ManageCall) (raw []byte, cursor string, err error) {
	a, err := h.manage(ctx, machineID, &env)
	if err != nil {
		return nil, "", err
	}
	if !gjson.GetBytes(a.Body, "scan").Exists() {
		return a.Body, gjson.GetBytes(a.Body, "cursor").Str, nil
	}
	q, err := rpc.ReadRequestQuery(env.Query)
	if err != nil {
		return nil, "", err
	}
	var page rpc.RequestPage
	if err := json.Unmarshal(a.Body, &page); err != nil {
		return nil, "", err
	}
	for more := true; more && page.Scan > 0; {
		env.Scan = page.Scan
		if a, err = h.manage(ctx, machineID, &env); err != nil {
			return nil, "", err
		}
		var part rpc.RequestPage
		if err := json.Unmarshal(a.Body, &part); err != nil {
			return nil, "", err
		}
		for i := 0; i < len(part.Data) && more; i++ {
			more = q.Add(&page, &part.Data[i])
		}
		page.Scan, page.More = part.Scan, page.More || part.More
	}
	page.Scan = 0
	q.End(&page)
	raw = rpc.JSON(page)
	return raw, page.Cursor, nil
}

// Request answers GET /api/requests/{id}.
func (h *Handler) Request(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err != nil {
		return nil, err
	}
	for {
		a, err := h.manage(ctx, c.MachineID, &env)
		if err != nil {
			return nil, err
		}
		if env.Scan = gjson.GetBytes(a.Body, "scan").Int(); env.Scan == 0 {
			return answer(a.Status, a.Body), nil
		}
	}
}
