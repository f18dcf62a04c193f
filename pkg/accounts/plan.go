package accounts

import (
	"context"
	"errors"
	"strconv"
	"time"

	"weir/pkg/apierr"
	"weir/pkg/edge"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/stream"
	"weir/pkg/upstream"
)

// Limits of a plan.
const (
	maxAttempts  = 5
	maxErrorBody = 64 << 10  // bytes of an error that are read
	maxTimeout   = time.Hour // of what a client may ask for
)

// plan is one call on its way through the accounts.
type plan struct {
	*Pool
	call     *Call
	deadline time.Time // zero for none
	attempts int
	best     *failure      // the most useful failure so far
	left     time.Duration // the smallest wait of an account that was left out; 0 for none
	cooled   time.Duration // the smallest cooldown that came of a failure; 0 for none
	unusable error         // why an account could not be tried at all
}

// Send tries the accounts of the targets in turn until one gives a 2xx that
// passes Check. The error is an *apierr.Error fit for the client.
func (p *Pool) Send(ctx context.Context, call *Call) (*Result, error) {
	pl := plan{Pool: p, call: call}
	pl.limit()
	pin := call.Request.Header.Get("x-connection-id")
	if pin != "" && !pinned(call, pin) {
		return nil, apierr.Invalid("", "x-connection-id names no active connection of this model")
	}
	for i := range call.Targets {
		to := &call.Targets[i]
		var few [8]candidate
		ready := pl.order(few[:0], to, pin)
		for j := range ready {
			res, f := pl.account(ctx, to, &ready[j])
			if res != nil {
				return res, nil
			}
			if f == nil {
				continue // it could not be tried
			}
			if !f.next {
				return nil, f.err
			}
			pl.keep(f)
			if pl.attempts >= maxAttempts {
				return nil, pl.failed()
			}
		}
	}
	return nil, pl.failed()
}

// limit finds the deadline of the plan.
func (pl *plan) limit() { pl.deadline = Deadline(pl.call.Request, pl.call.Timeout, pl.Now()) }

