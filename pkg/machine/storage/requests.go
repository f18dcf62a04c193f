package storage

import (
	"bytes"
	"sort"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/tracecontext"
)

// The list of requests is stored in three rings of pages. The latest requests are in the
// first. When its oldest page makes way, the failures of that page go to the second
// ring, and the slowest, the most expensive and a sample of the others to the third. Most
// reports change one row. See docs/decisions/0168-rings-of-requests.md.
const (
	latest = iota
	failures
	notable
	rings
)

// Bounds of the list.
const (
	RequestsRow     = "requests" // a requestList
	RequestsPerPage = 250
	RequestPages    = 5 // of a ring, with the one that is not full
	// MaxRequests is the number of the latest requests that are listed, unless
	// Tx.MaxRequests is set.
	MaxRequests       = (RequestPages - 1) * RequestsPerPage
	KeepRequests      = 30 * Day // then pages are removed, milliseconds
	maxRequestText    = 400      // bytes of an id, a tag or a header field
	maxRequestHeaders = 4
	maxRequestTags    = 8
	maxTool           = 40 // bytes
	// maxPageDetails is the size of a page, in bytes, from which on requests are
	// stored without their failed attempts. A row has at most 1 MiB; the page of the
	// latest requests that is not full is a part of the activity row.
	maxPageDetails    = 128 << 10
	maxFailureDetails = 512 << 10
	notableSample     = 14 // of a page, for the third ring
	scanPages         = 20 // that ScanRequests reads; those of the edge are fewer
)

// requestList is the row of the list of requests. An earlier form is the number of the
// last request.
//
//easyjson:json
type requestList struct {
	Seq   int64       `json:"seq"` // of the last request, listed or not
	Rings [rings]ring `json:"rings"`
	// LostFailureAt is when the last failure was lost that is not listed, Unix
	// milliseconds; 0 for never.
	LostFailureAt int64 `json:"lostFailureAt,omitempty"`
}

// ring has rows of requests in pages of RequestsPerPage, counted from 0 on.
type ring struct {
	Rows  int64 `json:"rows,omitempty"`  // that were ever added
	First int64 `json:"first,omitempty"` // page that is stored
	Base  int64 `json:"base,omitempty"`  // number of the last request that was removed
}

// end returns the page after the last.
func (g *ring) end() int64 { return (g.Rows + RequestsPerPage - 1) / RequestsPerPage }

// kept returns the number of rows that are stored.
func (g *ring) kept() int64 { return g.Rows - g.First*RequestsPerPage }

// RequestCounts are the counts of the list of requests.
type RequestCounts struct {
	Kept  int64 // requests that are listed
	Total int64 // requests since the oldest of them
	// LostFailureAt is when the last failure came in that is not listed, Unix
	// milliseconds; 0 if all are.
	LostFailureAt int64
}

// RequestCounts returns the counts of the list.
func (t *Tx) RequestCounts() RequestCounts {
	l := t.requestList()
	c := RequestCounts{LostFailureAt: l.LostFailureAt}
	base := l.Seq
	for i := range l.Rings {
		if n := l.Rings[i].kept(); n > 0 {
			c.Kept += n
			base = min(base, l.Rings[i].Base)
		}
	}
	c.Total = max(l.Seq-base, c.Kept)
	return c
}

// requestList returns the row of the list.
func (t *Tx) requestList() (l requestList) {
	raw, _ := t.Get(RequestsRow)
	readRequestList(raw, &l)
	return l
}

func readRequestList(raw []byte, l *requestList) {
	if decode(raw, l) == nil {
		return
	}
	*l = requestList{}
	if decode(raw, &l.Seq) != nil {
		return
	}
	g := &l.Rings[latest]
	g.Rows = l.Seq
	g.First = max(g.end()-RequestPages, 0)
	g.Base = g.First * RequestsPerPage
}

// pages returns how many pages of a ring are stored, with the one that is not full.
func (t *Tx) pages(kind int) int64 {
	if kind == latest && t.MaxRequests > 0 {
		return (t.MaxRequests+RequestsPerPage-1)/RequestsPerPage + 1
	}
	return RequestPages
}

