package budget

import (
	"sync"
	"testing"
)

// Calls that reserve, settle and report at the same time lose nothing.
func TestWalletCountsConcurrentCalls(t *testing.T) {
	o, w := newObject(t, 100_000, Day), &Wallet{Holder: "a"}
	o.call(w, 10)
	var turn sync.Mutex // of the object
	ask := func(amount int64) {
		a, done := w.Wait(&o.budget, amount)
		turn.Lock()
		g := o.take(w.Holder, a)
		turn.Unlock()
		w.Apply(&o.budget, g, amount, o.now)
		done()
	}
	const calls, each = 8, 200
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			for range each {
				h, ok := w.Reserve(&o.budget, w.Share(&o.budget, 2, 2, o.now), o.now)
				for !ok {
					ask(2)
					h, ok = w.Reserve(&o.budget, 2, o.now)
				}
				w.Refusal(&o.budget, 2, o.now)
				h.Count(1, o.now)
				h.CountUnpriced()
				h.Settle(2, o.now)
				h.Settle(0, o.now)
			}
		})
	}
	all.Wait()
	o.report(w)
	if l := o.ledger(); l.Spent != 3*calls*each || l.Unpriced != calls*each {
		t.Errorf("spent %d, unpriced %d, want %d and %d", l.Spent, l.Unpriced, 3*calls*each, calls*each)
	}
}
