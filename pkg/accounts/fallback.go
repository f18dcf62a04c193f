package accounts

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
	"weir/pkg/wire/vendortext"
)

// ErrCooling is the cause of a failure that says that no account was tried
// because all are cooling down; see Wait.
var ErrCooling = errors.New("accounts: all are cooling down")

// cooling is an ErrCooling with the smallest wait.
type cooling struct{ wait time.Duration }

func (*cooling) Error() string        { return ErrCooling.Error() }
func (*cooling) Is(target error) bool { return target == ErrCooling }

// Wait returns the shortest cooldown of the accounts of an ErrCooling, else 0.
func Wait(err error) time.Duration {
	var c *cooling
	if errors.As(err, &c) {
		return c.wait
	}
	return 0
}

// quotaCode is the structured code of an account that has used up its credit.
const quotaCode = "insufficient_quota"

// blockedCode is the code of a failure that is no fault of an account: the
// provider does not serve the location that the call came from.
const blockedCode = "upstream_blocked_here"

// codeModelRefused is the code of a failure that is no fault of an account: it may not use
// the model.
const codeModelRefused = "account_lacks_model"

// CodeContextLength is the code of a request that is too long for the model,
// whatever the upstream calls that.
const CodeContextLength = "context_length_exceeded"

// effect is what a failure does to the account.
type effect uint8

const (
	nothing  effect = iota
	badKey          // 2 min, the account
	limited         // the stated wait or the backoff, this model or what the limit says
	spent           // the stated reset or 1 h, the account
	unsteady        // this model's rate of failures
	unstable        // the account's rate of failures
)

// failure is one attempt that did not work, and what follows from it.
type failure struct {
	err     *apierr.Error // RetryAfter is the wait that the upstream stated
	next    bool          // another account may be tried
	class   routing.Class // unless next: whether the next member of a combo may be tried
	refresh bool          // the same account may be tried with a new token
	blocked bool          // the location or egress address is refused, not the account
	passing bool          // the same account may be tried once more if there is no other
	place   string        // that is refused; see store.Attempt
	weekly  bool          // the stated wait is for a weekly window
	whole   bool          // the limit is the account's, not the model's
	effect  effect
	cooled  time.Duration // the cooldown that came of it
	body    []byte        // of an answer that ends the plan
	// answered reports that err is the provider's answer, strange that its answer was not
	// usable; see told.
	answered, strange bool
}

// Ranks of the causes for which a call cannot be served. The highest decides the
// client's error.
const (
	rankMember    = iota // another member of the combo may serve it
	rankBlocked          // this location is refused
	rankModel            // the account may not use the model
	rankRefused          // the owner must change a key
	rankCredit           // the owner must pay
	rankLimit            // the client may wait
	rankTransient        // the client may try again
	ranks

	rankNone = -1
)

// classOf returns the class of a target without another account to try, by the
// highest rank of its failures.
func classOf(rank int) routing.Class {
	switch rank {
	case rankMember:
		return routing.Unsuitable
	case rankCredit, rankLimit:
		return routing.Limit
	}
	return routing.Unavailable
}

// classOfAnswer returns the class of a refusal for which no other account is tried.
func classOfAnswer(status int, means vendortext.Kind) routing.Class {
	switch {
	case means == vendortext.ContextLength:
		return routing.ContextLength
	case means == vendortext.ModelRetired, status == 410:
		return routing.ModelGone
	case means == vendortext.ContentFilter:
		return routing.ContentFilter
	case status >= 400 && status <= 499:
		return routing.Any4xx
	}
	return routing.Final
}

func (f *failure) rank() int {
	switch f.effect {
	case badKey:
		return rankRefused
	case spent:
		return rankCredit
	case limited:
		return rankLimit
	}
	switch {
	case f.blocked:
		return rankBlocked
	case f.err.Code == codeModelRefused:
		return rankModel
	case f.class != routing.Final:
		return rankMember
	}
	return rankTransient
}

// rankOf returns the rank of an account that cools down.
func rankOf(reason string) int {
	switch reason {
	case store.KeyRefused:
		return rankRefused
	case store.OutOfCredit:
		return rankCredit
	}
	return rankLimit
}

