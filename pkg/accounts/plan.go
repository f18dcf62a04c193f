package accounts

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
	"weir/pkg/wire/vendortext"
)

// Limits of a plan.
const (
	maxAttempts  = 5
	maxUploads   = 2         // attempts with much of a large body
	maxErrorBody = 64 << 10  // bytes of an error that are read
	maxTimeout   = time.Hour // of what a client may ask for
)

// plan is one call on its way through the accounts.
type plan struct {
	*Pool
	call       *Call
	deadline   time.Time // zero for none
	attempts   int
	uploads    int    // attempts that were cut after much of the body had been sent
	turn       uint32 // of round-robin, if turned
	turned     bool
	explains   bool           // the call is not sent
	best       *failure       // the most useful failure so far
	missed     []missed       // accounts that did not serve, by rank; nil without any
	place      snapshot.Block // the refusal of a location that is skipped
	unusable   error          // why an account could not be tried at all
	refusal    error          // the first Unsuitable
	before     *Attempt       // the last one
	absent     error          // the answer of the first endpoint that a server lacks
	later      *noToken       // an account has no token at the moment
	cause      int            // the highest rank of a failure of the current target
	overBudget *apierr.Error  // of the first budget that refuses the call
	reserved   []reservation  // of the key's limits, then for the target that is tried
	limits     int            // of reserved: those of the key's limits
}

// missed are the accounts that did not serve for one cause, because they cool
// down or because they failed in this call.
type missed struct {
	conns []*store.Connection
	since int64         // of the first, Unix milliseconds; 0 when not known
	wait  time.Duration // the smallest; 0 for none
}

// Send tries the accounts of the targets in turn until one returns a 2xx that
// Read accepts. The error is an *apierr.Error fit for the client.
func (p *Pool) Send(ctx context.Context, call *Call) (*Result, error) {
	pl := call.Trace.newPlan()
	pl.Pool, pl.call = p, call
	res, err := pl.send(ctx)
	if err != nil {
		pl.release()
		if pl.refusedBefore() && p.worksAgain(ctx, call.Machine) {
			*pl = plan{Pool: p, call: call}
			if res, err = pl.send(ctx); err != nil {
				pl.release()
			}
		}
	}
	if err != nil && pl.absent != nil && lacksEndpoint(err) {
		err = pl.absent // neither API is there: the client's own counts
	}
	call.Trace.Session = call.Session.Known()
	call.Trace.endPlan(pl)
	return res, err
}

// refusedBefore reports whether nothing was sent because of an earlier refusal of an
// account. A test of its connection may have succeeded since.
func (pl *plan) refusedBefore() bool {
	return pl.attempts == 0 && pl.missed != nil && pl.missed[rankRefused].wait+pl.missed[rankCredit].wait > 0
}

// worksAgain asks the object of a machine for what has changed, and reports whether the
// snapshot has learned of it.
func (p *Pool) worksAgain(ctx context.Context, m *snapshot.Machine) bool {
	if p.Confirm == nil {
		return false
	}
	observed := m.Observed()
	now, err := p.Confirm(ctx, m.ID)
	return err == nil && now == m && m.Observed() != observed
}

func (pl *plan) send(ctx context.Context) (*Result, error) {
	call := pl.call
	pl.limit()
	pin := call.Request.Header.Get("x-connection-id")
	if pin != "" && !pinned(call, pin) {
		return nil, apierr.Invalid("", "The header x-connection-id names no active connection of this model.")
	}
	for i := 0; i >= 0 && i < len(call.Targets); {
		class := routing.ContextLength
		if !call.Targets[i].TooLong {
			var res *Result
			var err error
			if res, class, err = pl.target(ctx, i, pin); res != nil || err != nil {
				return res, err
			}
		}
		pl.releaseTarget()
		i = routing.After(call.Targets, i, class)
	}
	return nil, pl.failed()
}

// target tries the accounts of a target. Without a result and an error, the class
// of the failure decides on the next target.
func (pl *plan) target(ctx context.Context, i int, pin string) (*Result, routing.Class, error) {
	to := &pl.call.Targets[i]
	pl.cause = rankNone
	var few [8]candidate
	ready := pl.order(few[:0], to, pin)
	if len(ready) > 0 {
		if err := pl.admit(ctx, to); err != nil {
			return nil, routing.Final, err
		}
		if !pl.afford(ctx, to) {
			return nil, routing.Limit, nil
		}
	}
	for j := range ready {
		ready[j].alone = len(ready) == 1 && routing.After(pl.call.Targets, i, routing.Unavailable) < 0
		res, f := pl.account(ctx, to, &ready[j])
		if res != nil {
			pl.affinity(i, res, pin)
			return res, routing.Final, nil
		}
		if f == nil {
			continue // it could not be tried
		}
		pl.keep(f, ready[j].conn)
		if !f.next {
			if pl.attempts < maxAttempts && routing.After(pl.call.Targets, i, f.class) >= 0 {
				return nil, f.class, nil
			}
			return nil, routing.Final, pl.ended(f)
		}
		if pl.attempts >= maxAttempts {
			return nil, routing.Final, pl.failed()
		}
	}
	return nil, classOf(pl.cause), nil
}

