package accounts

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/tracecontext"
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
	call     *Call
	deadline time.Time // zero for none
	outcomes outcomes
	before   *Attempt // the last one
	turn     uint32   // of round-robin, if turned
	turned   bool
	explains bool          // the call is not sent
	reserved []reservation // of the key's limits, then for the target that is tried
	limits   int           // of reserved: those of the key's limits
}

// Send tries the accounts of the targets in turn until one returns a 2xx that
// Read accepts. The error is an *apierr.Error fit for the client.
func (p *Pool) Send(ctx context.Context, call *Call) (*Result, error) {
	pl := &plan{Pool: p, call: call}
	res, err := pl.send(ctx)
	if err != nil {
		pl.release()
		if pl.refusedBefore() && p.worksAgain(ctx, call.Machine) {
			pl = &plan{Pool: p, call: call}
			if res, err = pl.send(ctx); err != nil {
				pl.release()
			}
		}
	}
	if err != nil && lacksEndpoint(err) {
		if first := pl.outcomes.absent(); first != nil {
			err = first // neither API is there: the client's own counts
		}
	}
	call.Trace.Session = call.Session.Known()
	call.Trace.add(pl.outcomes)
	return res, err
}

// refusedBefore reports whether nothing was sent because of an earlier refusal of an
// account. A test of its connection may have succeeded since.
func (pl *plan) refusedBefore() bool {
	for i := range pl.outcomes {
		if o := &pl.outcomes[i]; (o.cause == rankRefused || o.cause == rankCredit) && o.wait > 0 {
			return pl.outcomes.attempts() == 0
		}
	}
	return false
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
		return nil, apierr.Invalid("", "The header x-connection-id names no active account of this model. Leave it out, or use an id of GET /api/providers.")
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
	to, from := &pl.call.Targets[i], len(pl.outcomes)
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
		switch {
		case res != nil:
			pl.affinity(i, res, pin)
			return res, routing.Final, nil
		case f == nil: // it could not be tried
		case !f.next && pl.outcomes.attempts() < maxAttempts && routing.After(pl.call.Targets, i, f.class) >= 0:
			return nil, f.class, nil
		case !f.next:
			return nil, routing.Final, pl.ended(f)
		case pl.outcomes.attempts() >= maxAttempts:
			return nil, routing.Final, pl.failed()
		}
	}
	return nil, classOf(pl.outcomes[from:].cause()), nil
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
			pl.leaveOut(to, conn, s, max(left, time.Second))
			return nil, nil
		}
		defer call.Machine.TrialOver(conn.ID, model)
	}
	var token use
	for {
		cred, err := pl.credential(ctx, conn, &token)
		if err != nil {
			pl.outcomes = append(pl.outcomes, Outcome{Target: to, Connection: conn, cause: rankNone, err: err})
			return nil, nil
		}
		a, err := pl.build(to, conn, cred)
		if err != nil {
			return nil, pl.unsent(to, conn, err)
		}
		res, f := pl.attempt(ctx, a, cred)
		if res != nil {
			return res, nil
		}
		o := &pl.outcomes[len(pl.outcomes)-1]
		a.Retry = pl.retry(ctx, a, f, c, &token)
		if o.retry = a.Retry; o.retry != NoRetry {
			continue
		}
		if f.refresh && token.wait > 0 {
			// The token is old, and refreshing it failed for a temporary
			// reason: the account is not at fault.
			f = &failure{err: (&noToken{token.wait}).shown(), next: true}
			o.failure, o.Failed.Code = f, f.err.Code
		}
		pl.note(call.Machine, conn.ID, to.Model, f)
		if o.cause = f.rank(); o.cause < rankTransient {
			o.since, o.wait = pl.Now().UnixMilli(), f.cooled
		}
		return nil, f
	}
}

// attempt makes one attempt with an account. It returns the result, or the failure.
func (pl *plan) attempt(ctx context.Context, a *Attempt, cred *snapshot.Opened) (*Result, *failure) {
	call, to, conn := pl.call, a.Target, a.Connection
	pl.before = a
	pl.outcomes = append(pl.outcomes, Outcome{Target: to, Connection: conn, Sent: true, cause: rankNone})
	t := call.Trace
	t.Provider, t.ConnectionID, t.Model = to.Provider.ID, conn.ID, to.ID()
	pl.dropped(a)
	began := pl.Now()
	counted := call.Machine.Uses(store.LeastBusy)
	if counted {
		call.Machine.Begin(conn.ID, to.Model, began.UnixMilli())
	}
	resp, f := pl.try(ctx, a, cred)
	if f == nil {
		return pl.accepted(a, resp, cred, began, counted), nil
	}
	if counted {
		call.Machine.End(conn.ID, to.Model, began.UnixMilli())
	}
	if f.answered || f.strange || f.blocked {
		f.err.Provider = to.Provider.ID
	}
	t.Err, a.Failure = f.err, f.err
	o := &pl.outcomes[len(pl.outcomes)-1]
	o.failure, o.Failed = f, tried(o, f, sinceArrival(call.Request, began), pl.Now().Sub(began))
	if a.unresolved && a.Estimator == nil && call.Estimate.Media != nil { // billed by what was ordered
		a.Used.Media, a.Used.Tokens = call.Estimate.Media, llm.Usage{Estimated: true}
	}
	a.unresolved = a.unresolved && (a.Estimator != nil || a.Used.Media != nil)
	if f.err.Status != 499 {
		pl.used(call.Machine, call.Request, t, a, f.err)
	} else if a.unresolved {
		pl.used(call.Machine, call.Request, t, a, nil)
	}
	return nil, f
}

