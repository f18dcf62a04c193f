package accounts

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// failed returns the client's error when no account answered, by cause: first a
// temporary failure, then a limited account, then missing credit, then a
// refused key, then a refused model, then a refused location.
func (pl *plan) failed() error {
	s := pl.outcomes.summary()
	switch {
	case s.overBudget != nil && s.best == nil:
		return s.overBudget
	case s.best != nil && s.best.rank() == rankTransient:
		return pl.told(s.best)
	case len(s.missed[rankLimit].conns) > 0:
		return tooMany(&s)
	case s.later != nil:
		return s.later.shown()
	}
	for r := rankCredit; r >= rankBlocked; r-- {
		if len(s.missed[r].conns) > 0 {
			return pl.refused(&s, r)
		}
	}
	if s.best != nil {
		return pl.told(s.best)
	}
	if s.refusal != nil && !errors.Is(s.unusable, ErrSealed) {
		return s.refusal
	}
	return unusable(names(pl.call.Targets), s.unusable)
}

// unusable returns the client's error when no account could be tried. why is that of the
// last one, nil without any.
func unusable(id string, why error) error {
	if why == nil {
		return apierr.New(400, "no_credentials", "No account of provider %s is connected. Add one under Providers.", id)
	}
	e := apierr.New(400, "no_credentials", "No account of provider %s has usable credentials.", id)
	switch {
	case errors.Is(why, ErrSealed):
		e = apierr.New(503, "key_unavailable", store.SealedText)
	case errors.Is(why, provider.ErrIncomplete):
		e.Message += " Complete its settings under Providers: " + why.Error() + "."
	case errors.Is(why, provider.ErrNoCredential):
		e.Message += " Add its API key under Providers, or sign in again."
	case errors.Is(why, provider.ErrNoEndpoint):
		e = apierr.New(400, "unsupported_endpoint", "Provider %s has no endpoint for this request.", id)
	}
	e.Err = why
	return e
}

// told returns the client's error of an answer of a provider: which account it was, what to
// do, and what the provider said. A refusal of the request that has a text stays as it is,
// since it is about the request, and so does an error that passes as the provider's own.
func (pl *plan) told(f *failure) error {
	if f.err.Own || len(f.err.Body) > 0 || !f.answered && !f.strange {
		return f.err
	}
	e := *f.err
	who := account(&missed{conns: pl.outcomes.failed(f)})
	again, soon := "Try again.", "Try again in a moment, or use another account or model."
	if e.NoRetry {
		again = "Check at the provider what it has done before you try again."
		soon = again
	}
	switch s := e.Status; {
	case f.strange:
		e.Message = strings.Replace(who, "a", "A", 1) + ": " + e.Message
		return &e
	case s == 503, s == 529, e.Code == "upstream_overloaded":
		e.Message = "The provider of " + who + " is overloaded. " + soon
	case s == 408, s == 504:
		e.Message = "The provider of " + who + " took too long. " + again
	case s >= 500:
		e.Message = "The provider of " + who + " failed with status " + strconv.Itoa(s) + ". " + again
	case !e.Said && s == 413:
		e.Message, e.Code = "The provider of "+who+" refuses the request as too large. Send less.", "upstream_refused"
	case !e.Said:
		e.Message = "The provider of " + who + " answered with status " + strconv.Itoa(s) +
			" and no reason. Check the base URL of the account, and the name of the model."
		if e.Code == "" {
			e.Code = "upstream_refused"
		}
	default:
		return f.err
	}
	e.Message += quoted(f.err)
	own(&e)
	return &e
}

// quoted returns what the provider said, as a sentence that follows another; "" for nothing.
func quoted(e *apierr.Error) string {
	if !e.Said {
		return ""
	}
	return " " + apierr.Sentence(e.Told(maxMessage))
}

// own makes an error one of the gateway: its message is, and so is a code that the status has
// anyway.
func own(e *apierr.Error) {
	e.Said = false
	if e.VendorCode == codeOf(e.Status) {
		e.VendorCode = ""
	}
}

