package accounts

import (
	"strconv"
	"strings"
	"time"

	"weir/pkg/budget"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// exceeded returns the 429 of a call that does not fit into a budget or a limit.
func exceeded(b *store.Budget, g *budget.Grant, amount int64) *apierr.Error {
	wait := max(time.Duration(g.Wait)*time.Millisecond, 0)
	e := apierr.New(429, CodeBudgetExceeded, "%s", refusedText(b, g, amount, wait))
	if g.Lent {
		e.Err = errLent
	}
	if amount > b.Limit {
		wait = 0 // it never fits
	}
	switch {
	case !b.IsLimit():
		e.RetryAfter, e.NoRetry = wait, true
		return e
	case b.Unit == store.Calls:
		e.Code, e.Reason = CodeConcurrency, store.RefusedByConcurrency
	default:
		e.Code, e.Reason = CodeKeyLimit, store.RefusedByKeyLimit
	}
	if e.NoRetry = wait == 0; !e.NoRetry {
		e.RetryIn(max(wait, time.Second))
	}
	return e
}

// refusedText returns why a call does not fit, what to do, and when it may fit. amount is
// in the unit of the budget.
func refusedText(b *store.Budget, g *budget.Grant, amount int64, wait time.Duration) string {
	limit := store.AmountText(b.Unit, b.Limit) + budget.Per(b.Window)
	what := "The budget " + strconv.Quote(b.Name) + " of " + limit
	if b.IsLimit() {
		what = "The limit of " + limit + " of this API key"
	}
	could := "; this call could use " + store.AmountText(b.Unit, roundedUp(b.Unit, amount)) + "."
	if b.Unit == store.USD {
		could = "; this call could cost " + store.AmountText(b.Unit, roundedUp(b.Unit, amount)) + "."
	}
	const fewer = " Ask for fewer output tokens"
	again := " Try again in " + waitText(wait) + "."
	left := " has " + store.AmountText(b.Unit, g.Unspent) + " left"
	switch {
	case b.Unit == store.Calls:
		who := "This API key"
		if b.KeyID == "" {
			who = "This machine"
		}
		return who + " has " + store.AmountText(b.Unit, b.Limit) + " under way, as many as it may." + again
	case amount > b.Limit:
		could = strings.TrimPrefix(could, ";")
		return what + " is too low:" + could + fewer + " or a higher limit."
	case g.Busy:
		return what + left + ", reserved by calls under way" + could + again
	case g.Lent:
		return what + left + ", lent to another instance of the gateway" + could + again
	case b.IsLimit() && g.Unspent == 0:
		return "This API key has reached its limit of " + limit + "." + again
	}
	if left += could; g.Unspent == 0 {
		left = " is used up."
	} else if !b.IsLimit() {
		left += fewer + "."
	}
	if wait == 0 {
		return what + left + " Ask for a higher limit."
	}
	return what + left + " Resets " + time.UnixMilli(g.End).UTC().Format("Jan 2, 15:04 UTC") + "."
}

// waitText returns a wait in words: seconds up to two minutes, then minutes, hours from
// two hours on.
func waitText(wait time.Duration) string {
	n, unit := int64((wait+time.Second-1)/time.Second), "second"
	switch {
	case wait >= 2*time.Hour:
		n, unit = int64((wait+time.Hour-1)/time.Hour), "hour"
	case n == 60 || n >= 120:
		n, unit = (n+59)/60, "minute"
	}
	if n != 1 {
		unit += "s"
	}
	return strconv.FormatInt(n, 10) + " " + unit
}

func unpriced(b *store.Budget, model string) *apierr.Error {
	return apierr.New(403, CodeUnpriced, "The price of %s is not known, and the budget %s refuses such models. Set a price, or let the budget pass them.", model, strconv.Quote(b.Name))
}

func unavailable(cause error) *apierr.Error {
	e := apierr.New(503, "unavailable", "The budgets of this machine cannot be read at the moment. Try again in a moment.")
	e.RetryAfter, e.Err = time.Second, cause
	return e
}

// roundedUp rounds an estimate up to cents, or below ten cents to two digits, as
// store.AmountText shows it: so it is not shown as what it does not fit into.
func roundedUp(unit string, n int64) int64 {
	if unit != store.USD {
		return n
	}
	step := int64(store.NanoDollars / 100)
	for n < 10*step && step > 1 {
		step /= 10
	}
	return (n + step - 1) / step * step
}
