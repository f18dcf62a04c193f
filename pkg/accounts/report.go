package accounts

import (
	"context"
	"slices"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
)

// Bounds of what waits to be reported.
const (
	maxReports   = 256 // machines; from there on reports list few requests
	maxMachines  = 4 * maxReports
	maxShed      = 16  // requests that a report may list then: the slowest and most expensive
	maxPerReport = 64  // cooldowns and clearings
	maxLastError = 200 // bytes
)

// report is the next report to the object of a machine.
type report struct {
	rpc.Report
	at int64
	// late reports that the object was not reached: the report waits for its second, however
	// long its list is.
	late bool
}

// cool notes a cooldown in this isolate and for the next report.
func (p *Pool) cool(m *snapshot.Machine, connection, model string, span time.Duration, reason string, failures int,
	e *apierr.Error, now time.Time) {
	c := store.Cooldown{
		ConnectionID: connection, Model: model, Reason: reason, Failures: failures,
		Since: now.UnixMilli(), Until: now.Add(span).UnixMilli(),
	}
	c = m.Cool(c)
	text := e.Told(maxLastError)
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.reportOf(m.ID)
	r.drop(connection, c.Model)
	r.Cooldowns = last(append(r.Cooldowns, c))
	r.lastError(connection, text)
	r.at = max(r.at, c.Since)
}

func (p *Pool) cleared(machineID, connection, model string) {
	at := p.Now().UnixMilli()
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.reportOf(machineID)
	r.drop(connection, model)
	r.Cleared = last(append(r.Cleared, rpc.Cleared{ConnectionID: connection, Model: model, At: at}))
	r.lastError(connection, "")
	r.at = max(r.at, at)
}

func (r *report) lastError(connection, text string) {
	for i := range r.Errors {
		if r.Errors[i].ConnectionID == connection {
			r.Errors[i].Text = text
			return
		}
	}
	r.Errors = last(append(r.Errors, rpc.LastError{ConnectionID: connection, Text: text}))
}

// onlyCounts reports whether the report can wait for its second.
func (r *report) onlyCounts() bool {
	return len(r.Cooldowns)+len(r.Cleared)+len(r.Errors)+len(r.Refusals) == 0
}

// drop takes out what was to be said of an account before.
func (r *report) drop(connection, model string) {
	for i := range r.Cooldowns {
		if r.Cooldowns[i].ConnectionID == connection && r.Cooldowns[i].Model == model {
			r.Cooldowns = append(r.Cooldowns[:i], r.Cooldowns[i+1:]...)
			break
		}
	}
	for i := range r.Cleared {
		if r.Cleared[i].ConnectionID == connection && r.Cleared[i].Model == model {
			r.Cleared = append(r.Cleared[:i], r.Cleared[i+1:]...)
			break
		}
	}
}

// reportOf returns the next report of a machine. The caller has the lock.
func (p *Pool) reportOf(machineID string) *report {
	r := p.reports[machineID]
	if r == nil {
		if p.reports == nil {
			p.reports = map[string]*report{}
		}
		p.shed()
		r = &report{}
		p.reports[machineID] = r
	}
	return r
}

// shed makes room for the report of another machine: a report that lists many requests counts
// them instead. The caller has the lock.
func (p *Pool) shed() {
	if len(p.reports) < maxReports {
		return
	}
	for id, r := range p.reports {
		if len(p.reports) >= maxMachines {
			delete(p.reports, id) // no room for more
			return
		}
		if len(r.Requests) > maxShed {
			r.thin(0)
			return
		}
	}
}

// Unreported returns of how many machines something waits to be reported.
func (p *Pool) Unreported() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.reports)
}

