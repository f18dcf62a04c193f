package machine

import (
	"fmt"
	"strings"
	"time"

	"weir/pkg/budget"
	"weir/pkg/machine/deliver"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
)

const (
	// deliverFor is how long a run of the alarm begins deliveries. The rest follows with the
	// next one, which first does the other work.
	deliverFor  = 20 * time.Second
	deliverMost = 20 // of a run: the edge allows 50 calls
)

// alert stores an alert if a budget has reached another share of its limit.
func (o *Object) alert(t *storage.Tx, b *store.Budget, l *budget.Ledger) {
	percent := l.Reached(b)
	if percent == 0 {
		return
	}
	m := manage.BudgetMessage(t.ID, &storage.Reached{Budget: *b, Percent: percent, Spent: l.Spent, Start: l.Start,
		End: l.End, At: t.Now})
	if b.Webhook != "" {
		t.Enqueue(m.Item(storage.OfBudget(b.ID)))
	}
	event := deliver.BudgetReached
	if percent == 100 {
		event = deliver.BudgetExhausted
	}
	m.Link = o.Link(t, "budgets")
	o.Notify(t, event, m, nil)
}

// deliver sends what is due, one item of each destination after the other. A destination
// that fails gets nothing more in this run.
func (o *Object) deliver(r *storage.Call) {
	if r.Meta.SendAt == 0 || !r.Exists() {
		return
	}
	r.OldAlerts(func(a *storage.Reached) ([]byte, string) {
		item := manage.BudgetMessage(r.ID, a).Item("")
		return item.Body, item.Title
	})
	failed, began := map[string]bool{}, o.Now()
	for range deliverMost {
		item := next(r.Tx, failed)
		if item == nil || o.Now().Sub(began) >= deliverFor {
			break
		}
		if r.Commit() != nil { // the call out loses what is not stored
			r.Reload(o.Now())
			return
		}
		result, held := o.try(r, item)
		if r.Err() != nil {
			return
		}
		if failed[item.DestinationID] = held || result.Verdict != storage.Delivered; !held {
			r.Tried(item, result)
		}
		if r.Commit() != nil {
			r.Reload(o.Now())
			return
		}
		o.gaveUp(r, item)
	}
	r.PlanDeliveries()
}

// next returns the next item to send, or nil.
func next(t *storage.Tx, failed map[string]bool) *storage.Delivery {
	due := t.DueItems()
	for i := range due {
		if !failed[due[i].DestinationID] {
			return &due[i]
		}
	}
	return nil
}

// try sends an item. held reports that nothing was tried: the destination is paused or
// gone. The turn is another one afterwards.
func (o *Object) try(r *storage.Call, item *storage.Delivery) (result storage.Result, held bool) {
	var d *deliver.Opened
	var err error
	if id, ok := strings.CutPrefix(item.DestinationID, storage.OfBudget("")); ok {
		d = o.ofBudget(r, id)
	} else if item.DestinationID == storage.OfEnvironment {
		d = o.collector(r.ID)
	} else if row, ok := r.Destination(item.DestinationID); ok {
		if row.Paused {
			r.Hold(row.ID)
			return result, true
		}
		if d, err = o.OpenDestination(r.ID, &row); err != nil {
			return storage.Result{Verdict: storage.Again, Why: "its stored secrets cannot be opened"}, false
		}
	}
	if d == nil || !r.LoadBody(item) {
		r.DropOutbox(item.DestinationID)
		return result, true
	}
	if item.Type == storage.Bodies {
		if item, result = o.openBodies(r.Tx, d, item); item == nil {
			return result, false
		}
	}
	return o.Deliver(r, d, item), false
}

// ofBudget returns the webhook of a budget, or nil. It may have been deleted, or have
// another address by now.
func (o *Object) ofBudget(r *storage.Call, id string) *deliver.Opened {
	var b storage.Budget
	if !r.Load(storage.BudgetPrefix+id, &b) || b.Webhook == "" {
		return nil
	}
	return &deliver.Opened{
		MachineID: r.ID, Destination: storage.Destination{ID: id, Kind: "webhook"}, Key: o.WebhookKey(r.ID, id),
		Values: map[string]secret.Secret{"url": secret.New(b.Webhook)}, Policy: o.Policy(), Now: o.Now(),
	}
}

// gaveUp logs an item that was given up.
func (o *Object) gaveUp(r *storage.Call, item *storage.Delivery) {
	for _, d := range r.Outbox(item.DestinationID).Dead {
		if d.ID == item.ID {
			o.WriteLog(fmt.Sprintf("machine %s: gave up delivery %s to %s: %s", r.ID, d.ID, item.DestinationID, d.Error))
		}
	}
}
