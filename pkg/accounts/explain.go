package accounts

import (
	"cmp"
	"time"

	"weir/pkg/budget"
	"weir/pkg/provider"
	"weir/pkg/routing"
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
	pl := &plan{call: call, explains: true}
	var steps []Step
	leaveOut := func(to *routing.Target, why string) {
		for _, conn := range to.Connections {
			steps = append(steps, Step{Target: to, Connection: conn, Skipped: why})
		}
	}
	try, reached := 0, 0
	for i := range call.Targets {
		to, from := &call.Targets[i], len(steps)
		switch {
		case i != reached:
			leaveOut(to, "not_reached")
		case to.TooLong:
			leaveOut(to, routing.ContextLength.String())
			reached = routing.After(call.Targets, i, routing.ContextLength)
		default:
			o := pl.ordering(to, now.UnixMilli())
			home := o.home()
			pl.outcomes = nil
			list := o.sort(pl.ready(nil, to, pin, o.now))
			charges, refused := chargesOf(call, to, left)
			if len(list) > 0 {
				keyRefused = cmp.Or(keyRefused, limitOf(call, to, left))
				refused = cmp.Or(keyRefused, refused)
			}
			for j := range list {
				c := &list[j]
				if refused != "" {
					steps = append(steps, Step{Target: to, Connection: c.conn, Skipped: refused})
					continue
				}
				try++
				steps = append(steps, Step{Target: to, Connection: c.conn, Try: try, Trial: c.trial, Outlier: c.outlier,
					Low: c.low})
			}
			for j := range pl.outcomes {
				o := &pl.outcomes[j]
				steps = append(steps, Step{Target: to, Connection: o.Connection, Skipped: o.Skipped, Wait: o.wait})
			}
			for j := range steps[from:] {
				steps[from+j].Charges = charges
				steps[from+j].Home = home != nil && steps[from+j].Connection == home
			}
			for _, conn := range to.Connections {
				if pin != "" && conn.ID != pin {
					steps = append(steps, Step{Target: to, Connection: conn, Skipped: "pinned"})
				}
			}
			switch reached = i + 1; {
			case len(list) == 0:
				reached = routing.After(call.Targets, i, classOf(pl.outcomes.cause()))
			case keyRefused != "":
				reached = -1
			case refused != "":
				reached = routing.After(call.Targets, i, routing.Limit)
			}
		}
		after := routing.Policy(call.Targets, i)
		for j := range steps[from:] {
			steps[from+j].NextAfter = after
		}
	}
	return steps
}

// limitOf returns CodeKeyLimit if a limit of the call's key refuses it, else "". How many
// calls are under way is not known.
func limitOf(call *Call, to *routing.Target, left func(b *store.Budget) int64) string {
	limits := call.Machine.Limits(call.Trace.KeyID)
	if left == nil || len(limits) == 0 || call.Estimate.Follows {
		return ""
	}
	for i, amount := range call.amounts(limits, to) {
		if b := &limits[i]; b.Unit != store.Calls && amount > left(b) {
			return CodeKeyLimit
		}
	}
	return ""
}

// chargesOf returns what a call to a target would reserve of budgets, and the code of the
// first refusal. It sets the limit of the answer as the call would have it.
func chargesOf(call *Call, to *routing.Target, left func(b *store.Budget) int64) (list []Charge, refused string) {
	if left == nil {
		return nil, ""
	}
	uses, least, most := call.uses(to)
	to.OutputLimit = 0
	for i := range uses {
		u := &uses[i]
		c := Charge{Budget: u.Budget, Left: left(u.Budget)}
		c.Amount = budget.Share(c.Left, u.least, u.most)
		switch {
		case call.Estimate.Follows:
			c.Amount = 0
		case u.refused():
			c.Refused = CodeUnpriced
		case c.Amount > c.Left || c.Left <= 0:
			c.Refused = CodeBudgetExceeded
		default:
			u.limit(to, &call.Estimate, c.Amount, least, most)
		}
		refused = cmp.Or(refused, c.Refused)
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