// Flush reports to the object of a machine what became of its accounts since the
// last time, and what was used of its budgets. It is called after the answer; without
// news it costs nothing. Usage alone is gathered for up to a second, but on the edge only until
// the list of requests is half full. A report that does not get through is kept for the next
// call.
//
//	report rpc.Report → rpc.Reported
//
// observed is that of the first state which carries the report.
func (p *Pool) Flush(ctx context.Context, m *snapshot.Machine) {
	p.mu.Lock()
	r := p.reports[m.ID]
	waits := r != nil && r.onlyCounts() && (r.late || p.MaxRecords > 0 || len(r.Requests) < maxRecords/2)
	p.mu.Unlock()
	if r == nil {
		return
	}
	if waits {
		if due, err := p.gather(ctx, m); err != nil {
			p.delay(m)
			return
		} else if !due {
			return
		}
	}
	p.mu.Lock()
	r = p.reports[m.ID]
	delete(p.reports, m.ID) // what comes in during the call is the next report
	p.mu.Unlock()
	if r == nil { // another request has reported it meanwhile
		return
	}
	sent := p.reportBudgets(m, r)
	if m.AnyQuota() {
		r.Quotas = m.ChangedQuotas(p.Now().UnixMilli())
	}
	out, err := rpc.Call[rpc.Reported](ctx, p.Object, m.ID, "report", &r.Report)
	switch status := rpc.Status(err); {
	case status == 0 || status >= 500:
		m.UnreportedQuotas(r.Quotas)
		p.restore(m.ID, r)
		p.delay(m)
	case status == 200:
		clear(r.Requests)
		p.mu.Lock()
		p.spare = r.Requests[:0]
		p.mu.Unlock()
		if out.Observed > 0 {
			m.Reported(out.Observed, r.at)
			if p.Changed != nil && len(r.Cooldowns)+len(r.Cleared) > 0 {
				p.Changed(m.ID)
			}
		}
		r.applyBudgets(m, out, sent)
	}
}

// delay notes a machine whose report did not get through: the client has left and
// the platform has ended the call, or the object has failed.
func (p *Pool) delay(m *snapshot.Machine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.late, func(l *snapshot.Machine) bool { return l.ID == m.ID }) && len(p.late) < maxReports {
		p.late = append(p.late, m)
	}
}

// FlushLate reports to the object of one machine what a call of that machine could not.
// It is called after the answer to a call of another, own.
func (p *Pool) FlushLate(ctx context.Context, own string) {
	if m := p.takeLate(ctx, own); m != nil {
		p.Flush(ctx, m)
	}
}

// takeLate returns a machine other than own whose report is late, or nil.
func (p *Pool) takeLate(ctx context.Context, own string) *snapshot.Machine {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.late, func(m *snapshot.Machine) bool { return m.ID != own })
	if i < 0 || ctx.Err() != nil {
		return nil
	}
	m := p.late[i]
	p.late = slices.Delete(p.late, i, i+1)
	return m
}

// restore puts back a report that did not get through, under what came since.
func (p *Pool) restore(machineID string, old *report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.reportOf(machineID)
	for _, c := range since.Cooldowns {
		old.drop(c.ConnectionID, c.Model)
	}
	for _, c := range since.Cleared {
		old.drop(c.ConnectionID, c.Model)
	}
	for _, e := range since.Errors {
		old.lastError(e.ConnectionID, e.Text)
	}
	for _, u := range old.Usage {
		since.Usage = usage.Add(since.Usage, u)
	}
	since.Labels = usage.AddLabels(since.Labels, old.Labels, usage.MaxValues)
	for i := range old.Networks {
		since.Networks = store.AddNetwork(since.Networks, &old.Networks[i], maxNetworks)
	}
	since.Requests = append(old.Requests, since.Requests...)
	since.Unlisted += old.Unlisted
	since.UnlistedFailed += old.UnlistedFailed
	if most := p.maxRecords(); len(since.Requests) > most {
		since.thin(most)
	}
	since.late = true
	since.Cooldowns = last(append(old.Cooldowns, since.Cooldowns...))
	since.Cleared = last(append(old.Cleared, since.Cleared...))
	since.Refusals = last(append(old.Refusals, since.Refusals...))
	since.Errors = old.Errors
	since.at = max(since.at, old.at)
}

func last[T any](list []T) []T {
	if over := len(list) - maxPerReport; over > 0 {
		return list[over:]
	}
	return list
}
