package api

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsoncodec"
)

// requestList answers GET /api/requests, the newest first, those below the
// number "before" when it is given. The filters are applied to every stored
// request, so that a page is full while there are more:
//
//	q           a part of the id, the models, the endpoint, the provider, the error or a failed attempt
//	status      429, 4xx, error (400 and above, but not client_left), client_left
//	code        of the failure, or of a failed attempt's
//	outcome     succeeded, provider_failed, refused or left
//	reason      of a refusal: key_limit, budget, concurrency, key, model, request
//	key, endpoint
//	connection, provider   of the answer, or of a failed attempt
//	model       the id asked for, the one that served, or that of a failed attempt
//	failed      true: with a failure at any attempt
//	from, to    Unix milliseconds
//	limit, before
//	after       the number of a request: only newer ones
//
// A call reads the rows of the list at most once: RequestPages.
func (c *change) requestList() (any, error) {
	limit, before, after, from, to := int64(50), int64(1)<<53, int64(0), int64(0), int64(1)<<53
	for _, p := range [...]struct {
		name string
		to   *int64
		most int64
	}{{"limit", &limit, maxRequestsPage}, {"before", &before, before}, {"after", &after, before}, {"from", &from, to}, {"to", &to, to}} {
		if v := c.query(p.name); v != "" {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 1 || n > p.most {
				return nil, apierr.Invalid(p.name, "%s must be an integer from 1 to %d.", p.name, p.most)
			}
			*p.to = n
		}
	}
	wanted, err := c.requestFilter(from, to)
	if err != nil {
		return nil, err
	}
	out := struct {
		Object string          `json:"object"`
		Data   []store.Request `json:"data"`
		More   bool            `json:"has_more"`
	}{"list", []store.Request{}, false}
	c.requests(before, after, nil, func(r *store.Request) bool {
		if !wanted(r) {
			return true
		}
		if out.More = int64(len(out.Data)) == limit; !out.More {
			out.Data = append(out.Data, *r)
		}
		return !out.More
	})
	return out, nil
}

// requestGet answers GET /api/requests/{id}.
func (c *change) requestGet() (any, error) {
	var found *store.Request
	c.requests(1<<53, 0, []byte(c.param()), func(r *store.Request) bool {
		if r.ID == c.param() {
			found = r
		}
		return found == nil
	})
	if found == nil {
		return nil, apierr.New(404, "request_not_found", "No request with this id is among the last %d. GET /api/requests lists them.", storage.MaxRequests)
	}
	return found, nil
}

// requests calls f with the stored requests whose numbers are between two, the
// newest first, until it returns false. With part, rows without that text are left
// out.
func (c *change) requests(before, after int64, part []byte, f func(r *store.Request) bool) {
	var seq int64
	c.Load(storage.RequestsRow, &seq)
	oldest := max(seq-storage.MaxRequests, after, 0) + 1
	for next := min(before-1, seq); next >= oldest; {
		at := (next - 1) / storage.RequestsPerPage
		first := at*storage.RequestsPerPage + 1
		raw, ok := c.Get(storage.RequestKey(at))
		if !ok {
			return
		}
		if part == nil || bytes.Contains(raw, part) {
			page := gjson.ParseBytes(raw).Array()
			for i := len(page) - 1; i >= 0; i-- {
				if n := page[i].Get("seq").Int(); n > next || n < max(first, oldest) {
					continue
				}
				r := &store.Request{}
				if jsoncodec.Unmarshal([]byte(page[i].Raw), r) == nil && !f(r) {
					return
				}
			}
		}
		next = first - 1
	}
}

// requestFilter returns the condition that the query sets.
func (c *change) requestFilter(from, to int64) (func(r *store.Request) bool, error) {
	failed := c.query("failed")
	if failed != "" && failed != "true" && failed != "false" {
		return nil, apierr.Invalid("failed", "failed must be true or false.")
	}
	status, err := statusFilter(c.query("status"))
	if err != nil {
		return nil, err
	}
	text := strings.ToLower(strings.TrimSpace(c.query("q")))
	key, endpoint, code := c.query("key"), c.query("endpoint"), c.query("code")
	outcome, reason := c.query("outcome"), c.query("reason")
	connection, provider, model := c.query("connection"), c.query("provider"), c.query("model")
	return func(r *store.Request) bool {
		if r.At < from || r.At > to || !status(r) || key != "" && r.KeyID != key || endpoint != "" && r.Endpoint != endpoint ||
			outcome != "" && r.Outcome != outcome || reason != "" && r.Reason != reason {
			return false
		}
		tried := func(want, last string, of func(a *store.Attempt) string) bool {
			if want == "" || want == last {
				return true
			}
			for i := range r.Failed {
				if of(&r.Failed[i]) == want {
					return true
				}
			}
			return false
		}
		bad := r.Status >= 400 && r.Status != 499 || r.Error != "" && r.Error != apierr.CodeClientLeft || len(r.Failed) > 0
		return (failed == "" || bad == (failed == "true")) &&
			tried(connection, r.ConnectionID, func(a *store.Attempt) string { return a.ConnectionID }) &&
			tried(provider, r.Provider, func(a *store.Attempt) string { return a.Provider }) &&
			tried(code, r.Error, func(a *store.Attempt) string { return a.Code }) &&
			(model == r.Asked || tried(model, r.Model, func(a *store.Attempt) string { return a.Model })) &&
			(text == "" || requestHas(r, text))
	}, nil
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