// limit finds the deadline of the plan. On the edge, reading the clock is a call of
// the host.
func (pl *plan) limit() {
	if pl.call.Timeout > 0 || pl.call.Request.Header.Get("x-stainless-timeout") != "" {
		pl.deadline = Deadline(pl.call.Request, pl.call.Timeout, pl.Now())
	}
}

// Deadline returns when a request must be over: the nearer of the client's
// X-Stainless-Timeout, in seconds, and a limit of the endpoint's own, both from
// the request's start on. The zero time means never; limit 0 means no limit.
func Deadline(r *httpmsg.Request, limit time.Duration, now time.Time) time.Time {
	left := limit
	if v := r.Header.Get("x-stainless-timeout"); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s <= maxTimeout.Seconds() {
			if d := time.Duration(s * float64(time.Second)); left == 0 || d < left {
				left = d
			}
		}
	}
	if left <= 0 {
		return time.Time{}
	}
	if at := r.Start; !at.IsZero() && at.Before(now) && now.Sub(at) < left {
		now = at
	}
	return now.Add(left)
}

// account tries one account, once more after a token refresh, or after a passing
// failure if there is no other account. It returns the result, or the failure that
// decides what comes next, or neither if the account could not be tried.
func (pl *plan) account(ctx context.Context, to *routing.Target, c *candidate) (*Result, *failure) {
	call, conn := pl.call, c.conn
	if c.trial {
		model, now := to.Model, pl.Now().UnixMilli()
		if c.whole {
			model = ""
		}
		if s := call.Machine.State(conn.ID, model); !call.Machine.Trial(conn.ID, model, now) {
			left := time.Duration(s.Left(now)) * time.Millisecond
			pl.miss(rankOf(s.Reason), conn, s.Since, max(left, time.Second))
			return nil, nil
		}
		defer call.Machine.TrialOver(conn.ID, model)
	}
	var token use
	for {
		cred, err := pl.credential(ctx, conn, &token)
		if err != nil {
			var none *noToken
			if errors.As(err, &none) {
				pl.wait(none)
			} else {
				pl.unusable = err
			}
			return nil, nil
		}
		a, f := pl.build(to, conn, cred)
		if a == nil {
			return nil, f
		}
		if call.Machine.AnyBlocked() && pl.blocked(a, to, conn) {
			return nil, nil
		}
		if !pl.deadline.IsZero() && !pl.Now().Before(pl.deadline) {
			return nil, &failure{err: timedOut(false)}
		}
		pl.attempts++
		pl.before = a
		a.Target, a.Connection, a.reserved = to, conn, pl.reserved
		t := call.Trace
		t.Attempts++
		t.Provider, t.ConnectionID, t.Model = to.Provider.ID, conn.ID, to.ID()
		pl.dropped(a)
		began := pl.Now()
		counted := call.Machine.Uses(store.LeastBusy)
		if counted {
			call.Machine.Begin(conn.ID, to.Model, began.UnixMilli())
		}
		resp, f := pl.try(ctx, a, cred)
		if counted && f != nil {
			call.Machine.End(conn.ID, to.Model, began.UnixMilli())
		}
		if f == nil {
			return pl.accepted(a, resp, cred, began, counted), nil
		}
		t.Err, a.Failure = f.err, f.err
		t.Failed = append(t.Failed, tried(t, f, sinceArrival(call.Request, began), pl.Now().Sub(began)))
		if a.unresolved && a.Estimator == nil && call.Estimate.Media != nil { // billed by what was ordered
			a.Used.Media, a.Used.Tokens = call.Estimate.Media, llm.Usage{Estimated: true}
		}
		a.unresolved = a.unresolved && (a.Estimator != nil || a.Used.Media != nil)
		if f.err.Status != 499 || a.unresolved {
			pl.used(call.Machine, call.Request, call.Trace, a, f.err.Status != 499)
		}
		a.Retry = f.retry(a, call.Billable)
		if pl.attempts >= maxAttempts || a.Retry == Refreshed && !(renewable(conn) &&
			pl.refresh(ctx, call.Machine.ID, conn, &token)) {
			a.Retry = NoRetry
		}
		if a.Retry == OtherAPI && pl.absent == nil {
			pl.absent = f.err
		}
		if a.Retry == NoRetry && f.passing && c.alone && pl.attempts < maxAttempts {
			a.Retry, c.alone = Again, false
		}
		if a.Retry != NoRetry {
			continue
		}
		if f.refresh && token.wait > 0 {
			// The token is old, and refreshing it failed for a temporary
			// reason: the account is not at fault.
			f = &failure{err: (&noToken{token.wait}).shown(), next: true}
			t.Failed[len(t.Failed)-1].Code = f.err.Code
		}
		pl.note(call.Machine, conn.ID, to.Model, f)
		return nil, f
	}
}

