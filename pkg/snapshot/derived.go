package snapshot

import "weir/pkg/catalog"

// maxDerived bounds what is kept of a snapshot's derived values. Callers choose the
// names of models.
const maxDerived = 64

// Derived names a value that follows from the snapshot and its Catalog alone: what a model string
// means for a kind of endpoint.
type Derived struct {
	Kind  catalog.Kind
	Model string
	At    int64 // of the Catalog, see catalog.Update.At
}

// Derived returns a value that KeepDerived has kept, or nil.
func (m *Machine) Derived(key Derived) any {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	return m.derived[key]
}

// KeepDerived keeps a value as long as the snapshot, or until there are too many. The
// value must not depend on time, on cooldowns or on turns.
func (m *Machine) KeepDerived(key Derived, value any) {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	if m.derived == nil || len(m.derived) >= maxDerived {
		m.derived = map[Derived]any{}
	}
	m.derived[key] = value
}
