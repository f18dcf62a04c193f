package snapshot

import "weir/pkg/budget"

// Wallet returns what this isolate was lent of the machine's budgets. holder names a
// new one; it returns nil if that is "".
func (l *Local) Wallet(holder func() string) *budget.Wallet {
	if l.wallet == nil {
		if name := holder(); name != "" {
			l.wallet = &budget.Wallet{Holder: name}
		}
	}
	return l.wallet
}

// CurrentWallet returns the wallet, or nil if no call has needed it.
func (l *Local) CurrentWallet() *budget.Wallet { return l.wallet }
