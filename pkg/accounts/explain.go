package accounts

import (
	"cmp"
	"time"

	"weir/pkg/budget"
	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

// Step is one account of an explained plan.
type Step struct {
	Target     *routing.Target
	Connection *store.Connection
	// Try is the place in the plan from 1 on; 0 for an account left out. A
	// place over the limit of attempts is never reached.
	Try int
	// Skipped is why it is left out: the connection's status (needs_reauth, …),
	// the reason of its cooldown (rate_limited, …), "pinned" when the call names
	// another one, the code with which the key or a budget refuses the call,
	// "context_length" when the request does not fit into the model's context, or
	// "not_reached" when the call ends before it.
	Skipped string
	// Wait is what is left of the cooldown.
	Wait time.Duration
	// Trial reports that a long cooldown has ended, or has lasted 30 minutes:
	// while one request tries the account, the others skip it.
	Trial bool
	// Outlier reports that it fails so often that the others are tried first.
	Outlier bool
	// Low reports that so little is left of a limit that accounts of equal priority
	// are tried first.
	Low bool
	// NextAfter names the classes of failures after which the next member of the
	// combo is tried; see routing.Classes.
	NextAfter []string
	// Home reports that the session of the call belongs to this account as long as all
	// accounts of the target are ready.
	Home bool
	// Charges are what the call would reserve of budgets.
	Charges []Charge
}

// Charge is what a call would reserve of a budget that covers it.
type Charge struct {
	Budget  *store.Budget
	Amount  int64  // nano-dollars, tokens or requests
	Left    int64  // of the limit
	Refused string // the code of the refusal, or ""
}

// MaxAttempts is the number of upstream calls a plan makes at most.
const MaxAttempts = maxAttempts

// Explain returns the plan that a call would follow now, without calling anyone
// and without taking a turn: for each target the accounts to be tried in
// order, then those left out. pin is the value of x-connection-id, or "". left returns
// how much is left of a budget, or of a limit of the call's key; it is nil without any.
// keyRefused is the code with which the key is refused, or "".
func Explain(call *Call, pin string, now time.Time, left func(b *store.Budget) int64, keyRefused string) []Step {
	e := &explainer{}
	pl := &plan{call: call, explains: true}
	try, reached := 0, 0
	for i := range call.Targets {
		to := &call.Targets[i]
		e.to, e.left, e.cause = to, nil, rankNone
		from, class := len(e.steps), routing.ContextLength
		switch {
		case i != reached:
			e.leaveOut("not_reached")
		case to.TooLong:
			e.leaveOut(class.String())
			reached = routing.After(call.Targets, i, class)
		default:
			o := pl.ordering(to, now.UnixMilli())
			home := o.home()
			list := o.sort(ready(nil, call.Machine, to, pin, o.now, e))
			charges, refused := chargesOf(call, to, left)
			if len(list) > 0 {
				keyRefused = cmp.Or(keyRefused, limitOf(call, to, left))
				refused = cmp.Or(keyRefused, refused)
			}
			for j := range list {
				if refused != "" {
					e.steps = append(e.steps, Step{Target: to, Connection: list[j].conn, Skipped: refused})
					continue
				}
				try++
				e.steps = append(e.steps, Step{Target: to, Connection: list[j].conn, Try: try, Trial: list[j].trial,
					Outlier: list[j].outlier, Low: list[j].low})
			}
			e.steps = append(e.steps, e.left...)
			for j := range e.steps[from:] {
				e.steps[from+j].Charges = charges
				e.steps[from+j].Home = home != nil && e.steps[from+j].Connection == home
			}
			for _, conn := range to.Connections {
				if pin != "" && conn.ID != pin {
					e.steps = append(e.steps, Step{Target: to, Connection: conn, Skipped: "pinned"})
				}
			}
			switch reached = i + 1; {
			case len(list) == 0:
				reached = routing.After(call.Targets, i, classOf(e.cause))
			case keyRefused != "":
				reached = -1
			case refused != "":
				reached = routing.After(call.Targets, i, routing.Limit)
			}
		}
		after := routing.Policy(call.Targets, i)
		for j := range e.steps[from:] {
			e.steps[from+j].NextAfter = after
		}
	}
	return e.steps
}

// limitOf returns CodeKeyLimit if a limit of the call's key refuses it, else "". How many of
// its calls are under way is not known.
func limitOf(call *Call, to *routing.Target, left func(b *store.Budget) int64) string {
	limits := call.Machine.KeyLimits(call.Trace.KeyID)
	if left == nil || len(limits) == 0 || call.Estimate.Follows {
		return ""
	}
	price := to.Price(call.Machine)
	output, _ := call.Estimate.outputs(call.Machine, to)
	tokens, _ := call.Estimate.of(price, output)
	for i := range limits {
		b := &limits[i]
		if amount, _ := amountOf(b, price, tokens, 0); b.Unit != store.Calls && amount > left(b) {
			return CodeKeyLimit
		}
	}
	return ""
}

// chargesOf returns what a call to a target would reserve of budgets, and the code of the
// first refusal.
func chargesOf(call *Call, to *routing.Target, left func(b *store.Budget) int64) (list []Charge, refused string) {
	if left == nil {
		return nil, ""
	}
	price, asked := call.Estimate.price(call.Machine, to), catalog.PlainName(call.Trace.Asked)
	least, most := call.Estimate.outputs(call.Machine, to)
	fewTokens, lowCost := call.Estimate.of(price, least)
	tokens, cost := call.Estimate.of(price, most)
	for i := range call.Machine.Budgets {
		b := &call.Machine.Budgets[i]
		if !to.Charged(b, call.Trace.KeyID, asked) {
			continue
		}
		amount, counts := amountOf(b, price, tokens, cost)
		if !counts {
			continue
		}
		low, _ := amountOf(b, price, fewTokens, lowCost)
		c := Charge{Budget: b, Left: left(b)}
		c.Amount = budget.Share(c.Left, low, amount)
		switch {
		case call.Estimate.Follows:
			c.Amount = 0
		case b.Unit == store.USD && price == "" && b.RefuseUnpriced:
			c.Refused = CodeUnpriced
		case c.Amount > c.Left || c.Left <= 0:
			c.Refused = CodeBudgetExceeded
		}
		if refused == "" {
			refused = c.Refused
		}
		list = append(list, c)
	}
	return list, refused
}

// stands is put where a credential would be.
const stands = "a-credential"

// Usable reports by its error whether the connection holds the credentials that
// the attempt presents, or can obtain them.
func Usable(a *Attempt, to *routing.Target, conn *store.Connection) error {
	has := func(field string) secret.Secret {
		if conn.Secrets[field] == "" {
			return secret.Secret{}
		}
		return secret.New(stands)
	}
	cred := provider.Credential{APIKey: has(store.APIKey), AccessToken: has(store.AccessToken),
		AccessKeyID: has(store.AccessKeyID), SecretAccessKey: has(store.SecretAccessKey)}
	if renewable(conn) {
		cred.AccessToken = secret.New(stands)
	}
	var h httpmsg.Header
	err := provider.AuthorizeOf(&h, to.Provider, a.Base, conn, cred)
	if err == provider.ErrMustSign {
		if cred.AccessKeyID.IsZero() && cred.APIKey.IsZero() {
			return provider.ErrNoCredential
		}
		err = nil
	}
	return err
}

type explainer struct {
	to          *routing.Target
	steps, left []Step
	cause       int // the highest rank of what leaves accounts of the target out
}

// leaveOut adds the accounts of a target that is left out as a whole.
func (e *explainer) leaveOut(why string) {
	for _, conn := range e.to.Connections {
		e.steps = append(e.steps, Step{Target: e.to, Connection: conn, Skipped: why})
	}
}

func (e *explainer) skip(conn *store.Connection, status string, wait time.Duration, s snapshot.State) {
	reason := s.Reason
	switch status {
	case "":
		e.cause = max(e.cause, rankOf(reason))
	case needsReauth:
		e.cause = max(e.cause, rankRefused)
	}
	if status != "" {
		reason = status
	}
	e.left = append(e.left, Step{Target: e.to, Connection: conn, Skipped: reason, Wait: wait})
}
