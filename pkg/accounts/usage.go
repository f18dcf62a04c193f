package accounts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/machine/rpc"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// countsEvery is how often counts and usage go to the object, per isolate and
// machine.
const countsEvery = time.Second

// staleWait is when a wait that has not ended is taken for lost with its
// request.
const staleWait = 10 * time.Second

// maxAbsurd bounds the accounts and models whose usage the log has named.
const maxAbsurd = 256

// used records one attempt of a client's POST: an answer that was accepted, or
// a failure with its error. The tokens and the cost of an accepted answer are added to the
// request's trace.
func (p *Pool) used(m *snapshot.Machine, r *httpmsg.Request, t *Trace, a *Attempt, failed *apierr.Error) {
	if !recorded(r) {
		return
	}
	row := rowOf(t, r, a)
	if failed != nil {
		row.Errors = 1
		row.Causes.Count(failed)
	}
	switch {
	case a.Failure != nil && !a.unresolved:
	case a.Used.Price == Later:
		stated := a.Unbilled != nil && a.Used.Tokens.Known // by the end of a stream
		leaveUnbilled(m, t, r, a)
		if stated {
			a.Used.Price = ByTokens
			t.use(p.price(m, a, &row))
		} else {
			a.Used.Tokens, row.Unpriced = llm.Usage{}, 1
			t.use(store.Used{Unpriced: []string{"background"}})
		}
		settle(a.reserved, a, &row, p.Now().UnixMilli())
		a.reserved = nil // Result.Bill has nothing more to settle
		if failed != nil {
			only := row.Kind()
			only.Errors = 1 // its cause would come before its attempt
			p.add(m, r, t, &only)
		}
		return
	default:
		used := p.price(m, a, &row)
		settle(a.reserved, a, &row, p.Now().UnixMilli())
		t.use(used)
	}
	p.add(m, r, t, &row)
}

// leaveUnbilled notes that the usage of an answer with the price Later is not recorded, and
// what budgets count until it is.
func leaveUnbilled(m *snapshot.Machine, t *Trace, r *httpmsg.Request, a *Attempt) {
	if a.Unbilled != nil {
		return
	}
	a.Counted = estimates(a.reserved)
	row := rowOf(t, r, a)
	row.Unpriced = 1
	a.Unbilled, a.Labels = &row, t.label(nil, m, r, &row)
}

// rowOf returns the row of an attempt.
func rowOf(t *Trace, r *httpmsg.Request, a *Attempt) usage.Row {
	return usage.Row{
		KeyID: t.KeyID, ConnectionID: a.Connection.ID, Provider: a.Target.Provider.ID, Model: a.Target.ID(),
		Endpoint: r.Route, Requests: 1,
	}
}

// settleTokens estimates the tokens that the answer does not state, or that cannot be true.
// The log names the latter once for each account and model.
func (p *Pool) settleTokens(m *snapshot.Machine, a *Attempt) {
	u := &a.Used.Tokens
	if a.Used.Price != ByTokens || a.Estimator == nil && !u.Known {
		return
	}
	stated := *u
	if a.Settle(m, u) && p.Log != nil {
		who := "usage of account " + a.Connection.ID + " for " + apierr.Shorten(a.Target.ID(), maxRecordText)
		if p.firstAbsurd(who) {
			p.Log(fmt.Sprintf("%s cannot be true and is not counted: %d input and %d output tokens, %d searches", who,
				stated.Input, stated.Output, stated.Searches))
		}
	}
}

// Settle replaces the counts that the answer does not state, or that cannot be true, and reports
// whether there are any of the latter.
func (a *Attempt) Settle(m *snapshot.Machine, u *llm.Usage) (absurd bool) {
	context, longest := int64(0), int64(0)
	if a.Estimator != nil && max(u.Input, u.Output) > ir.SureTokens {
		context, longest = a.Target.Limits(m)
	}
	return u.Settle(a.Estimator, context, longest)
}

// firstAbsurd reports whether the log has not named the usage of an account and model yet.
func (p *Pool) firstAbsurd(who string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.absurd[who] {
		return false
	}
	if p.absurd == nil || len(p.absurd) >= maxAbsurd {
		p.absurd = map[string]bool{}
	}
	p.absurd[who] = true
	return true
}

