package machine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/redact"
)

// The last requests stand in pages, so that a report writes one row or two.
const (
	requestsRow     = "requests" // the number of the last one
	requestsPerPage = 25
	requestPages    = 40 // kept: the last 976 requests at least
	maxRequestsPage = 200
	maxRequestText  = 400 // bytes of an id
)

func requestKey(page int64) string { return fmt.Sprintf("%s%012d", requestPrefix, page) }

// record keeps the requests of a report, and drops the oldest page for each
// that begins.
func (t *tx) record(list []store.Request) {
	var seq int64
	t.load(requestsRow, &seq)
	was := seq
	var page []store.Request
	var open int64 // its number
	for i := range list {
		r := list[i]
		if !tidyRequest(&r) {
			continue
		}
		at := seq / requestsPerPage
		if seq == was || seq%requestsPerPage == 0 {
			if seq != was {
				t.put(requestKey(open), page)
			}
			page, open = nil, at
			if seq%requestsPerPage == 0 {
				if at >= requestPages {
					t.del(requestKey(at - requestPages))
				}
			} else {
				t.load(requestKey(at), &page)
			}
		}
		seq++
		r.Seq = seq
		page = append(page, r)
	}
	if seq != was {
		t.put(requestKey(open), page)
		t.put(requestsRow, seq)
	}
}

// tidyRequest bounds a record and takes credentials out of its texts; false is
// one that makes no sense.
func tidyRequest(r *store.Request) bool {
	if max(len(r.ID), len(r.KeyID), len(r.Endpoint), len(r.Asked), len(r.Model), len(r.Provider), len(r.ConnectionID), len(r.Error)) > maxRequestText ||
		r.Status < 100 || r.Status > 999 || r.LatencyMs < 0 || r.Input < 0 || r.Output < 0 || !(r.CostUSD >= 0 && r.CostUSD < 1e9) {
		return false
	}
	tidy := func(s string) string { return strings.ToValidUTF8(redact.Patterns(s), "") }
	r.Asked, r.Error = tidy(r.Asked), tidy(r.Error)
	failed := r.Failed[:min(len(r.Failed), 16)]
	r.Failed = append([]httpmsg.Attempt(nil), failed...)
	for i := range r.Failed {
		a := &r.Failed[i]
		if len(a.Text) > rpc.MaxErrorText {
			a.Text = a.Text[:rpc.MaxErrorText]
		}
		a.Text, a.Code = tidy(a.Text), tidy(a.Code)
	}
	if len(r.Dropped) > 32 {
		r.Dropped = r.Dropped[:32]
	}
	return true
}

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
				return nil, apierr.Invalid(p.name, "%s must be an integer from 1 to %d", p.name, p.most)
			}
			*p.to = n
		}
	}
	failed := c.query("failed")
	if failed != "" && failed != "true" && failed != "false" {
		return nil, apierr.Invalid("failed", "failed must be true or false")
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
	c.load(requestsRow, &seq)
	for at := (min(before-1, seq) - 1) / requestsPerPage; at >= 0 && at >= (seq-1)/requestsPerPage-requestPages && before > 1 && seq > 0; at-- {
		raw, ok := c.get(requestKey(at))
		var page []store.Request
		if !ok || json.Unmarshal(raw, &page) != nil {
			break
		}
		for i := len(page) - 1; i >= 0; i-- {
			if r := &page[i]; r.Seq < before && wanted(r) {
				if int64(len(out.Data)) == limit {
					out.More = true
					return out, nil
				}
				out.Data = append(out.Data, *r)
			}
		}
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
	return nil, apierr.Invalid("status", "status must be a status such as 429, a class such as 4xx, error or client_left")
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
