package machine

import (
	"encoding/json"

	"weir/pkg/budget"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// budgetTake lends an isolate slices of budgets. They are stored before the answer.
//
//	budget.take {holder, asks} → 200 {grants}
func (o *Object) budgetTake(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	var asks budget.Asks
	if json.Unmarshal(r.Body, &asks) != nil {
		return nil, apierr.Invalid("", "The call is not readable.")
	}
	return rpc.Granted{Grants: o.take(r.Tx, &asks)}, nil
}

func (o *Object) take(t *storage.Tx, asks *budget.Asks) []budget.Grant {
	if asks == nil {
		return nil
	}
	return t.TakeBudgets(asks, o.Zone(t), func(b *store.Budget, l *budget.Ledger) { o.alert(t, b, l) })
}