// pageKey returns the key of a page. The pages of a ring use a few keys in turn, unless
// the size of the ring is a setting, which may change.
func (t *Tx) pageKey(kind int, page int64) string {
	if kind != latest || t.MaxRequests == 0 {
		page %= RequestPages
	}
	return RequestsRow + ":" + [rings]string{"", "f", "n"}[kind] + strconv.FormatInt(page, 10)
}

// AddRequests adds requests to the list. unlisted is the number of requests that came
// in with them and are not listed, unlistedFailed that of the failures among these. It
// returns those that were added, as they are listed.
func (t *Tx) AddRequests(list []store.Request, unlisted, unlistedFailed int64) (added []store.Request) {
	if len(list) == 0 && unlisted <= 0 {
		return nil
	}
	w := requestWriter{t: t, list: t.requestList()}
	if t.MaxRequests > 0 {
		w.rename()
	}
	was := w.list
	w.list.Seq += max(unlisted, 0)
	added = make([]store.Request, 0, len(list))
	log := logWriter{t: t, names: map[string]string{}, lost: max(unlisted, 0)}
	for i := range list {
		added = append(added, list[i]) // the list is given again if the turn fails
		r := &added[len(added)-1]
		if !TidyRequest(r) {
			added = added[:len(added)-1]
			continue
		}
		w.list.Seq++
		r.Seq = w.list.Seq
		row := Encode(r)
		w.add(latest, r, row)
		log.add(r, row)
	}
	log.end()
	if unlistedFailed > 0 {
		w.list.LostFailureAt = t.Now
	}
	if w.list != was {
		w.end()
	}
	return added
}

// requestWriter adds rows to the rings.
type requestWriter struct {
	t    *Tx
	list requestList
	page [rings][]byte // that are not full, without their last bracket
}

// add adds a request and its row to a ring. A page that begins replaces the oldest.
func (w *requestWriter) add(kind int, r *store.Request, row []byte) {
	g := &w.list.Rings[kind]
	at := g.Rows / RequestsPerPage
	page := w.page[kind]
	if len(page) == 0 && g.Rows%RequestsPerPage == 0 {
		for at-g.First >= w.t.pages(kind) {
			w.remove(kind)
		}
	} else if len(page) == 0 {
		if stored, _ := w.t.Get(w.t.pageKey(kind, at)); len(stored) > 1 {
			page = bytes.Clone(stored[:len(stored)-1])
		}
	}
	details := maxPageDetails
	if kind == failures {
		details = maxFailureDetails
	}
	if len(page) > details {
		bare := *r
		bare.Failed, bare.Dropped, bare.Headers = nil, nil, nil
		row = Encode(&bare)
	}
	if len(page) == 0 {
		page = append(page, '[')
	} else {
		page = append(page, ',')
	}
	page = append(page, row...)
	if g.Rows++; g.Rows%RequestsPerPage == 0 {
		w.t.Set(w.t.pageKey(kind, at), append(page, ']'))
		page = nil
	}
	w.page[kind] = page
}

// remove removes the oldest page of a ring. The requests of it that matter go from the
// first ring to the other rings.
func (w *requestWriter) remove(kind int) {
	g := &w.list.Rings[kind]
	key := w.t.pageKey(kind, g.First)
	page := w.t.requestPage(key)
	w.t.Del(key) // the page that begins may have the same key
	g.First++
	if len(page) == 0 {
		return
	}
	g.Base = page[len(page)-1].Seq
	switch kind {
	case failures:
		w.list.LostFailureAt = max(w.list.LostFailureAt, page[len(page)-1].At)
	case latest:
		page, _ = store.Thin(page, RequestsPerPage, notableSample)
		for i := range page {
			to := notable
			if page[i].HasFailed() {
				to = failures
			}
			w.add(to, &page[i], Encode(&page[i]))
		}
	}
}

