package storage

import (
	"slices"
	"strings"

	"weir/pkg/budget"
	"weir/pkg/machine/rpc"
	"weir/pkg/store"
)

// Budget is a stored budget.
type Budget struct {
	store.Budget
	Own
}

// Budgets returns the budgets in the order of their creation.
func (t *Tx) Budgets() []Budget { return inOrder[Budget](t, BudgetPrefix) }

// PutBudget stores a changed budget under the generation of this turn.
func (t *Tx) PutBudget(b *Budget) {
	b.Generation = t.Touch("budgets")
	t.putRecord(BudgetPrefix+b.ID, b)
}

// Ledger returns what a budget's calls have used in the window that is open now.
func (t *Tx) Ledger(b *store.Budget, zone budget.Zone) (l budget.Ledger) {
	t.Load(LedgerPrefix+b.ID, &l)
	if l.Open {
		l.Roll(b, t.Now, zone)
		l.Expire(b, t.Now, t.ended)
	}
	return l
}

// KeyLimit is a limit of a key, with what is used of it.
type KeyLimit struct {
	store.Budget
	Used int64 // in the window; of Calls nothing
	End  int64 // of the window, Unix milliseconds; 0 for none
}

// KeyLimits returns the limits of a key.
func (t *Tx) KeyLimits(k *Key) (list []KeyLimit) {
	for _, b := range k.Limits() {
		l := t.Ledger(&b, nil)
		if !l.Open {
			_, l.End = budget.Window(b.Window, t.Now, nil)
		}
		list = append(list, KeyLimit{b, l.Spent, l.End})
	}
	return list
}

// budget returns a stored budget, or a limit of a key or the machine.
func (t *Tx) budget(id string) (b store.Budget, ok bool) {
	keyID, limit := store.Limited(id)
	if !limit {
		var row Budget
		ok = rpc.IsRowID(id) && t.Load(BudgetPrefix+id, &row)
		return row.Budget, ok
	}
	var limits []store.Budget
	var k Key
	if keyID == "" {
		s := t.Settings()
		limits = s.Limits()
	} else if rpc.IsRowID(keyID) && t.Load(KeyPrefix+keyID, &k) {
		limits = k.Limits()
	}
	i := slices.IndexFunc(limits, func(b store.Budget) bool { return b.ID == id })
	if i < 0 {
		return b, false
	}
	return limits[i], true
}

// endedAfter is how long nothing was heard of an isolate whose process is dead, in milliseconds.
const endedAfter = 60_000

// ended reports whether the process of an isolate has ended: it was started before the only one
// that serves calls, or it is a dead one of several, which its name begins with.
func (t *Tx) ended(s *budget.Lease) bool {
	seat, _, named := strings.Cut(s.Holder, "-")
	return s.At < t.Began || named && t.SeatAlive != nil && t.Now-s.At >= endedAfter && !t.SeatAlive(seat)
}

// ExpireLedgers counts what dead isolates have left of budgets; see budget.Ledger.Expire.
// changed is called with each ledger before it is stored. It drops what was counted of
// limits that are gone.
func (t *Tx) ExpireLedgers(changed func(b *store.Budget, l *budget.Ledger)) {
	RemoveIf(t, LedgerPrefix, func(row string, l budget.Ledger) bool {
		id := strings.TrimPrefix(row, LedgerPrefix)
		b, ok := t.budget(id)
		if ok && l.Expire(&b, t.Now, t.ended) {
			changed(&b, &l)
			t.Put(row, l)
		}
		_, limit := store.Limited(id)
		return !ok && limit
	})
}

// TakeBudgets counts what an isolate has used and lends it what it needs. changed is
// called with each ledger before it is stored.
func (t *Tx) TakeBudgets(asks *budget.Asks, zone budget.Zone,
	changed func(b *store.Budget, l *budget.Ledger)) (grants []budget.Grant) {
	if asks == nil || !rpc.IsRowID(asks.Holder) || len(asks.Asks) > rpc.MaxReportEntries {
		return nil
	}
	for i := range asks.Asks {
		a := &asks.Asks[i]
		var l budget.Ledger
		b, ok := t.budget(a.Budget)
		if !ok {
			continue
		}
		days := zone
		if b.IsLimit() {
			days = nil
		}
		t.Load(LedgerPrefix+b.ID, &l)
		l.Expire(&b, t.Now, t.ended)
		g, ok := l.Take(&b, asks.Holder, a, t.Now, days)
		if !ok {
			continue
		}
		changed(&b, &l)
		t.Put(LedgerPrefix+b.ID, l)
		grants = append(grants, g)
	}
	return grants
}