// judge is the one function that decides on another attempt
// (docs/fallback.md). The status decides, never the text of a
// message; quota is the structured code insufficient_quota. A billable creation
// goes on only after a definite refusal: 401, 403 or 429, and with a new token
// only after 401 (docs/reference/spec.md, 4.4).
func judge(e *apierr.Error, quota, billable bool) *failure {
	f := &failure{err: e}
	switch s := e.Status; {
	case s == 401, s == 403:
		f.next, f.refresh, f.effect = true, !billable || s == 401, badKey
	case s == 402, s == 429 && quota:
		f.next, f.effect = !billable || s == 429, spent
	case s == 429:
		f.next, f.effect = true, limited
	case s == 529:
		f.next = !billable
	case s == 408, s >= 500:
		f.next, f.effect = !billable, unsteady
	}
	if billable && !f.next && (e.Status == 408 || e.Status >= 500) {
		e.NoRetry = true
	}
	return f
}

// keepAccount makes a refused account one that may not use the model, which says nothing
// about its other models: it stays in use.
func (f *failure) keepAccount() {
	f.effect, f.err.Code, f.err.VendorCode = nothing, codeModelRefused, ""
}

// retry decides whether the same account is asked once more, and why. Billable
// calls are repeated with a new token, or in another form after a 400 or 422.
func (f *failure) retry(a *Attempt, billable bool) Retry {
	switch {
	case f.refresh:
		return Refreshed
	case billable && f.err.Status != 400 && f.err.Status != 422, (f.next || f.err.Status >= 500) && f.err.Status != 501:
		return NoRetry
	case a.OtherAPI && lacksEndpoint(f.err):
		return OtherAPI
	case a.Forms != nil:
		again, instead := a.Forms.OtherForm(f.err, f.body)
		if again {
			return OtherForm
		}
		if instead != nil {
			f.err = instead
		}
	}
	return NoRetry
}

// lacksEndpoint reports whether an upstream's failure may mean that the server
// does not have the endpoint.
func lacksEndpoint(err error) bool {
	var e *apierr.Error
	return errors.As(err, &e) && (e.Status == 404 && e.Code != "model_not_found" && e.Param == "" || e.Status == 405 ||
		e.Status == 501)
}

// stand sets the status of an error to the one that it stands for by the published table.
func stand(e *apierr.Error, means vendortext.Kind) {
	s := statusOf(e.Status, means)
	if s == e.Status {
		return
	}
	e.Status, e.Type, e.Code = s, apierr.TypeOf(s), codeOf(s)
}

// judgeInside judges an error that came within an answer of 2xx: in its body or
// in an event of its stream. There insufficient_quota applies to the account only
// if the provider's row says so; otherwise it limits the model.
func judgeInside(e *apierr.Error, d *provider.Descriptor, billable bool) *failure {
	means := vendortext.Kind("")
	if e.Status >= 400 && e.Status <= 499 {
		means = vendortext.Find(e.Status, e.Code, e.Message)
	}
	stand(e, means)
	f := judge(e, e.Code == quotaCode, billable)
	if means == vendortext.ContextLength {
		e.Code, e.VendorCode = CodeContextLength, ""
	}
	if means == vendortext.ContentFilter {
		f = &failure{err: e}
	}
	if means == vendortext.ModelRefused {
		f.keepAccount()
	}
	if !f.next && !billable && means != vendortext.PlaceRefused {
		f.class = classOfAnswer(e.Status, means)
	}
	if f.effect == spent && (d == nil || !d.SpentInside) {
		f.effect = limited
		e.Status, e.Type = 429, apierr.TypeOf(429)
	}
	return f
}

// strange returns the failure of an invalid answer: a redirect, no body, no valid
// status. It counts as an unreadable answer, except for a redirect.
func strange(code, message string, billable bool) *failure {
	e := apierr.New(502, code, "%s", message)
	if billable {
		e.NoRetry = true
		if code != "upstream_redirect" { // that one is a refusal
			e.Code = "upstream_outcome_unknown"
		}
	}
	f := &failure{err: e, next: !billable, effect: unsteady, strange: true}
	if code == "upstream_redirect" {
		f.effect = nothing
	}
	return f
}

// failureOf judges an error of the Doer or of Read from an attempt. It returns nil for nil.
func failureOf(err error, a *Attempt, billable bool) *failure {
	if err == nil {
		return nil
	}
	return newFailure(err, a, billable)
}