// retry decides whether the account of a failed attempt is asked once more, and why.
func (pl *plan) retry(ctx context.Context, a *Attempt, f *failure, c *candidate, token *use) Retry {
	again := f.retry(a, pl.call.Billable)
	left := pl.outcomes.attempts() < maxAttempts
	switch {
	case !left, again == Refreshed && !(renewable(c.conn) && pl.refresh(ctx, pl.call.Machine.ID, c.conn, token)):
		again = NoRetry
	}
	if again == NoRetry && f.passing && c.alone && left {
		again, c.alone = Again, false
	}
	return again
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
			pl.used(call.Machine, call.Request, t, a, nil)
		}
		pl.succeeded(call.Machine, conn.ID, to.Model)
	case a.Used.Price == Later:
		leaveUnbilled(call.Machine, t, call.Request, a)
	}
	res := &Result{Response: resp, Target: to, Connection: conn, Attempt: a, pool: pl.Pool, machine: call.Machine,
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
	if len(a.Dropped) > 0 || pl.outcomes.attempts() > 1 {
		pl.call.Trace.Dropped = a.Dropped
	}
	if len(a.CacheMarks) > 0 || pl.outcomes.attempts() > 1 {
		pl.call.Trace.CacheMarks = a.CacheMarks
	}
}

