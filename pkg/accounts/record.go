package accounts

import (
	"errors"
	"strings"
	"time"

	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// Bounds of a record.
const (
	maxRecords    = 64  // of one report; of more within a second the last are kept
	maxRecordText = 160 // bytes of an id or of an attempt's failure
)

// tried is the record of an attempt that failed.
func tried(t *Trace, f *failure, sentMs int64, took time.Duration) store.Attempt {
	a := store.Attempt{
		ConnectionID: t.ConnectionID, Provider: t.Provider, Model: t.Model,
		Status: f.err.Status, Code: f.err.Code, Place: f.place, SentMs: sentMs, Ms: took.Milliseconds(),
	}
	if f.next || f.blocked || f.effect != nothing {
		a.Text = apierr.Shorten(f.err.Message, maxRecordText)
	}
	return a
}

// sinceArrival returns the time from the arrival of a request to a later one, in
// milliseconds.
func sinceArrival(r *httpmsg.Request, at time.Time) int64 {
	if r.Start.IsZero() {
		return 0
	}
	return max(at.Sub(r.Start).Milliseconds(), 0)
}

// Record records a client's POST or WebSocket to a data route after its end: its time is added
// to the usage, and it is listed by GET /api/requests. status is that of the
// answer, e its error or nil. Both go to the object with the next report.
func (p *Pool) Record(m *snapshot.Machine, r *httpmsg.Request, t *Trace, status int, e *apierr.Error) {
	if m == nil || !recorded(r) || !strings.HasPrefix(r.Route, "/v1/") && !strings.HasPrefix(r.Route, "/v1beta/") {
		return
	}
	now := p.Now()
	ms := max(now.Sub(r.Start).Milliseconds(), 0)
	rec := store.Request{
		ID: r.ID, At: now.UnixMilli() - ms, KeyID: t.KeyID, Endpoint: r.Route, Model: t.Model, Provider: t.Provider, ConnectionID: t.ConnectionID,
		// A copy: the id may be a part of the body, which must not live on with it.
		Asked:  strings.Clone(apierr.Shorten(t.Asked, maxRecordText)),
		Status: status, LatencyMs: ms, FirstMs: t.FirstMs, SentMs: t.SentMs, Attempts: t.Attempts, Failed: t.Failed, Dropped: t.Dropped,
		RequestBytes: max(t.RequestBytes, r.Length, 0), AnswerBytes: t.AnswerBytes, Captured: t.Captured, Used: t.Used,
	}
	if e == nil && t.Err != nil { // what broke a stream
		errors.As(t.Err, &e)
	}
	if e != nil {
		if rec.Error = e.Code; rec.Error == "" {
			rec.Error = e.Type
		}
	}
	rec.Outcome, rec.Reason = outcomeOf(t.Attempts, status, e)
	kind := usage.Row{KeyID: t.KeyID, Endpoint: r.Route}
	if t.Attempts > 0 {
		kind.ConnectionID, kind.Provider, kind.Model = t.ConnectionID, t.Provider, t.Model
	} else {
		untried(&kind, m, rec.Asked)
		rec.Model = kind.Model
	}
	p.rowOf(m, &kind).Call(ms, t.FirstMs, rec.Outcome, rec.Reason)
	rep := p.reportOf(m.ID)
	if rep.Requests == nil {
		rep.Requests, p.spare = p.spare, nil
	}
	rep.record(&rec)
}

// record keeps the last requests of a report in a ring.
func (r *report) record(rec *store.Request) {
	if len(r.Requests) < maxRecords {
		r.Requests = append(r.Requests, *rec)
	} else {
		r.Requests[r.recorded%maxRecords] = *rec
	}
	r.recorded++
}

// arrange brings the ring into the order of time.
func (r *report) arrange() []store.Request {
	if over := r.recorded - len(r.Requests); over > 0 {
		at := r.recorded % maxRecords
		r.Requests = append(append(make([]store.Request, 0, maxRecords), r.Requests[at:]...), r.Requests[:at]...)
		r.recorded = len(r.Requests)
	}
	return r.Requests
}