// blocked reports whether the provider refuses this location at the address of an
// attempt. The account is left out then.
func (pl *plan) blocked(a *Attempt, to *routing.Target, conn *store.Connection) bool {
	b, ok := pl.call.Machine.Blocked(to.Provider.ID, provider.Origin(a.Request.URL), pl.Now().UnixMilli())
	if ok {
		pl.place = b
		pl.miss(rankBlocked, conn, 0, 0)
	}
	return ok
}

// accepted records the answer of an attempt that began at a time, and returns the Result.
// counted reports that the attempt counts as a call under way.
func (pl *plan) accepted(a *Attempt, resp *upstream.Response, cred *snapshot.Opened, began time.Time,
	counted bool) *Result {
	call, to, conn := pl.call, a.Target, a.Connection
	t := call.Trace
	if call.Machine.Uses(store.Fastest) {
		now := pl.Now()
		call.Machine.Took(conn.ID, to.Model, call.Session != nil && call.Session.Stream, now.Sub(began), now.UnixMilli())
	}
	t.Err, t.SentMs = nil, sinceArrival(call.Request, began)
	pl.dropped(a)
	pl.quotas(a, resp.Header, nil, began)
	_, whole := resp.Body.(*stream.Bytes)
	switch {
	case whole:
		if resp.Socket == nil {
			pl.used(call.Machine, call.Request, t, a, false)
		}
		pl.succeeded(call.Machine, conn.ID, to.Model)
	case a.Used.Price == Later:
		leaveUnbilled(t, call.Request, a)
	}
	res := t.newResult()
	*res = Result{Response: resp, Target: to, Connection: conn, Attempt: a, pool: pl.Pool, machine: call.Machine,
		cred: cred, request: call.Request, trace: t}
	if counted {
		if res.began = began.UnixMilli(); whole {
			res.ended()
		}
	}
	return res
}

// affinity records whether the account of the session answered. target is the index of
// the target that did.
func (pl *plan) affinity(target int, res *Result, pin string) {
	call := pl.call
	if pin != "" {
		return
	}
	first := 0
	for first < target && call.Targets[first].TooLong {
		first++
	}
	o := pl.ordering(&call.Targets[first], 0)
	home := o.home() // before By, which is empty until the session was asked for
	if call.Session == nil || call.Session.By() == "" {
		return
	}
	call.Trace.Affinity = Kept
	if target > first || home != nil && home.ID != res.Connection.ID {
		call.Trace.Affinity = Moved
	}
}

// credential returns what is presented: the call's own credential, or the account's.
func (pl *plan) credential(ctx context.Context, conn *store.Connection, token *use) (*snapshot.Opened, error) {
	if own := pl.call.Credential; own != nil {
		return &snapshot.Opened{Credential: *own}, nil
	}
	return pl.openKept(ctx, pl.call.Machine, conn, token)
}

// dropped sets what the last attempt left out and added. A further call for the same
// request, such as a poll, leaves out nothing and does not count.
func (pl *plan) dropped(a *Attempt) {
	if len(a.Dropped) > 0 || pl.attempts > 1 {
		pl.call.Trace.Dropped = a.Dropped
	}
	if len(a.CacheMarks) > 0 || pl.attempts > 1 {
		pl.call.Trace.CacheMarks = a.CacheMarks
	}
}

