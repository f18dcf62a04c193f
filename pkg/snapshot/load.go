package snapshot

import (
	"time"

	"weir/pkg/store"
)

// Bounds of what is measured for the strategies fastest and least-busy.
const (
	maxLoads   = 512
	speedFor   = 5 * time.Minute  // after it an account is measured again
	speedShare = 4                // a new measurement counts for a quarter
	busyEpoch  = 15 * time.Minute // no call lasts longer; see load.begun
)

// load is what this isolate has measured of an account, or of one model of it.
type load struct {
	speed [2]speed // of calls without and with a stream
	// begun counts the calls under way by the epoch in which they began. A call whose
	// end is never reported is forgotten with its epoch.
	begun [2]struct {
		epoch int64
		calls int
	}
}

type speed struct {
	ms float64 // moving average of the time to the first token, or to the answer
	at int64   // of the last measurement
}

// Uses reports whether the accounts or a combo of the machine are ordered by a strategy
// that measures: store.Fastest or store.LeastBusy.
func (m *Machine) Uses(strategy string) bool {
	return m.Settings.Strategy == strategy ||
		strategy == store.Fastest && m.fastestCombo || strategy == store.LeastBusy && m.leastBusyCombo
}

// Took notes the time to the first token of a stream, or to another answer.
func (m *Machine) Took(connection, model string, stream bool, took time.Duration, now int64) {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	s := &m.Local.loadOf(account{connection, model}).speed[class(stream)]
	ms := float64(took) / float64(time.Millisecond)
	if s.old(now) {
		s.ms = ms
	} else {
		s.ms += (ms - s.ms) / speedShare
	}
	s.at = now
}

// Speed returns the moving average that Took maintains, in milliseconds. It is 0 for
// an account without a call in the last five minutes.
func (m *Machine) Speed(connection, model string, stream bool, now int64) float64 {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	l := m.Local.loads[account{connection, model}]
	if l == nil || l.speed[class(stream)].old(now) {
		return 0
	}
	return l.speed[class(stream)].ms
}

func (s *speed) old(now int64) bool {
	return s.at == 0 || now < s.at || now-s.at > speedFor.Milliseconds()
}

func class(stream bool) int {
	if stream {
		return 1
	}
	return 0
}

// Begin notes that a call to an account begins.
func (m *Machine) Begin(connection, model string, now int64) {
	m.Local.count(connection, model, now, 1)
}

// End notes that a call that began at a time has ended.
func (m *Machine) End(connection, model string, began int64) {
	m.Local.count(connection, model, began, -1)
}

// Busy returns the number of calls under way from this isolate to a model of an account,
// or with model "" to the account.
func (m *Machine) Busy(connection, model string, now int64) (calls int) {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	l := m.Local.loads[account{connection, model}]
	if l == nil {
		return 0
	}
	epoch := now / busyEpoch.Milliseconds()
	for _, b := range l.begun {
		if b.epoch == epoch || b.epoch == epoch-1 {
			calls += b.calls
		}
	}
	return calls
}

func (l *Local) count(connection, model string, began int64, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	epoch := began / busyEpoch.Milliseconds()
	for _, name := range [2]string{"", model} {
		b := &l.loadOf(account{connection, name}).begun[epoch%2]
		if b.epoch != epoch {
			if by < 0 {
				return // forgotten
			}
			b.epoch, b.calls = epoch, 0
		}
		b.calls = max(b.calls+by, 0)
		if model == "" {
			return
		}
	}
}

// loadOf returns the measurements of an account, which begin with it. The caller has the
// lock.
func (l *Local) loadOf(key account) *load {
	if e := l.loads[key]; e != nil {
		return e
	}
	if l.loads == nil || len(l.loads) >= maxLoads {
		l.loads = map[account]*load{}
	}
	e := &load{}
	l.loads[key] = e
	return e
}
