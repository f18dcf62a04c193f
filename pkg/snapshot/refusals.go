package snapshot

import "weir/pkg/store"

// heard is what this isolate has heard of a field since the replica.
type heard struct {
	until int64 // 0: the server takes it again
	at    int64
}

// Refused returns the names of what the server of a connection has refused,
// and need not be asked again now.
func (m *Machine) Refused(connection string, now int64) (names []string) {
	if len(m.Refusals) == 0 && len(m.Local.refused) == 0 {
		return nil
	}
	local := m.Local.refused[connection]
	for name, h := range local {
		if h.until > now {
			names = append(names, name)
		}
	}
	for i := range m.Refusals {
		r := &m.Refusals[i]
		if r.ConnectionID != connection || r.Until <= now {
			continue
		}
		// What was heard here goes before a replica that may not carry it yet.
		if h, ok := local[r.Field]; ok && (h.until > now || now-h.at < keepCleared.Milliseconds()) {
			continue
		}
		names = append(names, r.Field)
	}
	return names
}

// Refuse notes that a server has refused something until a time; 0 says that
// it takes it again.
func (m *Machine) Refuse(r store.Refusal, now int64) {
	l := m.Local
	if l.refused == nil || len(l.refused) >= maxMarks {
		l.refused = map[string]map[string]heard{}
	}
	if l.refused[r.ConnectionID] == nil {
		l.refused[r.ConnectionID] = map[string]heard{}
	}
	l.refused[r.ConnectionID][r.Field] = heard{r.Until, now}
}
