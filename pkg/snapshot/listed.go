package snapshot

import "weir/pkg/catalog"

// NoteListed notes the limits that the list of a connection's server states.
func (m *Machine) NoteListed(connection string, list []catalog.Model) {
	var limits []catalog.Model
	for i := range list {
		if l := &list[i]; l.Context > 0 || l.MaxOutput > 0 {
			limits = append(limits, catalog.Model{ID: l.ID, Context: l.Context, MaxOutput: l.MaxOutput})
		}
	}
	l := m.Local
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listed == nil || len(l.listed) >= maxMarks {
		l.listed = map[string][]catalog.Model{}
	}
	l.listed[connection] = limits
}

// Listed returns the context and the longest answer of a model in tokens, as the list of the
// connection's server has stated them to this isolate. 0 is unknown.
func (m *Machine) Listed(connection, model string) (context, output int64) {
	l := m.Local
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.listed[connection] {
		if e := &l.listed[connection][i]; e.ID == model {
			return int64(e.Context), int64(e.MaxOutput)
		}
	}
	return 0, 0
}
