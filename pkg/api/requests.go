package api

import (
	"encoding/json"
	"strconv"
	"strings"

	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// requestList answers GET /api/requests, the newest first, those below the
// number "before" when it is given. The filters are applied to every stored
// request, so that a page is full while there are more:
//
//	q           a part of the id, the models, the endpoint, the provider, the error or a failed attempt
//	status      429, 4xx, error (400 and above, but not client_left), client_left
//	key, connection, provider, endpoint
//	model       the id asked for, or the one that served
//	failed      true: with a failure at any attempt
//	from, to    Unix milliseconds
//	limit, before
func (c *change) requestList() (any, error) {
	limit, before, from, to := int64(50), int64(1)<<53, int64(0), int64(1)<<53
	for _, p := range [...]struct {
		name string
		to   *int64
		most int64
	}{{"limit", &limit, maxRequestsPage}, {"before", &before, before}, {"from", &from, to}, {"to", &to, to}} {
		if v := c.query(p.name); v != "" {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 1 || n > p.most {
				return nil, apierr.Invalid(p.name, "%s must be an integer from 1 to %d.", p.name, p.most)
			}
			*p.to = n
		}
	}
	failed := c.query("failed")
	if failed != "" && failed != "true" && failed != "false" {
		return nil, apierr.Invalid("failed", "failed must be true or false.")
	}
	status, err := statusFilter(c.query("status"))
	if err != nil {
		return nil, err
	}
	text := strings.ToLower(strings.TrimSpace(c.query("q")))
	wanted := func(r *store.Request) bool {
		for _, f := range [...]struct{ want, a, b string }{
			{c.query("key"), r.KeyID, ""}, {c.query("connection"), r.ConnectionID, ""}, {c.query("provider"), r.Provider, ""},
			{c.query("model"), r.Model, r.Asked}, {c.query("endpoint"), r.Endpoint, ""},
		} {
			if f.want != "" && f.want != f.a && f.want != f.b {
				return false
			}
		}
		bad := r.Status >= 400 && r.Status != 499 || r.Error != "" && r.Error != apierr.CodeClientLeft || len(r.Failed) > 0
		return r.At >= from && r.At <= to && (failed == "" || bad == (failed == "true")) && status(r) && (text == "" || requestHas(r, text))
	}
	out := struct {
		Object string          `json:"object"`
		Data   []store.Request `json:"data"`
		More   bool            `json:"has_more"`
	}{"list", []store.Request{}, false}
	var seq int64
	c.Load(storage.RequestsRow, &seq)
	oldest := max(seq-storage.MaxRequests, 0) + 1
	for next := min(before-1, seq); next >= oldest; {
		at := (next - 1) / storage.RequestsPerPage
		first := at*storage.RequestsPerPage + 1
		raw, ok := c.Get(storage.RequestKey(at))
		var page []store.Request
		if !ok || json.Unmarshal(raw, &page) != nil {
			break
		}
		for i := len(page) - 1; i >= 0; i-- {
			r := &page[i]
			if r.Seq > next || r.Seq < max(first, oldest) || !wanted(r) {
				continue
			}
			if int64(len(out.Data)) == limit {
				out.More = true
				return out, nil
			}
			out.Data = append(out.Data, *r)
		}
		next = first - 1
	}
	return out, nil
}

// statusFilter reads the filter "status".
func statusFilter(want string) (func(r *store.Request) bool, error) {
	left := func(r *store.Request) bool { return r.Status == 499 || r.Error == apierr.CodeClientLeft }
	n, err := strconv.Atoi(want)
	switch {
	case want == "":
		return func(*store.Request) bool { return true }, nil
	case want == "client_left":
		return left, nil
	case want == "error":
		return func(r *store.Request) bool { return !left(r) && (r.Status >= 400 || r.Error != "") }, nil
	case len(want) == 3 && want[0] >= '1' && want[0] <= '9' && want[1:] == "xx":
		return func(r *store.Request) bool { return r.Status/100 == int(want[0]-'0') }, nil
	case err == nil && n >= 100 && n <= 999:
		return func(r *store.Request) bool { return r.Status == n }, nil
	}
	return nil, apierr.Invalid("status", "status must be a status such as 429, a class such as 4xx, error or client_left.")
}

// requestHas reports whether a request contains a lower-case text.
func requestHas(r *store.Request, text string) bool {
	for _, s := range [...]string{r.ID, r.Asked, r.Model, r.Endpoint, r.Provider, r.Error} {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	for i := range r.Failed {
		f := &r.Failed[i]
		for _, s := range [...]string{f.Model, f.Provider, f.Code, f.Text} {
			if strings.Contains(strings.ToLower(s), text) {
				return true
			}
		}
	}
	return false
}

// maxRequestsPage is the largest number of requests in one answer.
const maxRequestsPage = 200
