package accounts

import (
	"errors"
	"strconv"
	"time"

	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// failed returns the client's error when no account answered, by cause: first a
// temporary failure, then a limited account, then missing credit, then a
// refused key, then a refused location.
func (pl *plan) failed() error {
	if pl.overBudget != nil && pl.best == nil {
		return pl.overBudget
	}
	if pl.best != nil && pl.best.rank() == rankTransient {
		return pl.best.err
	}
	if pl.missed != nil && len(pl.missed[rankLimit].conns) > 0 {
		return pl.limited()
	}
	if pl.later != nil {
		return pl.later.shown()
	}
	for r := rankCredit; r >= rankBlocked && pl.missed != nil; r-- {
		if len(pl.missed[r].conns) > 0 {
			return pl.refused(r)
		}
	}
	if pl.best != nil {
		return pl.best.err
	}
	if pl.refusal != nil && !errors.Is(pl.unusable, ErrSealed) {
		return pl.refusal
	}
	if pl.unusable == nil {
		return apierr.New(400, "no_credentials", "No account of provider %s is connected. Add one under Providers.",
			names(pl.call.Targets))
	}
	e := apierr.New(400, "no_credentials", "No account of provider %s has usable credentials.", names(pl.call.Targets))
	switch {
	case errors.Is(pl.unusable, ErrSealed):
		e = apierr.New(503, "key_unavailable", SealedText)
	case errors.Is(pl.unusable, provider.ErrIncomplete):
		e.Message += " Complete its settings under Providers: " + pl.unusable.Error() + "."
	case errors.Is(pl.unusable, provider.ErrNoCredential):
		e.Message += " Set an API key on its connection, or sign in again."
	case errors.Is(pl.unusable, provider.ErrNoEndpoint):
		e = apierr.New(400, "unsupported_endpoint", "Provider %s has no endpoint for this request.", names(pl.call.Targets))
	}
	e.Err = pl.unusable
	return e
}

// limited returns the client's error when accounts are limited.
func (pl *plan) limited() error {
	m := &pl.missed[rankLimit]
	if pl.best != nil && pl.best.rank() == rankLimit {
		e := *pl.best.err
		e.NoRetry = e.NoRetry && len(m.conns) == 1 // another account may be ready before
		return waiting(&e, m.wait)
	}
	e := apierr.New(429, "rate_limit_exceeded", "All accounts for this model are rate limited.")
	e.Err = &cooling{m.wait}
	return waiting(e, m.wait)
}

// refused returns the client's error when the owner of the accounts must act:
// which account, what happened and since when. A repeated call gets the same.
func (pl *plan) refused(rank int) error {
	m := &pl.missed[rank]
	text, status, header := "", pl.place.Status, httpmsg.Header(nil)
	if f := pl.best; f != nil && f.rank() == rank {
		text, status, header = f.err.Message, f.err.Status, f.err.Header
	}
	var e *apierr.Error
	switch rank {
	case rankCredit:
		e = apierr.New(402, quotaCode, "There is no credit left on %s. Add credit at the provider.", account(m))
	case rankRefused:
		if c := m.conns[0]; text == "" && c.Status == needsReauth {
			text = "the sign-in is no longer valid"
		}
		e = apierr.New(401, "account_key_refused", "The provider refuses the credentials of %s. Update it under Providers.",
			account(m))
	default:
		if text == "" {
			text = pl.place.Message
		}
		e = apierr.New(status, blockedCode, "Provider %s does not serve the location that this gateway calls from.",
			m.conns[0].Provider)
	}
	if text != "" {
		e.Message += " Its answer: " + text
	}
	e.Message, e.Header, e.NoRetry = apierr.Shorten(apierr.Sentence(e.Message), maxMessage), header, true
	if pl.attempts == 0 && m.wait > 0 {
		e.Err = &cooling{m.wait}
	}
	return e
}

// account describes the accounts of a cause: the first, since when, and the
// number of the others.
func account(m *missed) string {
	c := m.conns[0]
	name := c.Name
	if name == "" {
		name = c.ID
	}
	s := "account " + strconv.Quote(name) + " (" + c.Provider
	if m.since > 0 {
		s += ", since " + time.UnixMilli(m.since).UTC().Format(time.RFC3339)
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