// end writes the pages that are not full, and the row of the list.
func (w *requestWriter) end() {
	for kind, page := range w.page {
		if len(page) > 0 {
			w.t.Set(w.t.pageKey(kind, w.list.Rings[kind].Rows/RequestsPerPage), append(page, ']'))
		}
	}
	w.t.Put(RequestsRow, w.list)
}

// rename moves the pages of an earlier form of the list, which used a few keys in turn,
// to their keys.
func (w *requestWriter) rename() {
	if raw, ok := w.t.Get(RequestsRow); !ok || raw[0] == '{' {
		return
	}
	g := &w.list.Rings[latest]
	had := map[string][]byte{}
	for page := g.First; page < g.end(); page++ {
		key := RequestsRow + ":" + strconv.FormatInt(page%RequestPages, 10)
		had[w.t.pageKey(latest, page)], _ = w.t.Get(key)
		w.t.Del(key)
	}
	for key, page := range had {
		w.t.Set(key, page)
	}
	w.t.Put(RequestsRow, w.list)
}

// PruneRequests removes the pages whose requests are all older than KeepRequests.
func (t *Tx) PruneRequests() {
	w := requestWriter{t: t, list: t.requestList()}
	if t.MaxRequests > 0 {
		w.rename()
	}
	was := w.list
	for kind := range w.list.Rings {
		for g := &w.list.Rings[kind]; g.First < g.end(); {
			page := t.requestPage(t.pageKey(kind, g.First))
			if n := len(page); n > 0 && page[n-1].At > t.Now-KeepRequests {
				break
			}
			if g.First == g.end()-1 { // the next row begins a page
				g.Rows = g.end() * RequestsPerPage
			}
			t.Del(t.pageKey(kind, g.First))
			if n := len(page); n > 0 {
				g.Base = page[n-1].Seq
			}
			g.First++
		}
	}
	if w.list != was {
		t.Put(RequestsRow, w.list)
	}
}

// requestRows is a page of requests.
//
//easyjson:json
type requestRows []store.Request

// requestPage returns the requests of a stored page, in the order of their numbers.
func (t *Tx) requestPage(key string) (page []store.Request) {
	if raw, ok := t.Get(key); ok && decode(raw, &page) != nil {
		return nil
	}
	return page
}

// requestCursor is the place of a scan in a ring: the rows of a page that were not
// visited, and the page before it.
type requestCursor struct {
	rows []store.Request
	page int64
}

// ScanRequests calls each with the listed requests whose numbers are below before and
// above after, the newest first, until it returns false. It reads a number of pages at
// most: next is the value of before for the rest, 0 at the end.
func (t *Tx) ScanRequests(before, after int64, each func(r *store.Request) bool) (next int64) {
	l := t.requestList()
	var cursors [rings]requestCursor
	for kind := range cursors {
		cursors[kind].page = l.Rings[kind].end() - 1
	}
	if before <= l.Seq {
		g := &l.Rings[latest]
		later := sort.Search(int(g.end()-g.First), func(i int) bool {
			raw, _ := t.Get(t.pageKey(latest, g.First+int64(i)))
			return gjson.GetBytes(raw, "0.seq").Int() >= before
		})
		cursors[latest].page = g.First + int64(later) - 1
	}
	next = min(before, l.Seq+1)
	for read := 0; ; {
		var newest *requestCursor
		for kind := range cursors {
			c, g := &cursors[kind], &l.Rings[kind]
			for len(c.rows) == 0 && c.page >= g.First {
				if read == scanPages {
					if next == before {
						return 0 // pages are missing
					}
					return next
				}
				c.rows = t.requestPage(t.pageKey(kind, c.page))
				for n := len(c.rows); n > 0 && c.rows[n-1].Seq >= before; n-- {
					c.rows = c.rows[:n-1]
				}
				read++
				c.page--
			}
			if n := len(c.rows); n > 0 && (newest == nil || c.rows[n-1].Seq > newest.rows[len(newest.rows)-1].Seq) {
				newest = c
			}
			if newest != nil && kind == latest {
				break // the rows of the other rings are older
			}
		}
		if newest == nil {
			return 0
		}
		n := len(newest.rows) - 1
		r := &newest.rows[n]
		newest.rows = newest.rows[:n]
		if next = r.Seq; next <= after || !each(r) {
			return 0
		}
	}
}

