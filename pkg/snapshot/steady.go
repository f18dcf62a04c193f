package snapshot

import "time"

// Bounds of the error rate.
const (
	failedInRow   = 5  // consecutive failures that make an outlier
	failedOf      = 10 // as does half of at least this many calls
	steadySlots   = 10 // within this many seconds
	outlierFirst  = 5 * time.Second
	outlierMost   = 60 * time.Second
	outlierForget = 60 * time.Second // after which the span starts at outlierFirst again
	maxSteady     = 512
)

// steadiness counts the calls of an account, or of one model of it, since a
// failure. Accounts without failures have none.
type steadiness struct {
	second int64 // of the newest slot
	bad    [steadySlots]uint16
	all    [steadySlots]uint16
	row    int   // consecutive failures
	until  int64 // when the account stops being an outlier
	times  int   // how often it was one without a long pause
}

// Failed notes a failed call: a 5xx, an unreadable answer or 408 of a model, or
// with model "" a call that the network failed. Too many make the account an
// outlier for 5 s, doubling up to 60 s; see Outlier. It is never published.
func (m *Machine) Failed(connection, model string, now int64) {
	l, key := m.Local, account{connection, model}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.steady[key]
	if s == nil {
		if l.steady == nil {
			l.steady = map[account]*steadiness{}
		}
		if len(l.steady) >= maxSteady {
			l.forgetSteady(now)
		}
		s = &steadiness{}
		l.steady[key] = s
	}
	s.move(now)
	slot := s.second % steadySlots
	s.bad[slot]++
	s.all[slot]++
	s.row++
	if s.outlier(now) {
		return
	}
	if bad, all := s.sums(); s.row >= failedInRow || all >= failedOf && 2*bad >= all {
		if now-s.until > outlierForget.Milliseconds() {
			s.times = 0
		}
		s.until = now + min(outlierFirst<<min(s.times, 8), outlierMost).Milliseconds()
		s.times++
		// Start counting from zero.
		s.bad, s.all, s.row = [steadySlots]uint16{}, [steadySlots]uint16{}, 0
	}
}

// Worked notes a call that the account answered. Without a recent failure it
// costs one comparison.
func (m *Machine) Worked(connection, model string, now int64) {
	l := m.Local
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.steady) == 0 {
		return
	}
	for _, name := range [2]string{"", model} {
		key := account{connection, name}
		if s := l.steady[key]; s != nil {
			s.move(now)
			s.row = 0
			s.all[s.second%steadySlots]++
			if s.over(now) {
				delete(l.steady, key)
			}
		}
		if model == "" {
			return
		}
	}
}

// Outlier reports whether the account, or this model of it, fails so often that
// the others are tried before it. It is never left out.
func (m *Machine) Outlier(connection, model string, now int64) bool {
	l := m.Local
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.steady) == 0 {
		return false
	}
	s := l.steady[account{connection, ""}]
	if s != nil && s.outlier(now) {
		return true
	}
	s = l.steady[account{connection, model}]
	return s != nil && s.outlier(now)
}

// outlier reports whether the account is an outlier now. An end further ahead
// than outlierMost comes from a clock that was set back.
func (s *steadiness) outlier(now int64) bool {
	return s.until > now && s.until-now <= outlierMost.Milliseconds()
}

// move makes the second of now the newest one.
func (s *steadiness) move(now int64) {
	second := now / 1000
	if second < s.second || second-s.second >= steadySlots {
		s.bad, s.all = [steadySlots]uint16{}, [steadySlots]uint16{}
		s.second = second
		return
	}
	for s.second < second {
		s.second++
		s.bad[s.second%steadySlots], s.all[s.second%steadySlots] = 0, 0
	}
}

func (s *steadiness) sums() (bad, all int) {
	for i := range s.bad {
		bad += int(s.bad[i])
		all += int(s.all[i])
	}
	return bad, all
}

// over reports whether it can be forgotten.
func (s *steadiness) over(now int64) bool {
	bad, _ := s.sums()
	return bad == 0 && s.row == 0 && (s.until == 0 || now-s.until > outlierForget.Milliseconds() ||
		s.until-now > outlierMost.Milliseconds())
}

// forgetSteady makes room for another entry: first those that are over, then any.
func (l *Local) forgetSteady(now int64) {
	for key, s := range l.steady {
		if s.move(now); s.over(now) {
			delete(l.steady, key)
		}
	}
	for key := range l.steady {
		if len(l.steady) < maxSteady {
			return
		}
		delete(l.steady, key)
	}
}
