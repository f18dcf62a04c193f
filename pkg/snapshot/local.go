package snapshot

import (
	"sync"
	"time"

	"weir/pkg/budget"
	"weir/pkg/catalog"
	"weir/pkg/store"
)

// Local is what one isolate has seen of a machine's accounts. Every request of the
// isolate sees it at once, and each entry goes when a replica carries it. Times are
// Unix milliseconds.
type Local struct {
	mu      sync.Mutex // of these fields, and of the shared ones of the machine's snapshots
	marks   map[account]*mark
	steady  map[account]*steadiness // of accounts that failed recently
	loads   map[account]*load
	blocked map[place]Block
	turns   map[string]uint32
	refused map[string]map[string]heard // by connection and name
	gauges  map[string]*gauge           // by connection
	listed  map[string][]catalog.Model  // by connection: what its server's list says of limits
	counted time.Time                   // when key counts were last reported
	wallet  *budget.Wallet              // of the machine's budgets; nil until a call needs it
}

type mark struct {
	cooldown store.Cooldown // of the failure; Until 0 when a success cleared it
	at       int64
	observed int64 // of the state that carries it; 0 while that is not known
	trial    int64 // when the trial under way began; 0 when none runs
	tried    int64 // when the last trial began; 0 for none
}

// Bounds of what Local remembers.
const (
	maxMarks    = 512
	keepCleared = 60 * time.Second // a replica that old is not used any more
	trialSpan   = 30 * time.Second // after it another trial may begin
	trialEvery  = 30 * time.Minute // of trials within a cooldown
)

func newLocal() *Local { return &Local{} }

// State is an account, or one model of it, as select sees it.
type State struct {
	// Until is when it may be used again; zero when it never failed since its
	// last success. It may lie in the past.
	Until int64
	// Since is the time of the last failure.
	Since    int64
	Failures int
	Reason   string
	tried    int64 // when the last trial began
}

// Left returns how many milliseconds the account still cools down; see
// store.Cooldown.Left.
func (s *State) Left(now int64) int64 {
	c := store.Cooldown{Until: s.Until, Since: s.Since}
	return c.Left(now)
}

// TrialDue reports whether one call may try the account although it cools
// down: every 30 minutes of a longer cooldown.
func (s *State) TrialDue(now int64) bool {
	return s.Since > 0 && now-max(s.Since, s.tried) >= trialEvery.Milliseconds()
}

// State returns what is known of a connection for one upstream model; model ""
// is the whole account. The observations of this isolate override the replica.
func (m *Machine) State(connection, model string) State {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	if len(m.Local.marks) == 0 && len(m.cooling) == 0 {
		return State{}
	}
	key := account{connection, model}
	if k := m.Local.marks[key]; k != nil {
		s := stateOf(&k.cooldown)
		s.tried = k.tried
		return s
	}
	if c := m.cooling[key]; c != nil {
		return stateOf(c)
	}
	return State{}
}

func stateOf(c *store.Cooldown) State {
	return State{Until: c.Until, Since: c.Since, Failures: c.Failures, Reason: c.Reason}
}

// Cool notes a cooldown that this isolate decided on, and returns what it
// noted: once too many models of a connection cool down, that is a cooldown of
// the whole connection, because callers choose the names of models.
func (m *Machine) Cool(c store.Cooldown) store.Cooldown {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	key := account{c.ConnectionID, c.Model}
	if c.Model != "" && m.Local.marks[key] == nil && m.cooledModels(c.ConnectionID, c.Since) >= store.MaxCooledModels {
		for k := range m.Local.marks {
			if k.connection == c.ConnectionID && k.model != "" {
				delete(m.Local.marks, k)
			}
		}
		c.Model, key.model = "", ""
	}
	m.Local.mark(key, &mark{cooldown: c, at: c.Since})
	return c
}

// cooledModels counts the models of a connection that cool down in this
// isolate. The caller has the lock.
func (m *Machine) cooledModels(connection string, now int64) (n int) {
	for k, mark := range m.Local.marks {
		if k.connection == connection && k.model != "" && mark.cooldown.Left(now) > 0 {
			n++
		}
	}
	return n
}

// Clear notes that an account works again. It reports whether there was
// anything to clear, which is when the object should hear of it.
func (m *Machine) Clear(connection, model string, now int64) bool {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	key := account{connection, model}
	k := m.Local.marks[key]
	if k == nil && m.cooling[key] == nil || k != nil && k.cooldown.Until == 0 {
		return false
	}
	m.Local.mark(key, &mark{cooldown: store.Cooldown{ConnectionID: connection, Model: model}, at: now})
	return true
}

