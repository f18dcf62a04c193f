package manage

import (
	"encoding/json"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// requestList is the object's part of GET /api/requests: the first requests, in the
// order of the query, of those that one scan reads.
func (c *change) requestList() (any, error) {
	q, err := rpc.ReadRequestQuery(c.env.Query)
	if err != nil {
		return nil, err
	}
	counts := c.RequestCounts()
	page := rpc.RequestPage{Object: "list", Data: []store.Request{}, Kept: counts.Kept, Total: counts.Total,
		LostFailureAt: counts.LostFailureAt}
	if c.member() != nil { // the counts are those of all
		page.Kept, page.Total, page.LostFailureAt = 0, 0, 0
	}
	before := q.Before
	if c.env.Scan > 0 {
		before = c.env.Scan
	}
	page.Scan = c.ScanRequests(before, q.After, func(r *store.Request) bool {
		return q.MayBeFollowed(r) && (!q.Wanted(r) || !c.isOwn(r.KeyID) || q.Add(&page, r))
	})
	q.End(&page)
	return page, nil
}

// requestGet is the object's part of GET /api/requests/{id}.
func (c *change) requestGet() (any, error) {
	found, more := c.FindRequest(c.param(), c.env.Scan)
	switch {
	case found != nil && c.isOwn(found.KeyID):
		return found, nil
	case found == nil && more > 0:
		return rpc.RequestPage{Scan: more}, nil
	}
	return nil, apierr.New(404, "request_not_found", "No request with this id is listed. GET /api/requests lists them.")
}

// ownRequest is the answer to GET /v1/usage/requests/{id}: what a key may know of a call
// of its own.
type ownRequest struct {
	Object    string `json:"object"`
	ID        string `json:"id"`
	At        int64  `json:"at"` // when it came in, Unix milliseconds
	Endpoint  string `json:"endpoint"`
	Model     string `json:"model,omitempty"`
	Provider  string `json:"provider,omitempty"`
	Status    int    `json:"status"`
	Error     string `json:"error,omitempty"`
	Outcome   string `json:"outcome,omitempty"`
	Reason    string `json:"reason,omitempty"`
	LatencyMs int64  `json:"latencyMs"`
	FirstMs   int64  `json:"firstMs,omitempty"`
	Attempts  int    `json:"attempts"`
	store.Used
}

// OwnRequest answers the operation "key.request".
func (o *Manager) OwnRequest(r *storage.Call) (any, error) {
	var q rpc.KeyRequestQuery
	if json.Unmarshal(r.Body, &q) != nil || !r.Exists() || q.KeyID == "" {
		return nil, rpc.ErrInvalidKey()
	}
	f, more := r.FindRequest(q.ID, q.Scan)
	switch {
	case f != nil && f.KeyID == q.KeyID:
		return ownRequest{
			"key.request", f.ID, f.At, f.Endpoint, f.Model, f.Provider, f.Status, f.Error, f.Outcome, f.Reason, f.LatencyMs,
			f.FirstMs, f.Attempts, f.Used,
		}, nil
	case f == nil && more > 0:
		return rpc.RequestPage{Scan: more}, nil
	}
	e := apierr.New(404, "request_not_found",
		"No request of this key with this x-request-id is listed: not yet, if it has ended within the last seconds, or no longer.")
	e.RetryAfter = 2 * time.Second
	return nil, e
}
