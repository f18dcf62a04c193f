package storage

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/redact"
)

// RequestKey returns the key of a page of requests. The pages use a few keys in
// turn.
func RequestKey(page int64) string {
	return fmt.Sprintf("%s:%d", RequestsRow, page%RequestPages)
}

// AddRequests adds requests to the list. A page that begins replaces the oldest.
func (t *Tx) AddRequests(list []store.Request) {
	var seq int64
	t.Load(RequestsRow, &seq)
	was := seq
	var page []byte
	for i := range list {
		r := list[i]
		if !tidyRequest(&r) {
			continue
		}
		if seq == was || seq%RequestsPerPage == 0 {
			page = t.begunPage(seq)
		}
		r.Seq = seq + 1
		if len(page) > maxPageDetails {
			r.Failed, r.Dropped = nil, nil
		}
		if len(page) == 0 {
			page = append(page, '[')
		} else {
			page = append(page, ',')
		}
		page = append(page, Encode(r)...)
		if seq++; seq%RequestsPerPage == 0 {
			t.Set(RequestKey((seq-1)/RequestsPerPage), append(page, ']'))
		}
	}
	if seq == was {
		return
	}
	if seq%RequestsPerPage != 0 {
		t.Set(RequestKey(seq/RequestsPerPage), append(page, ']'))
	}
	t.Put(RequestsRow, seq)
}

// begunPage returns the page of the request after seq without its last bracket, nil
// if that begins a page.
func (t *Tx) begunPage(seq int64) []byte {
	first := seq - seq%RequestsPerPage + 1
	page, _ := t.Get(RequestKey(seq / RequestsPerPage))
	if n := len(page); n > 1 && gjson.GetBytes(page, "0.seq").Int() == first {
		return bytes.Clone(page[:n-1])
	}
	return nil
}

// openPage returns the key of the page that has begun and is not full, "" for none.
func (t *Tx) openPage() string {
	var seq int64
	if raw, ok := t.stored(RequestsRow); !ok || decode(raw, &seq) != nil || seq%RequestsPerPage == 0 {
		return ""
	}
	return RequestKey(seq / RequestsPerPage)
}

// tidyRequest bounds a record and takes credentials out of its texts; false is
// one that makes no sense.
func tidyRequest(r *store.Request) bool {
	if max(len(r.ID), len(r.KeyID), len(r.Endpoint), len(r.Asked), len(r.Model), len(r.Provider), len(r.ConnectionID), len(r.Error), len(r.Outcome), len(r.Reason)) > maxRequestText ||
		r.Status < 100 || r.Status > 999 || min(r.LatencyMs, r.FirstMs, r.SentMs, r.RequestBytes, r.AnswerBytes) < 0 || r.Input < 0 || r.Output < 0 || !(r.CostUSD >= 0 && r.CostUSD < 1e9) {
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
		if len(a.Place) > 3 {
			a.Place = ""
		}
	}
	if len(r.Dropped) > 32 {
		r.Dropped = r.Dropped[:32]
	}
	return true
}

// The last requests stand in pages: most reports change one row.
const (
	RequestsRow     = "requests" // the number of the last one
	RequestsPerPage = 250
	RequestPages    = 5
	MaxRequests     = (RequestPages - 1) * RequestsPerPage // that are listed
	maxRequestText  = 400                                  // bytes of an id
	// maxPageDetails is the size of a page, in bytes, from which on requests are
	// stored without their failed attempts: a row has at most 1 MiB.
	maxPageDetails = 128 << 10
)
