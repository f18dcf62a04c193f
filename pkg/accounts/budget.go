package accounts

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"weir/pkg/budget"
	"weir/pkg/catalog"
	"weir/pkg/llm"
	"weir/pkg/machine/rpc"
	"weir/pkg/routing"
	"weir/pkg/setup"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
)

// Codes of calls that budgets and limits refuse.
const (
	CodeBudgetExceeded = "budget_exceeded"
	CodeUnpriced       = "model_not_priced"
	CodeKeyLimit       = "rate_limit_exceeded" // requests or tokens of a key
	CodeConcurrency    = "concurrency_limit_exceeded"
)

// errLent is the cause of a refusal by a budget whose rest is lent.
var errLent = errors.New("lent to other calls")

// Estimate is what a call may use, for budgets. The zero value is a call of unknown
// use, which is admitted as long as anything is left.
type Estimate struct {
	Input    int64  // tokens that the model reads
	Output   int64  // the most tokens of one answer that the request asks for; 0 for no limit
	Choices  int64  // answers; 0 is one
	Searches int64  // the most searches by a tool of the vendor
	Service  string // the tier that it asks for if that costs more: "priority", "fast"
	Text     bool   // the answer is a text
	// Media is what the call orders besides tokens, such as images; nil for nothing that is
	// known before the answer.
	Media *usage.Media
	// Follows marks a call that belongs to an earlier one, such as a poll, or that is
	// free, such as a count of tokens. It is not refused, and only what its answer says
	// it cost counts.
	Follows bool
	// Counted is what the budgets have counted, by their ids, for the call that this one
	// follows and whose usage it records; nil if it records none.
	Counted map[string]int64
}

const (
	bytesPerToken = 4
	leastOutput   = 4096      // tokens of an answer without a limit that a budget must have
	unknownOutput = 128 << 10 // the longest answer of a model without a known limit
	askTries      = 3         // other calls may take what was lent for one
	rounding      = 1e-3      // nano-dollars: the error of a cost in floating point
	// Bounds of an estimate, above all that one call can use: a call that may use more than a
	// budget has is refused, so no estimate is cut to less. maxEstimate is in tokens or
	// characters: a request has at most 128 answers.
	maxEstimate = 100_000_000
	maxImages   = 1000
	maxSearches = 1000
	maxSeconds  = 24 * 60 * 60
)

// InputTokens and OutputTokens make an Estimate of a text the llm.Estimator of its answer.
func (e *Estimate) InputTokens() int64 { return e.Input }

// OutputTokens returns 0.
func (e *Estimate) OutputTokens() int64 { return 0 }

// EstimateOf returns the Estimate of a call whose model reads a text and does not write
// one.
func EstimateOf(text []byte) Estimate {
	return Estimate{Input: int64(len(text)+bytesPerToken-1) / bytesPerToken}
}

// reservation is what a call has reserved of one budget.
type reservation struct {
	budget.Hold
	priced  bool  // the price of the model is known
	follows bool  // see Estimate
	counted int64 // see Estimate.Counted
	unknown bool  // an answer had no known cost, see CountUnpriced
}

// admit reserves of the limits of the call, its key's and the machine's, once for all its targets: of tokens the
// least that is reserved of budgets for the first one. The error is a 429.
func (pl *plan) admit(ctx context.Context, to *routing.Target) error {
	call := pl.call
	limits := call.Machine.Limits(call.Trace.KeyID)
	if len(limits) == 0 || pl.limits > 0 || call.Estimate.Follows || !recorded(call.Request) {
		return nil
	}
	w := call.Machine.Local.Wallet(pl.newHolder)
	if w == nil {
		return unavailable(nil)
	}
	for i, amount := range call.amounts(limits, to) {
		hold, err := pl.hold(ctx, call.Machine.ID, w, &limits[i], amount, amount)
		if err != nil {
			return err
		}
		pl.reserved = append(pl.reserved, reservation{Hold: hold})
		pl.limits++
	}
	return nil
}

// Busy returns the refusal of a call whose key or machine is known to have as many calls under
// way as it may, or nil: so that its body is not read. Any other call is judged by Send, which
// may ask the object.
func Busy(m *snapshot.Machine, keyID string, now time.Time) error {
	w := m.Local.CurrentWallet()
	if w == nil {
		return nil
	}
	limits := m.Limits(keyID)
	for i := range limits {
		if b := &limits[i]; b.Unit == store.Calls {
			if g := w.Refusal(b, 1, now.UnixMilli()); g != nil {
				return exceeded(b, g, 1)
			}
		}
	}
	return nil
}

