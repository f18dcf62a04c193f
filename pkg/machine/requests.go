package machine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"weir/pkg/apierr"
	"weir/pkg/edge"
	"weir/pkg/redact"
	"weir/pkg/store"
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
	r.Failed = append([]edge.Attempt(nil), failed...)
	for i := range r.Failed {
		a := &r.Failed[i]
		if len(a.Text) > maxErrorText {
			a.Text = a.Text[:maxErrorText]
		}
		a.Text, a.Code = tidy(a.Text), tidy(a.Code)
	}
	if len(r.Dropped) > 32 {
		r.Dropped = r.Dropped[:32]
	}
	return true
}

// requestList answers GET /api/requests?limit=&before=&key=&connection=&model=
// &endpoint=&failed=true: the newest first, those below the number "before"
// when it is given. model matches the id asked for and the one that served;
// failed are those with a failure at any attempt.
func (c *change) requestList() (any, error) {
	limit, before := int64(50), int64(1)<<53
	for _, p := range [...]struct {
		name string
		to   *int64
		most int64
	}{{"limit", &limit, maxRequestsPage}, {"before", &before, before}} {
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
	wanted := func(r *store.Request) bool {
		for _, f := range [...]struct{ want, a, b string }{
			{c.query("key"), r.KeyID, ""}, {c.query("connection"), r.ConnectionID, ""},
			{c.query("model"), r.Model, r.Asked}, {c.query("endpoint"), r.Endpoint, ""},
		} {
			if f.want != "" && f.want != f.a && f.want != f.b {
				return false
			}
		}
		bad := r.Status >= 400 || r.Error != "" || len(r.Failed) > 0
		return failed == "" || bad == (failed == "true")
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
