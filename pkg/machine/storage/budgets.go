package storage

import (
	"sort"

	"weir/pkg/budget"
	"weir/pkg/machine/rpc"
	"weir/pkg/store"
)

// Budget is a stored budget.
type Budget struct {
	store.Budget
	Seq int64 `json:"seq"`
}

// Budgets returns the budgets in the order of their creation.
func (t *Tx) Budgets() []Budget {
	rows := RowsOf[Budget](t, BudgetPrefix)
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Seq < rows[j].Seq })
	return rows
}

// PutBudget stores a changed budget under the generation of this turn.
func (t *Tx) PutBudget(b *Budget) {
	b.Generation = t.Touch("budgets")
	if b.Seq == 0 {
		b.Seq = t.nextSeq()
	}
	t.Put(BudgetPrefix+b.ID, b)
}

// Ledger returns what a budget's calls have used in the window that is open now.
func (t *Tx) Ledger(b *store.Budget, zone budget.Zone) (l budget.Ledger) {
	t.Load(LedgerPrefix+b.ID, &l)
	if l.Open {
		l.Roll(b, t.Now, zone)
	}
	return l
}

// TakeBudgets counts what an isolate has used and lends it what it needs. changed is
// called with each ledger before it is stored.
func (t *Tx) TakeBudgets(asks *budget.Asks, zone budget.Zone, changed func(b *store.Budget, l *budget.Ledger)) (grants []budget.Grant) {
	if asks == nil || !rpc.IsRowID(asks.Holder) || len(asks.Asks) > rpc.MaxReportEntries {
		return nil
	}
	for i := range asks.Asks {
		a := &asks.Asks[i]
		var b Budget
		var l budget.Ledger
		if !rpc.IsRowID(a.Budget) || !t.Load(BudgetPrefix+a.Budget, &b) {
			continue
		}
		t.Load(LedgerPrefix+b.ID, &l)
		g, ok := l.Take(&b.Budget, asks.Holder, a, t.Now, zone)
		if !ok {
			continue
		}
		changed(&b.Budget, &l)
		t.Put(LedgerPrefix+b.ID, l)
		grants = append(grants, g)
	}
	return grants
}