// afford reserves the estimate of a call to a target of each budget that covers it. It
// reports false if one of them refuses it. Without budgets it costs nothing.
func (pl *plan) afford(ctx context.Context, to *routing.Target) bool {
	call := pl.call
	if len(call.Machine.Budgets) == 0 || !recorded(call.Request) && call.Estimate.Counted == nil {
		return true
	}
	err := pl.reserve(ctx, to)
	if err == nil {
		return true
	}
	pl.releaseTarget()
	pl.outcomes = append(pl.outcomes, Outcome{Target: to, cause: rankNone, err: err})
	return false
}

// reserve is afford with the reason of a refusal. pl.reserved has what it has reserved
// until then.
func (pl *plan) reserve(ctx context.Context, to *routing.Target) *apierr.Error {
	m, e := pl.call.Machine, &pl.call.Estimate
	w := m.Local.Wallet(pl.newHolder)
	if w == nil {
		return unavailable(nil)
	}
	uses, least, most := pl.call.uses(to)
	to.OutputLimit = 0
	for i := range uses {
		u := &uses[i]
		r := reservation{priced: u.priced, follows: e.Follows, counted: e.Counted[u.ID]}
		if r.follows {
			if h, ok := w.Reserve(u.Budget, 0, pl.Now().UnixMilli()); ok {
				r.Hold = h
				pl.reserved = append(pl.reserved, r)
			}
			continue
		}
		if u.refused() {
			return unpriced(u.Budget, to.ID())
		}
		hold, err := pl.hold(ctx, m.ID, w, u.Budget, u.least, u.most)
		if err != nil {
			return err
		}
		u.limit(to, e, hold.Amount, least, most)
		r.Hold = hold
		pl.reserved = append(pl.reserved, r)
	}
	return nil
}

// budgetUse is what a call to a target may use of a budget.
type budgetUse struct {
	*store.Budget
	least, most int64 // they differ for a call without a limit of its output
	priced      bool  // the price of the model is known
}

// refused reports whether the budget refuses models without a price, and this is one.
func (u *budgetUse) refused() bool { return u.Unit == store.USD && !u.priced && u.RefuseUnpriced }

// limit lowers the limit of the answers of a target to the output tokens for which an amount
// was reserved.
func (u *budgetUse) limit(to *routing.Target, e *Estimate, amount, least, most int64) {
	output := most
	if amount < u.most {
		output = least + int64(float64(most-least)*float64(amount-u.least)/float64(u.most-u.least))
	}
	if (output < most || u.Unit != store.Requests && e.Output > 0) && (to.OutputLimit == 0 || output < to.OutputLimit) {
		to.OutputLimit = output
	}
}

// uses returns what a call to a target may use of each budget that covers it, and the fewest
// and the most output tokens of one answer.
func (c *Call) uses(to *routing.Target) (list []budgetUse, least, most int64) {
	m, e := c.Machine, &c.Estimate
	price, asked := e.price(m, to), catalog.PlainName(c.Trace.Asked)
	least, most = e.outputs(m, to)
	fewTokens, lowCost := e.of(price, least)
	tokens, cost := e.of(price, most)
	for i := range m.Budgets {
		b := &m.Budgets[i]
		if !c.labelled(b) || !to.Charged(b, c.Trace.KeyID, asked) {
			continue
		}
		if amount, counts := amountOf(b, price, tokens, cost); counts {
			low, _ := amountOf(b, price, fewTokens, lowCost)
			list = append(list, budgetUse{b, low, amount, price != ""})
		}
	}
	return list, least, most
}

// labelled reports whether a call has the tag and the tool that a budget is of. One that follows
// has those of the call whose usage it records.
func (c *Call) labelled(b *store.Budget) bool {
	if _, counted := c.Estimate.Counted[b.ID]; counted {
		return true
	}
	has := func(tag string) bool { return store.SameTag(tag, b.Tag) }
	return (b.Tag == "" || slices.ContainsFunc(c.Trace.Tags(c.Machine, c.Request), has)) &&
		(b.Tool == "" || b.Tool == setup.ToolOf(c.Request.Header.Get("user-agent")))
}

// amounts returns what a call to a target reserves of each of its limits: of tokens the
// least that it reserves of budgets.
func (c *Call) amounts(limits []store.Budget, to *routing.Target) []int64 {
	price := to.Price(c.Machine)
	output, _ := c.Estimate.outputs(c.Machine, to)
	tokens, _ := c.Estimate.of(price, output)
	amounts := make([]int64, len(limits))
	for i := range limits {
		amounts[i], _ = amountOf(&limits[i], price, tokens, 0)
	}
	return amounts
}

// amountOf returns how much of a budget a call reserves. counts is false for a free call
// and a budget in dollars.
func amountOf(b *store.Budget, price catalog.Price, tokens, cost int64) (amount int64, counts bool) {
	switch {
	case b.Unit == store.Tokens:
		return max(tokens, 1), true
	case b.Unit != store.USD:
		return 1, true
	case price == "":
		return 0, true
	}
	return max(cost, 1), !price.Free()
}