func newFailure(err error, a *Attempt, billable bool) *failure {
	var e *apierr.Error
	late := false
	switch {
	case errors.Is(err, stream.ErrMemory): // the gateway's own
		return &failure{err: memory.Refusal(err)}
	case errors.Is(err, upstream.ErrLocal):
		e = apierr.New(503, "overloaded", "The gateway has no connection for this call at the moment. Try again in a moment.")
		e.RetryAfter, e.Err = time.Second, err
		return &failure{err: e}
	case errors.Is(err, stream.ErrStopping):
		e = apierr.Stopping()
		e.NoRetry = billable
		return &failure{err: e}
	case errors.As(err, &e):
		shown := *e
		f := judgeInside(&shown, a.Target.Provider, billable)
		f.answered, f.strange = shown.Said, !shown.Said && shown.Status == 502
		return f
	case errors.Is(err, upstream.ErrCanceled), errors.Is(err, stream.ErrClient):
		return &failure{err: apierr.ClientLeft(err)}
	case errors.Is(err, upstream.ErrBudget):
		e = apierr.New(503, "budget", "This request needs more calls to providers than one request may make here. Send fewer inputs.")
		e.NoRetry, e.Err = true, err
		return &failure{err: e}
	case errors.Is(err, stream.ErrTooLarge):
		f := strange("bad_upstream_body", "The provider's answer is too large.", billable)
		f.next, f.effect = false, nothing
		return f
	case errors.Is(err, upstream.ErrTimeout), errors.Is(err, stream.ErrTimeout), errors.Is(err, stream.ErrIdle):
		e, late = timedOut(a.late(err), billable), true
	default:
		e = apierr.New(502, "upstream_unreachable", "%s",
			upstream.Unreachable(a.provider(), err))
		if billable {
			e.Code, e.NoRetry = "upstream_outcome_unknown", true
		}
	}
	e.Err, e.Provider = err, a.Target.Provider.ID
	f := &failure{err: e, next: !billable, effect: unstable}
	if late { // slowness says nothing about the account
		f.effect = nothing
	}
	return f
}

func timedOut(text string, billable bool) *apierr.Error {
	e := apierr.New(504, "upstream_timeout", "%s", text)
	if billable {
		e.Code, e.NoRetry = "upstream_outcome_unknown", true
	}
	return e
}

// provider names the provider of the attempt by its account.
func (a *Attempt) provider() string {
	return "The provider of " + account(&missed{conns: []*store.Connection{a.Connection}})
}

// late returns the sentences for an attempt that took too long: which account, how long, and
// what to do.
func (a *Attempt) late(err error) string {
	did, limit, do := "did not answer within", cmp.Or(a.Request.HeaderTimeout, a.Request.Timeout), "Try again."
	switch {
	case errors.Is(err, stream.ErrIdle):
		did, limit, do = "was silent for", a.Request.Idle, "Try again, or raise the setting idleSeconds."
	case a.headed:
		did, limit, do = "did not end its answer within", a.Request.Timeout, "Ask for a shorter answer."
	case a.settable:
		do = "Try again, or raise the setting firstByteSeconds."
	}
	return a.provider() + " " + did + " " + strconv.FormatFloat(limit.Seconds(), 'g', 3, 64) + " s. " + do
}

// note does to the account what the failure says, in this isolate at once and
// in the object with the next report. Unsteadiness stays in this isolate.
func (p *Pool) note(m *snapshot.Machine, connection, model string, f *failure) {
	now := p.Now()
	reason := ""
	switch f.effect {
	case nothing:
		return
	case unsteady:
		if len(model) <= store.MaxCooledModel {
			m.Failed(connection, model, now.UnixMilli())
		}
		m.Worked(connection, "", now.UnixMilli()) // the connection did answer
		return
	case unstable:
		m.Failed(connection, "", now.UnixMilli())
		return
	case badKey:
		reason, model = store.KeyRefused, ""
	case limited:
		if reason = store.RateLimited; f.whole {
			model = ""
		} else if len(model) > store.MaxCooledModel {
			return
		}
	case spent:
		reason, model = store.OutOfCredit, ""
	}
	failures := failuresOf(m.State(connection, model), now)
	switch f.effect {
	case badKey:
		f.cooled = store.KeyRefusedFor
	case limited:
		f.cooled = limitedFor(f.err.RetryAfter, failures, f.weekly)
	case spent:
		f.cooled = spentFor(f.err.RetryAfter, f.weekly)
	}
	p.cool(m, connection, model, f.cooled, reason, failures+1, f.err, now)
}

// succeeded clears what is noted against the account.
func (p *Pool) succeeded(m *snapshot.Machine, connection, model string) {
	if m.Calm() {
		return
	}
	now := p.Now().UnixMilli()
	m.Worked(connection, model, now)
	if m.Clear(connection, "", now) {
		p.cleared(m.ID, connection, "")
	}
	if model != "" && m.Clear(connection, model, now) {
		p.cleared(m.ID, connection, model)
	}
}
