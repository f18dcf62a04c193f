package snapshot

import (
	"weir/pkg/budget"
	"weir/pkg/store"
)

// Limits returns the limits of the calls of a key as budgets, the machine's last; nil without
// any. A call without a key has "".
func (m *Machine) Limits(keyID string) []store.Budget {
	if own := m.limits[keyID]; own != nil {
		return own
	}
	return m.limits[""]
}

// KeyTags returns the tags that a key adds to its calls.
func (m *Machine) KeyTags(keyID string) []string { return m.keyTags[keyID] }

// Estimates reports whether what a call may use is asked for: there are budgets, or keys
// with a limit of tokens.
func (m *Machine) Estimates() bool { return len(m.Budgets) > 0 || m.limitsTokens }

// Budget returns a budget, or a limit, by its id, or nil.
func (m *Machine) Budget(id string) *store.Budget {
	list := m.Budgets
	if key, limit := store.Limited(id); limit {
		list = m.limits[key]
	}
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

// Wallet returns what this isolate was lent of the machine's budgets. holder names a
// new one; it returns nil if that is "".
func (l *Local) Wallet(holder func() string) *budget.Wallet {
	if w := l.CurrentWallet(); w != nil {
		return w
	}
	name := holder()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wallet == nil && name != "" {
		l.wallet = &budget.Wallet{Holder: name}
	}
	return l.wallet
}

// CurrentWallet returns the wallet, or nil if no call has needed it.
func (l *Local) CurrentWallet() *budget.Wallet {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wallet
}