// hold reserves an amount of a budget: most, or a share of what is left, and at least
// least. Only if the slice of this isolate does not have it, the object is asked.
func (p *Pool) hold(ctx context.Context, machineID string, w *budget.Wallet, b *store.Budget,
	least, most int64) (budget.Hold, *apierr.Error) {
	for range askTries {
		now := p.Now()
		amount := w.Share(b, least, most, now.UnixMilli())
		if h, ok := w.Reserve(b, amount, now.UnixMilli()); ok {
			return h, nil
		}
		if g := w.Refusal(b, least, now.UnixMilli()); g != nil {
			return budget.Hold{}, exceeded(b, g, least)
		}
		h, g, err := p.ask(ctx, machineID, w, b, amount, least, most)
		switch {
		case err != nil:
			return budget.Hold{}, unavailable(err)
		case g == nil: // the budget was deleted
			return budget.Hold{Budget: b, Amount: most}, nil
		case h.Budget != nil:
			return h, nil
		case g.Refused && amount == least:
			return budget.Hold{}, exceeded(b, g, amount)
		}
	}
	return budget.Hold{}, exceeded(b, &budget.Grant{Lent: true, Busy: true, Wait: 1000}, least)
}

// ask asks the object for an amount and reserves it, or by now a smaller share, see hold.
// The Hold is empty if it was not lent; the Grant is nil if there is no such budget.
func (p *Pool) ask(ctx context.Context, machineID string, w *budget.Wallet, b *store.Budget,
	amount, least, most int64) (h budget.Hold, g *budget.Grant, err error) {
	sent := p.Now().UnixMilli()
	ask, done := w.Wait(b, amount)
	defer done()
	grants, err := p.take(ctx, machineID, w, ask)
	if err != nil || len(grants) == 0 {
		return h, nil, err
	}
	w.Apply(b, grants[0], amount, sent)
	if !grants[0].Refused {
		now := p.Now().UnixMilli()
		// Others may have reserved their shares meanwhile: less is left to share.
		h, _ = w.ReserveLent(b, min(amount, w.Share(b, least, most, now)), now)
	}
	return h, &grants[0], nil
}

// take asks the object for a slice.
func (p *Pool) take(ctx context.Context, machineID string, w *budget.Wallet, ask budget.Ask) ([]budget.Grant, error) {
	asks := budget.Asks{Holder: w.Holder, Asks: []budget.Ask{ask}}
	out, err := rpc.Call[rpc.Granted](ctx, p.Object, machineID, "budget.take", asks)
	return out.Grants, err
}

// newHolder returns a random name for the wallet of a machine, which begins with that of this
// process if there are several; "" without randomness.
func (p *Pool) newHolder() string {
	if p.Rand == nil {
		return ""
	}
	id, err := rpc.NewID(p.Rand, 12)
	if err != nil {
		return ""
	}
	if p.Seat != "" {
		id = p.Seat + "-" + id
	}
	return id
}

// Next reserves of budgets for the next answer of a WebSocket, after Use. It returns the
// error of a budget that is exhausted, or that refuses answers like the last one. While
// others have what is left, or the object cannot be reached, the socket goes on: what it
// uses counts afterwards.
func (r *Result) Next(ctx context.Context) *apierr.Error {
	if r.pool == nil { // a test's Sender
		return nil
	}
	w := r.machine.Local.CurrentWallet()
	for i := range r.Attempt.reserved {
		n := &r.Attempt.reserved[i]
		if n.Budget == nil || w == nil {
			continue
		}
		amount := int64(1)
		if n.Budget.Unit == store.USD && !n.priced {
			amount = 0
		}
		if n.unknown && n.Budget.RefuseUnpriced {
			return unpriced(n.Budget, r.Target.ID())
		}
		hold, err := r.pool.hold(ctx, r.machine.ID, w, n.Budget, amount, amount)
		switch {
		case err == nil:
			n.Hold = hold
		case err.Code == CodeBudgetExceeded && err.Err != errLent:
			return err
		}
	}
	return nil
}

// releaseTarget ends what is reserved for a target that has not answered.
func (pl *plan) releaseTarget() {
	for i := range pl.reserved[pl.limits:] {
		pl.reserved[pl.limits+i].Settle(0, pl.Now().UnixMilli())
	}
	pl.reserved = pl.reserved[:pl.limits:pl.limits]
}