// Calm reports whether nothing is noted against any account of the machine: Clear and
// Worked would do nothing, and State returns nothing.
func (m *Machine) Calm() bool {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	return len(m.Local.marks) == 0 && len(m.cooling) == 0 && len(m.Local.steady) == 0
}

// Reported notes that the state with this Observed carries what this isolate has
// noted up to the time at.
func (m *Machine) Reported(observed, at int64) {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	for _, k := range m.Local.marks {
		if k.observed == 0 && k.at <= at {
			k.observed = observed
		}
	}
	m.Local.settle(m, at)
}

// Turn counts the calls of a machine for a provider: the round-robin turn.
func (m *Machine) Turn(provider string) uint32 {
	l := m.Local
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.looking {
		return l.turns[provider]
	}
	if l.turns == nil {
		l.turns = map[string]uint32{}
	}
	n := l.turns[provider]
	l.turns[provider] = n + 1
	return n
}

// ReadOnly returns a view of the machine that does not advance round-robin.
func (m *Machine) ReadOnly() *Machine {
	seen := *m
	seen.looking = true
	return &seen
}

// NextTurn returns what Turn will return, without taking the turn.
func (m *Machine) NextTurn(provider string) uint32 {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	return m.Local.turns[provider]
}

// Trial asks to be the one request that tries an account after a long
// cooldown, or within one (TrialDue). While one runs, for at most 30 s, the
// others are refused.
func (m *Machine) Trial(connection, model string, now int64) bool {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	key := account{connection, model}
	k := m.Local.marks[key]
	if k == nil {
		c := m.cooling[key]
		if c == nil {
			return true
		}
		k = &mark{cooldown: *c, at: c.Since, observed: m.observed}
		m.Local.mark(key, k)
	}
	if k.trial != 0 && now >= k.trial && now-k.trial < trialSpan.Milliseconds() {
		return false
	}
	k.trial, k.tried = now, now
	return true
}

// TrialOver ends a trial whose outcome says nothing about the account.
func (m *Machine) TrialOver(connection, model string) {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	if k := m.Local.marks[account{connection, model}]; k != nil {
		k.trial = 0
	}
}

// CountsDue reports, at most once a second, that counts of requests should be
// sent to the object.
func (m *Machine) CountsDue(now time.Time) bool {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	if within(now, m.Local.counted, time.Second) {
		return false
	}
	m.Local.counted = now
	return true
}

// mark notes an observation. The caller has the lock.
func (l *Local) mark(key account, k *mark) {
	if l.marks == nil {
		l.marks = map[account]*mark{}
	}
	if len(l.marks) >= maxMarks && l.marks[key] == nil {
		l.forget(k.at)
	}
	l.marks[key] = k
}

// forget makes room: first what is over, then the oldest entry.
func (l *Local) forget(now int64) {
	var oldest account
	first := true
	for key, k := range l.marks {
		if k.cooldown.Until <= now {
			delete(l.marks, key)
			continue
		}
		if first || k.at < l.marks[oldest].at {
			oldest, first = key, false
		}
	}
	if len(l.marks) >= maxMarks {
		delete(l.marks, oldest)
	}
}

// settle drops what the replica m carries by now, and what is too old to
// matter. The caller has the lock.
func (l *Local) settle(m *Machine, now int64) {
	for key, k := range l.marks {
		c := m.cooling[key]
		switch {
		case k.trial != 0 && now-k.trial < trialSpan.Milliseconds() && now >= k.trial:
			// a trial runs
		case k.tried != 0 && c != nil && c.Since <= k.cooldown.Since && k.cooldown.Left(now) > 0:
			// the replica does not have the trial
		case k.observed != 0 && m.observed >= k.observed,
			k.cooldown.Until == 0 && (c == nil || c.Since > k.at || now-k.at > keepCleared.Milliseconds()),
			k.cooldown.Until != 0 && now-k.cooldown.Until > store.ForgetCooldown.Milliseconds(),
			k.cooldown.Until != 0 && c != nil && c.Since >= k.cooldown.Since && c.Since <= now+store.ClockSkew.Milliseconds() &&
				c.Until >= k.cooldown.Until:
			delete(l.marks, key)
		}
	}
}
