package accounts

import (
	"context"
	"time"

	"weir/pkg/snapshot"
	"weir/pkg/usage"
)

// countsEvery is how often counts and usage go to the object, per isolate and
// machine.
const countsEvery = time.Second

// staleWait is when a wait that has not ended is taken for lost with its
// request.
const staleWait = 10 * time.Second

// Use notes what an answered attempt has used. Rows of one kind are added up,
// and go to the object with the next report.
func (p *Pool) Use(m *snapshot.Machine, row usage.Row) {
	if m == nil {
		return
	}
	r := p.reportOf(m.ID)
	r.Usage = usage.Add(r.Usage, row)
}

// gather waits until the counts of a machine may be reported, so that many
// requests are one report. One request at a time waits; it runs after its
// answer, so nobody waits for it.
func (p *Pool) gather(ctx context.Context, m *snapshot.Machine) bool {
	if m.CountsDue(p.Now()) {
		return true
	}
	now := p.Now()
	if since, ok := p.waiting[m.ID]; p.Pause == nil || ok && now.Sub(since) < staleWait && !now.Before(since) {
		return false
	}
	if p.waiting == nil || len(p.waiting) >= maxReports {
		p.waiting = map[string]time.Time{}
	}
	p.waiting[m.ID] = now
	err := p.Pause.Pause(ctx, countsEvery)
	delete(p.waiting, m.ID)
	m.CountsDue(p.Now())
	return err == nil
}