// release ends what a call without an answer has reserved. It counts as a request of its
// key if an attempt was sent.
func (pl *plan) release() {
	pl.releaseTarget()
	for i := range pl.reserved {
		r, used := &pl.reserved[i], int64(0)
		if r.Budget.Unit == store.Requests && pl.outcomes.attempts() > 0 {
			used = 1
		}
		r.Settle(used, pl.Now().UnixMilli())
	}
	pl.reserved, pl.limits = nil, 0
}

// outputs returns the fewest and the most output tokens of one answer that a call to a
// target may reserve. They differ for a call without a limit. The request is sent with a
// limit of what was reserved, so an outdated limit of the model does not exceed a budget.
func (e *Estimate) outputs(m *snapshot.Machine, to *routing.Target) (least, most int64) {
	if !e.Text {
		return 0, 0
	}
	context, longest := to.Limits(m)
	switch {
	case e.Output > 0: // no answer is longer than the model's longest
		most = min(e.Output, cmp.Or(longest, context, maxEstimate), maxEstimate)
		return most, most
	case longest == 0:
		longest = min(unknownOutput, cmp.Or(context, unknownOutput))
	}
	if context > 0 { // which the input and the answer share
		longest = min(longest, max(context-e.Input, leastOutput))
	}
	return min(leastOutput, longest), longest
}

// price returns the price of a target, with that of the searches that the estimate has. It
// is unknown or free if the model's own is.
func (e *Estimate) price(m *snapshot.Machine, to *routing.Target) catalog.Price {
	if e.Searches > 0 {
		return to.FullPrice(m)
	}
	return to.Price(m)
}

// of returns the tokens and the nano-dollars that a call may use whose answers have up to
// output tokens each.
func (e *Estimate) of(price catalog.Price, output int64) (tokens, nanoUSD int64) {
	u := llm.Usage{Known: true, Input: min(e.Input, maxEstimate), Output: min(output*max(e.Choices, 1), maxEstimate),
		Searches: min(e.Searches, maxSearches), Service: e.Service}
	var ordered *usage.Media
	if e.Media != nil { // bounded: a cost that is not believed is no estimate
		m := *e.Media
		m.Images, m.Characters, m.Seconds = min(m.Images, maxImages), min(m.Characters, maxEstimate),
			min(m.Seconds, maxSeconds)
		ordered = &m
	}
	usd, known := usage.Cost(price, &u, ordered)
	if !known && (u.Searches > 0 || u.Service != "") { // their price is not known
		u.Searches, u.Service = 0, ""
		usd, _ = usage.Cost(price, &u, ordered)
	}
	return u.Input + u.Output, int64(math.Ceil(usd*store.NanoDollars - rounding))
}

// settle replaces what an attempt has reserved by what it has used. An answer whose
// use is not known counts as estimated. After a failed attempt another one has what is
// reserved.
func settle(reserved []reservation, a *Attempt, row *usage.Row, now int64) {
	for i := range reserved {
		r := &reserved[i]
		if r.Budget == nil {
			continue
		}
		used := r.Amount
		switch r.Budget.Unit {
		case store.Requests, store.Calls:
			if used = 1; r.follows || a.Failure != nil {
				used = 0
			}
		case store.Tokens:
			if a.Used.Tokens.Known {
				used = row.InputTokens + row.OutputTokens
			}
		case store.USD:
			switch {
			case row.Unpriced == 0:
				used = int64(math.Round(row.CostUSD * store.NanoDollars))
			case !r.follows && (!r.priced || r.Amount <= 1): // no estimate counts instead
				r.CountUnpriced()
				r.unknown = true
			}
		}
		if a.Failure != nil {
			r.Count(used, now)
			continue
		}
		r.Settle(used-r.counted, now)
	}
}

// estimates returns what budgets count for an answer that does not say what it has used.
func estimates(reserved []reservation) map[string]int64 {
	amounts := map[string]int64{}
	for i := range reserved {
		if r := &reserved[i]; r.Budget != nil {
			amounts[r.Budget.ID] = r.Amount
		}
	}
	return amounts
}

// reportBudgets adds what the machine's calls have used to a report, and returns when.
func (p *Pool) reportBudgets(m *snapshot.Machine, r *report) (sent int64) {
	r.Budgets = nil
	w := m.Local.CurrentWallet()
	if w == nil {
		return 0
	}
	if asks := w.Report(m.Budget, p.Now().UnixMilli()); len(asks) > 0 {
		r.Budgets = &budget.Asks{Holder: w.Holder, Asks: asks}
	}
	return p.Now().UnixMilli()
}

// applyBudgets takes the slices that the answer to a report has.
func (r *report) applyBudgets(m *snapshot.Machine, out rpc.Reported, sent int64) {
	w := m.Local.CurrentWallet()
	if r.Budgets == nil || w == nil {
		return
	}
	w.Reported(out.Budgets, sent)
}