// try makes one attempt. It returns the answer, or the failure.
func (pl *plan) try(ctx context.Context, a *Attempt, cred *snapshot.Opened) (resp *upstream.Response, f *failure) {
	call, to := pl.call, a.Target
	resp, err := upstream.Do(ctx, pl.Doer, &a.Request)
	headed := err == nil
	if headed {
		if f = pl.answer(a, resp, &cred.Credential); f == nil && call.Read != nil {
			err = call.Read(a, resp)
			if f = failureOf(err, to.Provider, call.Billable); f != nil {
				clean(f.err, cred.Credential)
				resp.Body.Close()
			}
		}
	} else {
		f = failureOf(err, to.Provider, call.Billable)
	}
	a.unresolved = unresolved(err, headed)
	if f != nil && call.Repeats && !call.Billable && f.err.RetryAfter == 0 {
		f.passing = !headed && f.effect == unstable || headed && f.effect == unsteady && resp.Status == 503
	}
	if a.Fault != nil {
		if err := a.Fault(); err != nil {
			if f == nil {
				resp.Body.Close()
			}
			f = failureOf(err, to.Provider, false)
			f.next, f.refresh, f.passing, f.effect, f.class = false, false, false, nothing, routing.Final
			a.unresolved = false // the request did not go up whole
		}
	}
	if f != nil && tooLate(f.err, headed) {
		f.next = false
	}
	if f != nil && errors.Is(f.err, upstream.ErrSent) {
		if pl.uploads++; pl.uploads >= maxUploads {
			f.next, f.passing = false, false
		}
	}
	if f != nil && f.effect == badKey && call.Credential != nil {
		f.next, f.refresh, f.effect = false, false, nothing
	}
	return resp, f
}

