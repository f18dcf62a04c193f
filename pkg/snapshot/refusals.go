package snapshot

import (
	"slices"

	"weir/pkg/store"
)

// heard is what this isolate has learned about a field since the replica.
type heard struct {
	until int64 // 0: the server accepts it again
	at    int64
}

// maxRefused is the number of names that are noted for one connection.
const maxRefused = 32

// AnyRefused reports whether Refused may return names, without a look at the clock.
func (m *Machine) AnyRefused() bool {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	return m.anyRefused()
}

func (m *Machine) anyRefused() bool { return len(m.refusals) > 0 || len(m.Local.refused) > 0 }

// Refused returns the names of the fields and roles that the connection's
// server is known to refuse now, sorted.
func (m *Machine) Refused(connection string, now int64) (names []string) {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	if !m.anyRefused() {
		return nil
	}
	local := m.Local.refused[connection]
	for name, h := range local {
		if h.until > now {
			names = append(names, name)
		}
	}
	for i := range m.refusals {
		r := &m.refusals[i]
		if r.ConnectionID != connection || r.Until <= now {
			continue
		}
		// Observations of this isolate override a replica that may not have
		// them yet.
		if h, ok := local[r.Field]; ok && (h.until > now || now-h.at < keepCleared.Milliseconds()) {
			continue
		}
		names = append(names, r.Field)
	}
	slices.Sort(names)
	return names
}

// Refuse notes a refusal of a server; an Until of 0 means that the server
// accepts it again.
func (m *Machine) Refuse(r store.Refusal, now int64) {
	l := m.Local
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused == nil || len(l.refused) >= maxMarks {
		l.refused = map[string]map[string]heard{}
	}
	if of := l.refused[r.ConnectionID]; of == nil || len(of) >= maxRefused {
		l.refused[r.ConnectionID] = map[string]heard{}
	}
	l.refused[r.ConnectionID][r.Field] = heard{r.Until, now}
}