// Deadline gives when a request must be over: the nearer of the client's
// X-Stainless-Timeout, in seconds, and a limit of the endpoint's own, both from
// the request's start on. The zero time is never; limit 0 is none.
func Deadline(r *edge.Request, limit time.Duration, now time.Time) time.Time {
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

// account tries one account, once more after a refreshed token. It gives the
// result, or the failure that decides what comes next; neither when the
// account could not be tried.
func (pl *plan) account(ctx context.Context, to *routing.Target, c *candidate) (*Result, *failure) {
	call, conn := pl.call, c.conn
	if c.trial && !call.Machine.Trial(conn.ID, c.trialModel, pl.Now().UnixMilli()) {
		pl.leave(time.Second)
		return nil, nil
	}
	if c.trial {
		defer call.Machine.TrialOver(conn.ID, c.trialModel)
	}
	var token use
	for {
		cred, err := pl.open(ctx, call.Machine.ID, conn, &token)
		if err != nil {
			pl.unusable = err
			return nil, nil
		}
		req, f := pl.build(to, conn, cred)
		if req == nil {
			return nil, f
		}
		if !pl.deadline.IsZero() && !pl.Now().Before(pl.deadline) {
			return nil, &failure{err: timedOut(false)}
		}
		pl.attempts++
		t := &call.Request.Trace
		t.Attempts++
		t.Provider, t.ConnectionID, t.Model = to.Provider.ID, conn.ID, to.ID()
		began := pl.Now()
		resp, err := upstream.Do(ctx, pl.Doer, req)
		headed := err == nil
		if headed {
			if f = pl.answer(to, resp, req, cred); f == nil && call.Check != nil {
				if f = failureOf(call.Check(resp), call.Billable); f != nil {
					clean(f.err, cred)
					resp.Body.Close()
				}
			}
		} else {
			f = failureOf(err, call.Billable)
		}
		if call.Fault != nil {
			if err := call.Fault(); err != nil {
				if f == nil {
					resp.Body.Close()
				}
				f = failureOf(err, false)
				f.next, f.refresh, f.effect = false, false, nothing
			}
		}
		if f != nil && tooLate(f.err, headed) {
			f.next = false
		}
		if f == nil {
			t.Err = nil
			if _, whole := resp.Body.(*stream.Bytes); whole {
				pl.succeeded(call.Machine, conn.ID, to.Model)
			}
			return &Result{Response: resp, Target: to, Connection: conn, pool: pl.Pool, machine: call.Machine, cred: cred}, nil
		}
		t.Err = f.err
		t.Failed = append(t.Failed, tried(t, f, pl.Now().Sub(began)))
		if f.refresh && pl.attempts < maxAttempts && renewable(conn) && pl.refresh(ctx, call.Machine.ID, conn, &token) {
			continue
		}
		if call.Again != nil && !call.Billable && !f.next && f.err.Status < 500 && pl.attempts < maxAttempts && call.Again(f.err, f.body) {
			continue
		}
		pl.note(call.Machine, conn.ID, to.Model, f, c.trial)
		return nil, f
	}
}

// tooLate reports whether an answer had begun but did not come in time. Another
// account would only be asked for the same work again.
func tooLate(e *apierr.Error, headed bool) bool {
	return errors.Is(e, stream.ErrTimeout) || headed && errors.Is(e, upstream.ErrTimeout)
}

// build makes the request of one attempt. Without one, the failure ends the
// plan, or is nil when only this account cannot be used.
func (pl *plan) build(to *routing.Target, conn *store.Connection, cred provider.Credential) (*upstream.Request, *failure) {
	req, err := pl.call.Build(to, conn)
	if err == nil {
		base := baseOf(pl.call, to)
		err = provider.AuthorizeOf(&req.Header, to.Provider, base, conn, cred)
		if err == provider.ErrMustSign {
			err = provider.Sign(req, to.Provider, base, conn, cred, pl.Now())
		}
	}
	if err != nil {
		return nil, pl.unbuilt(err)
	}
	hop, err := provider.Hop(pl.call.Request.Header)
	if err != nil {
		return nil, &failure{err: apierr.New(508, "loop_detected", "the call has passed too many gateways")}
	}
	req.Header.Set(hop.Name, hop.Value)
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
	return req, nil
}

func baseOf(call *Call, to *routing.Target) *provider.Base {
	if call.Base == nil {
		return nil
	}
	return call.Base(to)
}

// unbuilt judges why a request could not be made: nil when only this account
// cannot be used, else the failure that ends the plan.
func (pl *plan) unbuilt(err error) *failure {
	var shown *apierr.Error
	switch {
	case errors.As(err, &shown):
		return &failure{err: shown}
	case errors.Is(err, provider.ErrNoEndpoint), errors.Is(err, provider.ErrIncomplete),
		errors.Is(err, provider.ErrNoCredential), errors.Is(err, provider.ErrHeader):
		pl.unusable = err
		return nil
	}
	return &failure{err: &apierr.Error{Status: 500, Type: "server_error", Message: "internal error", Err: err}}
}

func sooner(limit, left time.Duration) time.Duration {
	if limit == 0 || left < limit {
		return left
	}
	return limit
}

// answer reads an answer's status: nil for one to settle for. What is no
// usable answer at all becomes a 502.
func (pl *plan) answer(to *routing.Target, resp *upstream.Response, req *upstream.Request, cred provider.Credential) *failure {
	s := resp.Status
	post := req.Method == "" || req.Method == "POST"
	switch {
	case post && (s == 204 || s == 205 || s == 304):
		resp.Body.Close()
		return strange("empty_upstream", "the provider answered without a body", pl.call.Billable)
	case s >= 200 && s < 300:
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
	e := upstreamError(s, resp.Header, raw, cred)
	e.RetryAfter, _ = statedWait(resp.Header, raw, now)
	for _, spent := range to.Provider.Spent {
		if s == spent {
			e.Status, e.Type, e.Code = 402, apierr.TypeOf(402), quotaCode
		}
	}
	f := judge(e, e.Code == quotaCode, pl.call.Billable)
	if !f.next && f.effect == nothing || f.effect == unsteady && pl.call.Billable {
		f.body = raw
		pass(e, raw, cred, formOf(pl.call))
	}
	return f
}

// leave notes the wait of an account that is left out.
func (pl *plan) leave(wait time.Duration) { pl.left = least(pl.left, wait) }

// least gives the smaller of two waits of which 0 is none.
func least(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// keep notes a failure, unless a more useful one is known.
func (pl *plan) keep(f *failure) {
	pl.cooled = least(pl.cooled, f.cooled)
	if pl.best == nil || f.rank() >= pl.best.rank() {
		pl.best = f
	}
}

// failed is what the client is told when no account gave an answer.
func (pl *plan) failed() error {
	switch {
	case pl.left > 0 && (pl.best == nil || pl.best.rank() == rankCredential):
		e := apierr.New(429, "rate_limit_exceeded", "all accounts for this model are cooling down")
		e.Err = ErrCooling
		return waiting(e, least(pl.left, pl.cooled))
	case pl.best == nil && pl.unusable != nil:
		e := apierr.New(400, "no_credentials", "no usable credentials for provider %s", names(pl.call.Targets))
		var none *noToken
		switch {
		case errors.As(pl.unusable, &none):
			e = apierr.New(503, "token_unavailable", "the account's provider gives no access token at the moment")
			e.RetryAfter = none.wait
		case errors.Is(pl.unusable, errSealed):
			e = apierr.New(503, "key_unavailable", "the stored credentials cannot be opened")
		case errors.Is(pl.unusable, provider.ErrIncomplete):
			e.Message += ": " + pl.unusable.Error()
		case errors.Is(pl.unusable, provider.ErrNoEndpoint):
			e = apierr.New(400, "unsupported_endpoint", "provider %s does not offer this", names(pl.call.Targets))
		}
		e.Err = pl.unusable
		return e
	case pl.best == nil:
		return apierr.New(400, "no_credentials", "no credentials for provider %s", names(pl.call.Targets))
	}
	e := *pl.best.err
	switch pl.best.rank() {
	case rankLimit:
		return waiting(&e, least(pl.left, pl.cooled))
	case rankCredential:
		e.RetryAfter = 0
		e.Message = cut("provider "+pl.call.Request.Trace.Provider+" refused the account: "+e.Message, maxMessage)
	}
	return &e
}

// waiting gives a limit its wait; over a minute the client need not try.
func waiting(e *apierr.Error, wait time.Duration) error {
	if wait > 0 {
		e.RetryAfter = wait
	}
	e.RetryAfter = max(e.RetryAfter, time.Second)
	if e.RetryAfter > time.Minute {
		e.NoRetry = true
	}
	return e
}

func names(targets []routing.Target) string {
	if len(targets) == 0 || targets[0].Provider == nil {
		return "of this model"
	}
	return targets[0].Provider.ID
}

var _ Sender = (*Pool)(nil)
