package budget

import (
	"sync"
	"testing"

	"weir/pkg/store"
)

// Calls that reserve, settle and report at the same time lose nothing.
func TestWalletCountsConcurrentCalls(t *testing.T) {
	o, w := newObject(t, 100_000, Day), &Wallet{Holder: "a"}
	o.call(w, 10)
	var turn sync.Mutex // of the object
	ask := func(amount int64) (Hold, bool) {
		a, done := w.Wait(&o.budget, amount)
		defer done()
		turn.Lock()
		g := o.take(w.Holder, a)
		turn.Unlock()
		w.Apply(&o.budget, g, amount, o.now)
		return w.ReserveLent(&o.budget, amount, o.now)
	}
	const calls, each = 8, 200
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			for range each {
				h, ok := w.Reserve(&o.budget, w.Share(&o.budget, 2, 2, o.now), o.now)
				for !ok {
					h, ok = ask(2)
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

// A regression: the report of a call whose snapshot did not have the budget yet, such as a
// long stream, forgot what other calls had used of it. It was lent again, and served twice.
func TestReportWithAnOldSnapshotForgetsNoUse(t *testing.T) {
	o, w := newObject(t, 20, Day), &Wallet{Holder: "a"}
	old := func(string) *store.Budget { return nil }
	reported := func(find func(string) *store.Budget) {
		var grants []Grant
		for _, a := range w.Report(find, o.now) {
			grants = append(grants, o.take(w.Holder, a))
		}
		w.Reported(grants, o.now)
	}
	var holds []Hold
	for range 15 {
		h, _, _ := o.call(w, 1)
		holds = append(holds, h)
	}
	reported(old)
	for i := range holds {
		holds[i].Settle(1, o.now)
	}
	reported(old)
	reported(old) // nothing is left to report, and the slice is forgotten
	served := len(holds)
	for range 20 {
		if h, _, ok := o.call(w, 1); ok {
			h.Settle(1, o.now)
			served++
		}
	}
	reported(o.find)
	if l := o.ledger(); served != 20 || l.Spent != 20 {
		t.Errorf("%d calls are served, %d counted, want 20", served, l.Spent)
	}

	// A budget that was deleted is not reported for ever.
	o.call(w, 0)
	w.slice(&o.budget).used++
	if asks := w.Report(old, o.now); len(asks) != 1 {
		t.Errorf("%d asks of a budget that is not known yet", len(asks))
	}
	if asks := w.Report(old, o.now+heldFor); len(asks) != 0 || len(w.slices) != 0 {
		t.Errorf("%d asks of a budget that was deleted, %d slices", len(asks), len(w.slices))
	}
}

// A regression: later calls took what was lent for one that waited, which was then refused
// although the budget had nearly all of its limit left.
func TestLaterCallsLeaveWhatAWaitingCallIsLent(t *testing.T) {
	o, w := newObject(t, 10, Total), &Wallet{Holder: "a"} // too small for a rest
	ask, done := w.Wait(&o.budget, 3)
	w.Apply(&o.budget, o.take(w.Holder, ask), 3, o.now)
	if _, ok := w.Reserve(&o.budget, 1, o.now); ok {
		t.Error("a later call is served with it")
	}
	h, ok := w.ReserveLent(&o.budget, 3, o.now)
	done()
	if !ok || h.Amount != 3 {
		t.Errorf("the call that has waited: %v, %+v", ok, h)
	}
}

// A reservation of nothing needs a window that is known and has not ended.
func TestReservationOfNothingNeedsAWindow(t *testing.T) {
	b := &store.Budget{ID: "b", Unit: store.USD, Limit: 100}
	w := &Wallet{Holder: "a"}
	if _, ok := w.Reserve(b, 0, 0); ok {
		t.Error("before the first slice")
	}
	w.Apply(b, Grant{Seq: 1, End: 1000, Granted: 10, For: 5000}, 1, 0)
	for now, want := range map[int64]bool{0: true, 999: true, 1000: false} {
		if _, ok := w.Reserve(b, 0, now); ok != want {
			t.Errorf("at %d: %v", now, ok)
		}
	}
}

// A reservation whose end is never told counts for heldFor to twice as long.
func TestReservationOfALostCallEnds(t *testing.T) {
	for after, want := range map[int64]int64{0: 5, heldFor: 5, 2*heldFor - 1: 5, 2 * heldFor: 10, 3 * heldFor: 10} {
		b := &store.Budget{ID: "b", Unit: store.Tokens, Limit: 100}
		w := &Wallet{Holder: "a"}
		w.Apply(b, Grant{Seq: 1, Granted: 10, For: 10 * heldFor}, 1, 0)
		w.slices["b"].since = 0
		if _, ok := w.Reserve(b, 5, 0); !ok {
			t.Fatal("nothing is lent")
		}
		if _, ok := w.Reserve(b, want+1, after); ok {
			t.Errorf("after %d: more than %d are free", after, want)
		}
		if _, ok := w.Reserve(b, want, after); !ok {
			t.Errorf("after %d: less than %d are free", after, want)
		}
	}
}
