package storage

import (
	"fmt"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/redact"
)

func RequestKey(page int64) string { return fmt.Sprintf("%s%012d", requestPrefix, page) }

// AddRequests keeps the requests of a report, and drops the oldest page for each
// that begins.
func (t *Tx) AddRequests(list []store.Request) {
	var seq int64
	t.Load(RequestsRow, &seq)
	was := seq
	var page []store.Request
	var open int64 // its number
	for i := range list {
		r := list[i]
		if !tidyRequest(&r) {
			continue
		}
		at := seq / RequestsPerPage
		if seq == was || seq%RequestsPerPage == 0 {
			if seq != was {
				t.Put(RequestKey(open), page)
			}
			page, open = nil, at
			if seq%RequestsPerPage == 0 {
				if at >= RequestPages {
					t.Del(RequestKey(at - RequestPages))
				}
			} else {
				t.Load(RequestKey(at), &page)
			}
		}
		seq++
		r.Seq = seq
		page = append(page, r)
	}
	if seq != was {
		t.Put(RequestKey(open), page)
		t.Put(RequestsRow, seq)
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
	r.Failed = append([]store.Attempt(nil), failed...)
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

// The last requests stand in pages, so that a report writes one row or two.
const (
	RequestsRow     = "requests" // the number of the last one
	RequestsPerPage = 25
	RequestPages    = 40  // kept: the last 976 requests at least
	maxRequestText  = 400 // bytes of an id
)