// try makes one attempt. It returns the answer, or the failure.
func (pl *plan) try(ctx context.Context, a *Attempt, cred *snapshot.Opened) (resp *upstream.Response, f *failure) {
	call := pl.call
	resp, err := upstream.Do(ctx, pl.Doer, &a.Request)
	a.headed = err == nil
	if a.headed {
		if f = pl.answer(a, resp, &cred.Credential); f == nil && call.Read != nil {
			err = call.Read(a, resp)
			if f = failureOf(err, a, call.Billable); f != nil {
				clean(f.err, cred.Credential)
				resp.Body.Close()
			}
		}
	} else {
		f = failureOf(err, a, call.Billable)
	}
	a.unresolved = unresolved(err, a.headed)
	if f != nil && call.Repeats && !call.Billable && f.err.RetryAfter == 0 {
		f.passing = !a.headed && f.effect == unstable || a.headed && f.effect == unsteady && resp.Status == 503
	}
	if a.Fault != nil {
		if err := a.Fault(); err != nil {
			if f == nil {
				resp.Body.Close()
			}
			f = failureOf(err, a, false)
			f.next, f.refresh, f.passing, f.effect, f.class = false, false, false, nothing, routing.Final
			a.unresolved = false // the request did not go up whole
		}
	}
	if f != nil && tooLate(f.err, a.headed) {
		f.next = false
	}
	if f != nil && errors.Is(f.err, upstream.ErrSent) && pl.outcomes.uploads()+1 >= maxUploads {
		f.next, f.passing = false, false
	}
	if f != nil && call.Credential != nil && (f.effect == badKey || f.rank() == rankModel) {
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

// build returns an attempt for an account, or why it cannot be made now; see unsent.
func (pl *plan) build(to *routing.Target, conn *store.Connection, cred *snapshot.Opened) (*Attempt, error) {
	a, err := pl.call.Build(to, conn, pl.before)
	if err == nil {
		err = cred.Authorize(&a.Request.Header, to.Provider, a.Base, conn)
		if err == provider.ErrMustSign {
			err = provider.Sign(&a.Request, to.Provider, a.Base, conn, cred.Credential, pl.Now())
		}
	}
	if err != nil {
		return nil, err
	}
	req := &a.Request
	hop, err := provider.Hop(pl.call.Request.Header)
	if err != nil {
		return nil, apierr.New(508, "loop_detected", "The call has passed too many gateways. Remove this gateway's own address from its accounts.")
	}
	req.Header.Set(hop.Name, hop.Value)
	if hosts := pl.call.Machine.Settings.TraceUpstream; len(hosts) > 0 {
		pl.trace(req, hosts)
	}
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
	a.Target, a.Connection, a.reserved = to, conn, pl.reserved
	err = pl.allowed(a)
	a.settable = req.HeaderTimeout == s.FirstByte() || req.HeaderTimeout == s.FirstEvent()
	return a, err
}

// trace adds the trace context of the call to an attempt for one of the hosts. The parent
// is the span of the attempt.
func (pl *plan) trace(req *upstream.Request, hosts []string) {
	_, host, _ := strings.Cut(provider.Origin(req.URL), "://")
	if !slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return
	}
	r := pl.call.Request
	parent := tracecontext.Of(r.Header)
	c := tracecontext.ForRequest(r.ID, parent)
	c.Span = tracecontext.SpanOf(r.ID, pl.call.Trace.Attempts()+pl.outcomes.attempts()+1)
	req.Header.Set(tracecontext.Parent, c.Field())
	if state := tracecontext.StateOf(r.Header); parent != "" && state != "" {
		req.Header.Set(tracecontext.State, state)
	}
}

// allowed returns why an attempt may not be sent now: its provider refuses this location, or
// the call's time is over. It limits the attempt to what is left of that.
func (pl *plan) allowed(a *Attempt) error {
	if m := pl.call.Machine; m.AnyBlocked() {
		b, ok := m.Blocked(a.Target.Provider.ID, provider.Origin(a.Request.URL), pl.Now().UnixMilli())
		if ok {
			return &blocked{b}
		}
	}
	if pl.deadline.IsZero() {
		return nil
	}
	left := pl.deadline.Sub(pl.Now())
	if left <= 0 {
		return timedOut("The time limit of the request was over before an account answered. Send it again with a longer timeout.", false)
	}
	a.Request.HeaderTimeout = sooner(a.Request.HeaderTimeout, left)
	if a.Request.MaxBody > 0 {
		a.Request.Timeout = sooner(a.Request.Timeout, left)
	}
	return nil
}

// blocked is why nothing is sent to a provider that refuses this location.
type blocked struct{ snapshot.Block }

func (b *blocked) Error() string { return b.Message }

// unsent notes why no request was sent with an account. It returns nil when only this account
// cannot be used, else the failure that ends the plan.
func (pl *plan) unsent(to *routing.Target, conn *store.Connection, err error) *failure {
	o := Outcome{Target: to, Connection: conn, cause: rankNone, err: err}
	var shown *apierr.Error
	var other *unsuitable
	var place *blocked
	switch {
	case errors.As(err, &other):
		o.cause = rankMember
	case errors.As(err, &place):
		o.cause = rankBlocked
	case errors.As(err, &shown):
		o.failure = &failure{err: shown}
	case errors.Is(err, provider.ErrNoEndpoint), errors.Is(err, provider.ErrIncomplete),
		errors.Is(err, provider.ErrNoCredential), errors.Is(err, provider.ErrHeader):
	default:
		o.failure = &failure{err: &apierr.Error{Status: 500, Type: "server_error", Message: "Internal error.", Err: err}}
	}
	if o.failure != nil {
		o.cause = o.failure.rank()
	}
	pl.outcomes = append(pl.outcomes, o)
	return o.failure
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
		return strange("empty_upstream", "The provider answered without a body. Check the base URL, or try again.", pl.call.Billable)
	case s >= 200 && s < 300, resp.Socket != nil:
		return nil
	case s >= 300 && s < 400:
		resp.Body.Close()
		return strange("upstream_redirect", "The provider answered with a redirect, which is not followed. Check the base URL.", pl.call.Billable)
	case s < 200 || s > 599:
		resp.Body.Close()
		return strange("bad_upstream_status", "The provider answered with no valid status. Check the base URL.", pl.call.Billable)
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
		b := snapshot.Block{Status: s, Message: e.Told(maxMessage)}
		pl.call.Machine.Block(to.Provider.ID, provider.Origin(req.URL), b, now.UnixMilli())
		return &failure{err: e, blocked: true, place: placeOf(resp.Header), next: !pl.call.Billable || s == 403}
	}
	stand(e, means)
	f := judge(e, e.Code == quotaCode, pl.call.Billable)
	if means == vendortext.ModelRefused || e.Status == 403 && to.Provider.Cloud == provider.Vertex && !ofAccount(raw) {
		f.keepAccount() // not in its Model Garden
	}
	if means == vendortext.ContentFilter {
		f = &failure{err: e} // with 403, too, the account is not at fault
	}
	if !f.next && !pl.call.Billable {
		f.class = classOfAnswer(s, means)
	}
	f.weekly = e.RetryAfter > store.MaxCooldown && (used.weekly || weekly(resp.Header, raw))
	f.whole, f.answered = used.account, true
	if !f.next && f.effect == nothing || f.effect == unsteady && pl.call.Billable {
		f.body = raw
		pass(e, raw, *cred, a.Errors)
	}
	if means == vendortext.ContextLength && !f.next {
		e.Code, e.VendorCode = CodeContextLength, ""
	}
	return f
}

// ended returns the client's error when a failure ends the plan.
func (pl *plan) ended(f *failure) error {
	if r := f.rank(); f.effect == spent || f.effect == badKey || r == rankBlocked || r == rankModel {
		s := pl.outcomes.summary()
		s.best = f
		return pl.refused(&s, r)
	}
	return pl.told(f)
}