// tooMany returns the client's error when accounts are limited.
func tooMany(s *summary) error {
	m := &s.missed[rankLimit]
	e := apierr.New(429, "rate_limit_exceeded", "")
	e.Err = &cooling{m.wait}
	said := ""
	if s.best != nil && s.best.rank() == rankLimit {
		*e = *s.best.err
		e.NoRetry = e.NoRetry && len(m.conns) == 1 // another account may be ready before
		said = quoted(e)
		own(e)
	}
	waiting(e, m.wait)
	e.Message = "The provider's rate limit is reached on " + account(&missed{conns: m.conns}) + ". Try again in " +
		inWords(e.RetryAfter) + ", or add another account under Providers." + said
	return e
}

// inWords returns a wait as people say it, rounded up.
func inWords(wait time.Duration) string {
	switch {
	case wait >= 2*time.Hour:
		return strconv.Itoa(int((wait+time.Hour-1)/time.Hour)) + " h"
	case wait >= 2*time.Minute:
		return strconv.Itoa(int((wait+time.Minute-1)/time.Minute)) + " min"
	}
	return strconv.Itoa(int((wait+time.Second-1)/time.Second)) + " s"
}

// refused returns the client's error when the owner of the accounts must act:
// which account, what happened and since when. A repeated call gets the same.
func (pl *plan) refused(s *summary, rank int) error {
	m := &s.missed[rank]
	text, status, header := "", s.place.Status, httpmsg.Header(nil)
	if f := s.best; f != nil && f.rank() == rank {
		text, status, header = f.err.Told(maxMessage), f.err.Status, f.err.Header
	}
	var e *apierr.Error
	switch rank {
	case rankCredit:
		e = apierr.New(402, quotaCode, "There is no credit left on %s. Add credit at the provider.", account(m))
	case rankRefused:
		e = apierr.New(401, "account_key_refused", "The provider refuses the credentials of %s. Replace them under Providers, or give them the missing permission at the provider.",
			account(m))
		if !store.HasCredential(m.conns[0].Secrets) {
			e.Message = "The provider asks for an API key, and " + account(m) + " has none. Add it under Providers."
		}
		if text == "" && m.conns[0].Status == needsReauth {
			e.Message = "The sign-in of " + account(m) + " is no longer valid. Sign in again under Providers."
		}
	case rankModel:
		e = apierr.New(403, codeModelRefused, "The provider does not let %s use this model. Allow it at the provider, or use another model.",
			account(&missed{conns: m.conns}))
	default:
		text = cmp.Or(text, s.place.Message)
		e = apierr.New(status, blockedCode, "The provider of %s does not serve the location that this gateway calls from. Use a proxy, or another provider.",
			account(&missed{conns: m.conns}))
	}
	if text != "" {
		e.Message += " " + text
	}
	e.Message, e.Header, e.NoRetry, e.Provider = apierr.Sentence(e.Message), header, true, m.conns[0].Provider
	if pl.outcomes.attempts() == 0 && m.wait > 0 {
		e.Err = &cooling{m.wait}
	}
	return e
}

// account describes the accounts of a cause: the first, since when, and the
// number of the others.
func account(m *missed) string {
	c := m.conns[0]
	name, of := cmp.Or(c.Name, c.ID), c.Provider
	if d := provider.Lookup(of); d != nil && d.Compatible {
		of = d.Name // its id has random digits
	}
	s := "account " + strconv.Quote(name) + " (" + of
	if m.since > 0 {
		s += ", since " + time.UnixMilli(m.since).UTC().Format("Jan 2, 15:04 UTC")
	}
	s += ")"
	if n := len(m.conns) - 1; n > 0 {
		s += " and " + strconv.Itoa(n) + " more"
	}
	return s
}

// waiting sets the wait of a limit.
func waiting(e *apierr.Error, wait time.Duration) error {
	if wait > 0 {
		e.RetryAfter = wait
	}
	e.RetryIn(max(e.RetryAfter, time.Second))
	return e
}

func names(targets []routing.Target) string {
	if len(targets) == 0 || targets[0].Provider == nil {
		return "of this model"
	}
	return targets[0].Provider.ID
}

var _ Sender = (*Pool)(nil)