// unresolved reports whether a provider may have done the work of an attempt that ended
// with an error: no answer came in time, the client did not wait for one, or it broke off.
// headed reports that an answer began. A connection that breaks before is not one: the
// platform does not distinguish it from one that was refused.
func unresolved(err error, headed bool) bool {
	if err == nil {
		return false
	}
	if headed && errors.Is(err, upstream.ErrNetwork) {
		return true
	}
	for _, e := range [...]error{
		upstream.ErrTimeout, upstream.ErrCut, upstream.ErrCanceled,
		stream.ErrTimeout, stream.ErrIdle, stream.ErrReset, stream.ErrClient, stream.ErrTooLarge, stream.ErrMemory,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// tooLate reports whether an answer began but did not arrive in time. Another
// account would only repeat the same work.
func tooLate(e *apierr.Error, headed bool) bool {
	return errors.Is(e, stream.ErrTimeout) || headed && errors.Is(e, upstream.ErrTimeout)
}

// build returns one attempt. Without one, the failure ends the plan, or is nil
// when only this account cannot be used.
func (pl *plan) build(to *routing.Target, conn *store.Connection, cred *snapshot.Opened) (*Attempt, *failure) {
	a, err := pl.call.Build(to, conn, pl.before)
	if err == nil {
		err = cred.Authorize(&a.Request.Header, to.Provider, a.Base, conn)
		if err == provider.ErrMustSign {
			err = provider.Sign(&a.Request, to.Provider, a.Base, conn, cred.Credential, pl.Now())
		}
	}
	if err != nil {
		return nil, pl.unbuilt(err)
	}
	req := &a.Request
	hop, err := provider.Hop(pl.call.Request.Header)
	if err != nil {
		return nil, &failure{err: apierr.New(508, "loop_detected", "The call has passed too many gateways.")}
	}
	req.Header.Set(hop.Name, hop.Value)
	req.Memory = pl.call.Request.Memory
	req.Fresh = pl.before != nil && pl.before.Failure != nil && errors.Is(pl.before.Failure, upstream.ErrNetwork)
	s := &pl.call.Machine.Settings
	if req.HeaderTimeout == 0 && req.Timeout == 0 {
		req.HeaderTimeout = s.FirstByte()
	}
	if req.Idle == 0 {
		req.Idle = s.Idle()
	}
	if pl.call.Billable {
		req.Outlive = true
	}
	if !pl.deadline.IsZero() {
		left := max(pl.deadline.Sub(pl.Now()), time.Millisecond)
		req.HeaderTimeout = sooner(req.HeaderTimeout, left)
		if req.MaxBody > 0 {
			req.Timeout = sooner(req.Timeout, left)
		}
	}
	return a, nil
}

// unbuilt judges why a request could not be made: nil when only this account
// cannot be used, else the failure that ends the plan.
func (pl *plan) unbuilt(err error) *failure {
	var shown *apierr.Error
	var other *unsuitable
	switch {
	case errors.As(err, &other):
		if pl.refusal == nil {
			pl.refusal = other.err
		}
		pl.unusable = provider.ErrNoEndpoint
		pl.cause = max(pl.cause, rankMember)
		return nil
	case errors.As(err, &shown):
		return &failure{err: shown}
	case errors.Is(err, provider.ErrNoEndpoint), errors.Is(err, provider.ErrIncomplete),
		errors.Is(err, provider.ErrNoCredential), errors.Is(err, provider.ErrHeader):
		pl.unusable = err
		return nil
	}
	return &failure{err: &apierr.Error{Status: 500, Type: "server_error", Message: "Internal error.", Err: err}}
}

func sooner(limit, left time.Duration) time.Duration {
	if limit == 0 || left < limit {
		return left
	}
	return limit
}

// answer judges an answer by its status. It returns nil for a 2xx. A redirect,
// a missing body and an invalid status become a 502.
func (pl *plan) answer(a *Attempt, resp *upstream.Response, cred *provider.Credential) *failure {
	to, req, s := a.Target, &a.Request, resp.Status
	post := req.Method == "" || req.Method == "POST"
	switch {
	case post && (s == 204 || s == 205 || s == 304):
		resp.Body.Close()
		return strange("empty_upstream", "the provider answered without a body", pl.call.Billable)
	case s >= 200 && s < 300, resp.Socket != nil:
		return nil
	case s >= 300 && s < 400:
		resp.Body.Close()
		return strange("upstream_redirect", "the provider answered with a redirect, which is not followed", pl.call.Billable)
	case s < 200 || s > 599:
		resp.Body.Close()
		return strange("bad_upstream_status", "the provider answered with no valid status", pl.call.Billable)
	}
	raw, err := stream.ReadAll(resp.Body, maxErrorBody)
	if err != nil {
		raw = nil
	}
	now := pl.Now()
	e := upstreamError(s, resp.Header, raw, *cred)
	e.RetryAfter, _ = statedWait(resp.Header, raw, now)
	var used exhausted
	if s == 429 || s == 402 {
		used = pl.quotas(a, resp.Header, raw, now)
		e.RetryAfter = max(e.RetryAfter, used.wait)
	}
	for _, spent := range to.Provider.Spent {
		if s == spent {
			e.Status, e.Type, e.Code = 402, apierr.TypeOf(402), quotaCode
		}
	}
	means := meaningOf(s, e.Code, raw)
	if blockedHere(s, resp.Header, raw, means) {
		e.Code, e.RetryAfter = blockedCode, 0
		b := snapshot.Block{Status: s, Message: e.Message}
		pl.call.Machine.Block(to.Provider.ID, provider.Origin(req.URL), b, now.UnixMilli())
		return &failure{err: e, blocked: true, place: placeOf(resp.Header), next: !pl.call.Billable || s == 403}
	}
	stand(e, means)
	f := judge(e, e.Code == quotaCode, pl.call.Billable)
	if s == 403 && to.Provider.Cloud == provider.Vertex {
		f.effect = nothing // a permission of one publisher's model, such as one not enabled in Model Garden
	}
	if means == vendortext.ContentFilter {
		f = &failure{err: e} // with 403, too, the account is not at fault
	}
	if !f.next && !pl.call.Billable {
		f.class = classOfAnswer(s, means)
	}
	f.weekly = e.RetryAfter > store.MaxCooldown && (used.weekly || weekly(resp.Header, raw))
	f.whole = used.account
	if !f.next && f.effect == nothing || f.effect == unsteady && pl.call.Billable {
		f.body = raw
		pass(e, raw, *cred, a.Errors)
	}
	if means == vendortext.ContextLength && !f.next {
		e.Code, e.VendorCode = CodeContextLength, ""
	}
	return f
}

// least returns the smaller of two waits; 0 means no wait is known.
func least(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// keep notes a failure, unless a more useful one is known.
func (pl *plan) keep(f *failure, conn *store.Connection) {
	r := f.rank()
	pl.cause = max(pl.cause, r)
	if r > rankMember && r < rankTransient {
		pl.miss(r, conn, pl.Now().UnixMilli(), f.cooled)
	}
	if pl.best == nil || r >= pl.best.rank() {
		pl.best = f
	}
}

// wait notes an account without a token, the one with the shortest wait.
func (pl *plan) wait(n *noToken) {
	if pl.later == nil || n.wait < pl.later.wait {
		pl.later = n
	}
}

// miss notes an account that does not serve.
func (pl *plan) miss(rank int, conn *store.Connection, since int64, wait time.Duration) {
	pl.cause = max(pl.cause, rank)
	if pl.missed == nil {
		pl.missed = make([]missed, ranks)
	}
	m := &pl.missed[rank]
	m.wait = least(m.wait, wait)
	if slices.Contains(m.conns, conn) {
		return
	}
	if m.conns == nil {
		m.since = since
	}
	m.conns = append(m.conns, conn)
}

// ended returns the client's error when a failure ends the plan.
func (pl *plan) ended(f *failure) error {
	if f.effect == spent || f.effect == badKey || f.blocked {
		pl.best = f
		return pl.refused(f.rank())
	}
	return f.err
}
