package accounts

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"
	"weir/pkg/catalog"
	"weir/pkg/routing"

	"weir/pkg/setup"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/tracecontext"
)

// Bounds of a record.
const (
	maxRecords     = 256 // of one report, unless Pool.MaxRecords is set
	maxRefusalText = 300 // bytes of the message of a refusal or of an attempt's failure
	maxRecordText  = 160 // bytes of an id
	maxNetworks    = 128 // of keys, in a report
)

// routeHeaders are the fields of a request that decide on its route, but for those that name
// its session.
var routeHeaders = [...]string{"x-connection-id", "x-provider"}

// tried returns the record of an attempt that failed.
func tried(o *Outcome, f *failure, sentMs int64, took time.Duration) *store.Attempt {
	a := &store.Attempt{
		ConnectionID: o.Connection.ID, Provider: o.Target.Provider.ID, Model: o.Target.ID(),
		Status: f.err.Status, Code: f.err.Code, Place: f.place, SentMs: sentMs, Ms: took.Milliseconds(),
	}
	if f.next || f.blocked || f.effect != nothing {
		a.Text = f.err.Told(maxRefusalText)
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
// answer, which ended at a time, e its error or nil. Both go to the object with the next report.
// It returns the item of the list, an empty one if the request is not recorded.
func (p *Pool) Record(at time.Time, m *snapshot.Machine, r *httpmsg.Request, t *Trace, status int,
	e *apierr.Error) (rec store.Request) {
	if m == nil || !recorded(r) || !strings.HasPrefix(r.Route, "/v1/") && !strings.HasPrefix(r.Route, "/v1beta/") {
		return rec
	}
	attempts := t.Attempts()
	ms := max(at.Sub(r.Start).Milliseconds(), 0)
	rec = store.Request{
		ID: r.ID, At: at.UnixMilli() - ms, KeyID: t.KeyID, Endpoint: r.Route, Model: t.Model, Provider: t.Provider,
		ConnectionID: t.ConnectionID,
		// A copy: the id may be a part of the body, which must not live on with it.
		Asked:  strings.Clone(apierr.Shorten(t.Asked, maxRecordText)),
		Status: status, LatencyMs: ms, FirstMs: t.FirstMs, Finish: t.Finish, SentMs: t.SentMs,
		Attempts: attempts, Failed: t.Failed(),
		Dropped:      t.Dropped,
		RequestBytes: max(t.RequestBytes, r.Length, 0), AnswerBytes: t.AnswerBytes, Captured: t.Captured, Used: t.Used,
	}
	if t.Session != 0 {
		rec.Session = strconv.FormatUint(t.Session, 16)
	}
	for _, name := range routeHeaders {
		if v := r.Header.Get(name); v != "" && len(v) <= maxRecordText {
			if rec.Headers == nil {
				rec.Headers = map[string]string{}
			}
			rec.Headers[name] = strings.Clone(v)
		}
	}
	if parent := tracecontext.Of(r.Header); len(parent) <= maxRecordText { // a later version may be longer
		rec.TraceParent = strings.Clone(parent)
	}
	rec.Tags, rec.Tool = t.Tags(m, r), setup.ToolOf(r.Header.Get("user-agent"))
	if e == nil && t.Err != nil { // what broke a stream
		errors.As(t.Err, &e)
	}
	if e != nil {
		if rec.Error = e.Code; rec.Error == "" {
			rec.Error = e.Type
		}
	}
	rec.Outcome, rec.Reason = outcomeOf(attempts, status, e)
	if attempts == 0 && e != nil && rec.Outcome != store.Left { // nothing of a provider's answer to this request
		rec.Message = apierr.Shorten(redact.Patterns(e.Message), maxRefusalText)
	}
	kind := usage.Row{KeyID: t.KeyID, Endpoint: r.Route}
	if attempts > 0 {
		kind.ConnectionID, kind.Provider, kind.Model = t.ConnectionID, t.Provider, t.Model
	} else {
		untried(&kind, m, rec.Asked)
		rec.Model = kind.Model
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rowOf(m, &kind).Call(ms, t.FirstMs, rec.Outcome, rec.Reason)
	rep := p.reportOf(m.ID)
	call := usage.Row{KeyID: t.KeyID}
	call.Call(ms, t.FirstMs, rec.Outcome, rec.Reason)
	rep.Labels = t.label(rep.Labels, m, r, &call)
	rep.Networks = addNetwork(rep.Networks, m, r, &rec)
	if rep.Requests == nil {
		rep.Requests, p.spare = p.spare, nil
	}
	p.record(rep, &rec)
	return rec
}

// addNetwork adds the network of a request's client to those of its key.
func addNetwork(list []store.KeyNetwork, m *snapshot.Machine, r *httpmsg.Request,
	rec *store.Request) []store.KeyNetwork {
	address := r.Header.Get("cf-connecting-ip")
	if rec.KeyID == "" || address == "" || m.Settings.KeyNetworks == "off" {
		return list
	}
	n := store.KeyNetwork{KeyID: rec.KeyID, Network: store.NetworkOf(address), Tools: []string{rec.Tool}, First: rec.At,
		Last: rec.At, Requests: 1}
	if country := r.Header.Get("cf-ipcountry"); len(country) == 2 && country != "XX" { // XX is not known
		n.Country = strings.Clone(country)
	}
	if n.Network == "" {
		return list
	}
	return store.AddNetwork(list, &n, maxNetworks)
}

// maxRecords returns the largest number of requests of a report.
func (p *Pool) maxRecords() int { return cmp.Or(p.MaxRecords, maxRecords) }

// record adds a request to a report. A list that is full is thinned. The caller has the
// lock.
func (p *Pool) record(r *report, rec *store.Request) {
	if most := p.maxRecords(); len(r.Requests) >= most {
		r.thin(most)
	}
	r.Requests = append(r.Requests, *rec)
}

// thin shortens the list of a report, whose largest length is most.
func (r *report) thin(most int) {
	kept, lost := store.Thin(r.Requests, most*5/8, most/8)
	r.Unlisted += int64(len(r.Requests) - len(kept))
	r.UnlistedFailed += int64(lost)
	r.Requests = kept
}

// outcomeOf returns the outcome of a client's request and, of a refused one, the reason.
// status is that of the answer, e the client's error or what broke the stream, or nil.
func outcomeOf(attempts, status int, e *apierr.Error) (outcome, reason string) {
	switch {
	case e != nil && e.Status == apierr.StatusClientLeft:
		return store.Left, ""
	case e == nil && status < 400:
		return store.Succeeded, ""
	case attempts > 0:
		return store.ProviderFailed, ""
	case e == nil:
		e = &apierr.Error{Status: status}
	}
	if e.Reason != "" {
		return store.Refused, e.Reason
	}
	switch e.Code {
	case CodeBudgetExceeded, CodeUnpriced:
		return store.Refused, store.RefusedByBudget
	case "overloaded", "too_many_sockets":
		return store.Refused, store.RefusedByConcurrency
	case "invalid_api_key", "key_paused", "scope_required":
		return store.Refused, store.RefusedByKey
	case "model_not_found", "model_not_allowed", "no_credentials", "unsupported_endpoint":
		return store.Refused, store.RefusedByModel
	case "rate_limit_exceeded", quotaCode, "account_key_refused", blockedCode, "account_cooling_down",
		"key_unavailable", "token_unavailable":
		return store.NoAccount, ""
	}
	if e.Status >= 500 {
		return store.ProviderFailed, ""
	}
	return store.Refused, store.RefusedByRequest
}

// untried sets the model of a request without attempts: the combo or the model that was
// asked for, if the machine has it. Other names would be rows without bound.
func untried(kind *usage.Row, m *snapshot.Machine, asked string) {
	if asked == "" {
		return
	}
	if c := m.Combo(catalog.PlainName(asked)); c != nil {
		kind.Model = c.Name
		return
	}
	to, err := routing.Resolve(asked, m.ReadOnly(), catalog.LLM, nil)
	var paused *routing.Paused
	switch {
	case err == nil && len(to) > 0:
		kind.Model, kind.Provider = to[0].ID(), to[0].Provider.ID
	case errors.As(err, &paused):
		kind.Model, kind.Provider = paused.Model, paused.Provider
	}
}
