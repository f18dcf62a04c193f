package snapshot

import (
	"math"
	"slices"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/quota"
)

// gauge is what this isolate knows of the limits of an account, by its own calls and
// by those of others.
type gauge struct {
	windows []quota.Window
	read    int64 // when an answer was last read
	changed bool  // since the last report
}

// quotaEvery is how often the header of an account's answers is read for its limits.
const quotaEvery = 1000 // ms

// lowShare is the share of a window under which an account has not enough left.
const lowShare = 0.05

// endStep is the exactness of ends: those that are stated as a number of seconds
// differ a little from call to call.
const endStep = 600_000 // ms

// maxQuotas is the number of gauges of one report. With all their windows they are a
// quarter of what a report may have.
const maxQuotas = 32

// AnyQuota reports whether anything is known of the limits of any account.
func (m *Machine) AnyQuota() bool {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	return len(m.Local.gauges) > 0
}

// QuotaDue reports, at most once a second for an account, that an answer should be
// read for what it says of limits.
func (m *Machine) QuotaDue(connection string, now int64) bool {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	g := m.Local.gauges[connection]
	return g == nil || now-g.read >= quotaEvery || now < g.read
}

// NoteQuota notes what an answer says of an account's limits. It does not retain the
// memory of the list.
func (m *Machine) NoteQuota(connection string, list []quota.Window, now int64) {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	g := m.Local.gauge(connection)
	g.read = now
	for i := range list {
		g.note(&list[i], now)
	}
}

// gauge returns what is known of an account. The caller has the lock.
func (l *Local) gauge(connection string) *gauge {
	g := l.gauges[connection]
	if g == nil {
		if l.gauges == nil || len(l.gauges) >= maxMarks {
			l.gauges = map[string]*gauge{}
		}
		g = &gauge{}
		l.gauges[connection] = g
	}
	return g
}

// note puts in a newer observation of a window.
func (g *gauge) note(w *quota.Window, now int64) {
	for i := range g.windows {
		had := &g.windows[i]
		if had.Name != w.Name || had.Model != w.Model {
			continue
		}
		if w.At < had.At {
			return
		}
		g.changed = g.changed || differs(had, w, 0.01)
		name, model := had.Name, had.Model // the memory of those is known
		*had = *w
		had.Name, had.Model = name, model
		return
	}
	added := *w
	added.Name, added.Model = strings.Clone(w.Name), strings.Clone(w.Model)
	g.changed = true
	g.windows = store.MergeWindows(g.windows, []quota.Window{added}, now)
}

// differs reports whether two observations of a window differ by a share, or are of
// two periods of it. The end of a window that refills all the time moves with each
// call.
func differs(a, b *quota.Window, share float64) bool {
	moved := max(a.ResetsAt, b.ResetsAt) - min(a.ResetsAt, b.ResetsAt)
	return math.Abs(a.Left-b.Left) >= share || a.Left < lowShare != (b.Left < lowShare) || moved > max(500*b.Span, 60_000)
}

// Headroom reports whether an account has less than a twentieth of a limit left that
// applies to the model, and when the first window of the whole account that lasts an
// hour or more ends, in Unix milliseconds rounded to 10 minutes; math.MaxInt64 if none
// is known. Limits of a model often refill all the time: their ends move with each
// call, which would move conversations between accounts.
func (m *Machine) Headroom(connection, model string, now int64) (low bool, ends int64) {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	ends = math.MaxInt64
	g := m.Local.gauges[connection]
	if g == nil {
		return false, ends
	}
	for i := range g.windows {
		w := &g.windows[i]
		if w.Model != "" && w.Model != model || w.ResetsAt > 0 && w.ResetsAt <= now || store.QuotaOver(w, now) {
			continue
		}
		low = low || w.Left < lowShare
		if w.Long() && w.Model == "" && w.ResetsAt > now {
			ends = min(ends, w.ResetsAt-w.ResetsAt%endStep)
		}
	}
	return low, ends
}

// ChangedQuotas returns the gauges that have changed since it was last called, for
// the next report; of many, the others with the one after.
func (m *Machine) ChangedQuotas(now int64) (out []rpc.Quota) {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	for id, g := range m.Local.gauges {
		if !g.changed || len(out) == maxQuotas {
			continue
		}
		g.changed = false
		g.windows = store.MergeWindows(g.windows, nil, now)
		q := rpc.Quota{Quota: store.Quota{ConnectionID: id, Windows: append([]quota.Window{}, g.windows...)}}
		known := m.quota(id)
		for i := range q.Windows {
			w := &q.Windows[i]
			q.Moved = q.Moved || w.Long() && !known.has(w)
		}
		out = append(out, q)
	}
	return out
}

// UnreportedQuotas notes that a report of gauges did not get through.
func (m *Machine) UnreportedQuotas(list []rpc.Quota) {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	for i := range list {
		if g := m.Local.gauges[list[i].ConnectionID]; g != nil {
			g.changed = true
		}
	}
}

type knownQuota []quota.Window

// has reports whether other isolates know about as much of a window.
func (k knownQuota) has(w *quota.Window) bool {
	for i := range k {
		if k[i].Name == w.Name && k[i].Model == w.Model {
			return !differs(&k[i], w, rpc.QuotaStep)
		}
	}
	return false
}

// quota returns the windows that the object has reported of an account.
func (m *Machine) quota(connection string) knownQuota {
	for i := range m.quotas {
		if m.quotas[i].ConnectionID == connection {
			return m.quotas[i].Windows
		}
	}
	return nil
}

// learnQuotas takes over what other isolates have seen.
func (m *Machine) learnQuotas() {
	for i := range m.quotas {
		q := &m.quotas[i]
		g := m.Local.gauge(q.ConnectionID)
		changed := g.changed
		for j := range q.Windows {
			g.note(&q.Windows[j], q.Windows[j].At)
		}
		g.changed = changed
	}
}

// renew takes over what this isolate knows from the snapshot that m replaces.
func (m *Machine) renew(old *Machine, now int64) {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	m.renewQuotas(old, now)
	m.Local.settle(m, now)
}

// renewQuotas takes over what the object has sent with a new configuration, and
// drops what is known of accounts whose key was replaced. The caller has the lock.
func (m *Machine) renewQuotas(old *Machine, now int64) {
	for id := range m.Local.gauges {
		was, is := old.Connection(id), m.Connection(id)
		if is == nil || was != nil && was.Secrets[store.APIKey] != is.Secrets[store.APIKey] {
			delete(m.Local.gauges, id)
		}
	}
	if m.observed == 0 { // it comes from KV, which has no state
		m.quotas = old.quotas
	}
	m.forgetQuotas(old.quotas, now)
	m.learnQuotas()
}

// forgetQuotas drops the gauges that the object had and has forgotten, because the
// connection has another account now.
func (m *Machine) forgetQuotas(before []store.Quota, now int64) {
	for i := range before {
		q := &before[i]
		current := slices.ContainsFunc(q.Windows, func(w quota.Window) bool { return !store.QuotaOver(&w, now) })
		if current && m.quota(q.ConnectionID) == nil {
			delete(m.Local.gauges, q.ConnectionID)
		}
	}
}