// price adds what an answer has used to the row of its attempt, and returns it.
func (p *Pool) price(m *snapshot.Machine, a *Attempt, row *usage.Row) store.Used {
	if !a.Target.Provider.StatesCost || a.Target.OwnPrice(m) != "" {
		a.Used.Tokens.Charged = false // its unit is not known, or the machine pays another price
	}
	p.settleTokens(m, a)
	price := a.Target.Price(m)
	if a.Used.Tokens.UsesTools() {
		price = a.Target.FullPrice(m)
	}
	row.Price(price, &a.Used.Tokens, a.Used.Media)
	switch a.Used.Price {
	case Stated:
		row.CostUSD, row.Unpriced = a.Used.USD, 0
	case Unknown:
		row.CostUSD, row.Unpriced, price = 0, 1, ""
	}
	used := row.Used()
	if row.Unpriced > 0 {
		used.Unpriced = usage.Missing(price, &a.Used.Tokens, a.Used.Media)
	}
	return used
}

// Bill records what a job has used that this call or an earlier one has created, unless it
// was recorded before. The object adds it to the usage in the turn that notes that. endpoint
// is the route of the call that created it.
func (r *Result) Bill(ctx context.Context, id, endpoint string) {
	if r.pool == nil { // a test's Sender
		return
	}
	defer r.Closed()
	a := r.Attempt
	if !a.Used.Tokens.Known || a.Used.Tokens.Estimated {
		return
	}
	row := usage.Row{KeyID: r.trace.KeyID, ConnectionID: a.Connection.ID, Provider: a.Target.Provider.ID,
		Model: a.Target.ID(), Endpoint: endpoint, Requests: 1}
	r.pool.price(r.machine, a, &row)
	out, err := rpc.Call[rpc.Billed](ctx, r.pool.Object, r.machine.ID, "job.bill", rpc.JobBill{ID: id, Usage: row,
		Labels: r.trace.label(nil, r.machine, r.request, &row)})
	if err == nil && out.Billed {
		settle(a.reserved, a, &row, r.pool.Now().UnixMilli())
	}
}

// recorded reports whether the usage of a client's request is recorded: of a POST, and
// of a WebSocket.
func recorded(r *httpmsg.Request) bool {
	return r.Method == "POST" || r.Method == "GET" && strings.EqualFold(r.Header.Get("upgrade"), "websocket")
}

// Use records what one of the answers of a WebSocket has used.
func (r *Result) Use(u Used) {
	if r.pool == nil { // a test's Sender
		return
	}
	a := *r.Attempt
	a.Used = u
	r.pool.used(r.machine, r.request, r.trace, &a, nil)
}

// RecordDirect records an attempt that the gateway made itself, without an account
// and free of charge.
func (p *Pool) RecordDirect(m *snapshot.Machine, r *httpmsg.Request, t *Trace, to *routing.Target, err error) {
	a := &Attempt{Target: to, Connection: to.Connections[0], Used: Used{Price: Stated}}
	var e *apierr.Error
	if errors.As(err, &e) {
		if a.Failure = e; e.Status == apierr.StatusClientLeft {
			return
		}
	} else if err != nil {
		e = apierr.New(502, "", "")
	}
	p.used(m, r, t, a, e)
}

// add notes what an attempt has used. Rows of one kind are added up, and go to the object
// with the next report.
func (p *Pool) add(m *snapshot.Machine, r *httpmsg.Request, t *Trace, row *usage.Row) {
	if m == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := p.rowOf(m, row)
	sum.AddCounts(row)
	sum.Sizes.Add(&row.Sizes)
	rep := p.reportOf(m.ID)
	rep.Labels = t.label(rep.Labels, m, r, row)
}

// rowOf returns the row of a kind in the next report of a machine. The caller has the lock.
func (p *Pool) rowOf(m *snapshot.Machine, kind *usage.Row) (row *usage.Row) {
	r := p.reportOf(m.ID)
	r.Usage, row = usage.Of(r.Usage, kind)
	return row
}

// gather waits until the counts of a machine may be reported, so that many
// requests are one report. One request at a time waits; it runs after its
// answer, so no one waits for it. due is false for the others.
func (p *Pool) gather(ctx context.Context, m *snapshot.Machine) (due bool, err error) {
	now := p.Now()
	if m.CountsDue(now) {
		return true, nil
	}
	if p.Pause == nil || !p.waits(m.ID, now) {
		return false, nil
	}
	err = p.Pause.Pause(ctx, countsEvery)
	p.mu.Lock()
	delete(p.waiting, m.ID)
	p.mu.Unlock()
	m.CountsDue(p.Now())
	return err == nil, err
}

// waits notes that the caller waits for the counts of a machine, and reports whether no one
// else does.
func (p *Pool) waits(machineID string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since, ok := p.waiting[machineID]; ok && now.Sub(since) < staleWait && !now.Before(since) {
		return false
	}
	if p.waiting == nil || len(p.waiting) >= maxReports {
		p.waiting = map[string]time.Time{}
	}
	p.waiting[machineID] = now
	return true
}