// FindRequest looks for a request by its id in a number of pages, the newest first, from
// a place on that is 0 at first. more is the next place to look from if it was not
// found, 0 at the end.
func (t *Tx) FindRequest(id string, from int64) (found *store.Request, more int64) {
	l := t.requestList()
	at := int64(0)
	for kind := range l.Rings {
		g := &l.Rings[kind]
		for page := g.end() - 1; page >= g.First; page-- {
			if at++; at <= from {
				continue
			}
			if at > from+scanPages {
				return nil, at - 1
			}
			key := t.pageKey(kind, page)
			if raw, _ := t.Get(key); !bytes.Contains(raw, []byte(id)) {
				continue
			}
			rows := t.requestPage(key)
			for i := range rows {
				if rows[i].ID == id {
					return &rows[i], 0
				}
			}
		}
	}
	return nil, 0
}

// openPage returns the key of the page of the latest requests that has begun and is not
// full, "" for none.
func (t *Tx) openPage() string {
	var l requestList
	readRequestList(t.stored(RequestsRow), &l)
	if l.Rings[latest].Rows%RequestsPerPage == 0 {
		return ""
	}
	return t.pageKey(latest, l.Rings[latest].Rows/RequestsPerPage)
}

// TidyRequest bounds a record and takes credentials out of its texts; false is
// one that makes no sense.
func TidyRequest(r *store.Request) bool {
	if max(len(r.ID), len(r.KeyID), len(r.Endpoint), len(r.Asked), len(r.Model), len(r.Provider), len(r.ConnectionID),
		len(r.Error), len(r.Outcome), len(r.Reason), len(r.Finish)) > maxRequestText ||
		r.Status < 100 || r.Status > 999 || min(r.LatencyMs, r.FirstMs, r.SentMs, r.RequestBytes, r.AnswerBytes) < 0 ||
		min(r.Input, r.Output, r.CacheWrite) < 0 || !(r.CostUSD >= 0 && r.CostUSD < 1e9) {
		return false
	}
	tidy := func(s string) string { return strings.ToValidUTF8(redact.Patterns(s), "") }
	r.Asked, r.Model, r.Error = tidy(r.Asked), tidy(r.Model), tidy(r.Error)
	failed := r.Failed[:min(len(r.Failed), 16)]
	r.Failed = append([]store.Attempt(nil), failed...)
	for i := range r.Failed {
		a := &r.Failed[i]
		if len(a.Text) > rpc.MaxErrorText {
			a.Text = a.Text[:rpc.MaxErrorText]
		}
		a.Model, a.Text, a.Code = tidy(a.Model), tidy(a.Text), tidy(a.Code)
		if len(a.Place) > 3 {
			a.Place = ""
		}
	}
	if _, ok := tracecontext.Parse(r.TraceParent); !ok || len(r.TraceParent) > maxRequestText {
		r.TraceParent = ""
	}
	if len(r.Dropped) > 32 {
		r.Dropped = r.Dropped[:32]
	}
	tags := r.Tags[:min(len(r.Tags), maxRequestTags)]
	r.Tags = nil
	for _, tag := range tags {
		if len(tag) <= maxRequestText {
			r.Tags = append(r.Tags, tidy(tag))
		}
	}
	if len(r.Tool) > maxTool {
		r.Tool = ""
	}
	if len(r.Session) > 16 {
		r.Session = ""
	}
	headers := r.Headers
	r.Headers = nil
	for name, v := range headers {
		if len(headers) > maxRequestHeaders || len(name)+len(v) > maxRequestText {
			continue
		}
		if r.Headers == nil {
			r.Headers = map[string]string{}
		}
		r.Headers[tidy(name)] = tidy(v)
	}
	return true
}
