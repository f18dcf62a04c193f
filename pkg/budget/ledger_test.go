package budget

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"weir/pkg/store"
)

const noon = int64(1_795_348_800_000) // 2026-11-22T12:00Z

// object is a ledger that is stored after every turn.
type object struct {
	t      *testing.T
	budget store.Budget
	stored []byte
	now    int64
	zone   Zone
}

func newObject(t *testing.T, limit int64, window string) *object {
	return &object{t: t, budget: store.Budget{ID: "b1", Name: "b1", Unit: store.Requests, Limit: limit, Window: window}, stored: []byte("{}"), now: noon}
}

func (o *object) ledger() *Ledger {
	l := new(Ledger)
	if err := json.Unmarshal(o.stored, l); err != nil {
		o.t.Fatal(err)
	}
	return l
}

func (o *object) take(holder string, a Ask) Grant {
	l := o.ledger()
	g, ok := l.Take(&o.budget, holder, &a, o.now, o.zone)
	if !ok {
		o.t.Fatalf("%s: the ask is refused as not valid: %+v", holder, a)
	}
	o.stored, _ = json.Marshal(l)
	return g
}

// call reserves an amount, asking once if that is needed.
func (o *object) call(w *Wallet, amount int64) (Hold, Grant, bool) {
	if h, ok := w.Reserve(&o.budget, amount, o.now); ok {
		return h, Grant{}, true
	}
	ask, done := w.Wait(&o.budget, amount)
	g := o.take(w.Holder, ask)
	w.Apply(&o.budget, g, amount, o.now)
	done()
	h, ok := w.Reserve(&o.budget, amount, o.now)
	return h, g, ok
}

func (o *object) find(id string) *store.Budget { return &o.budget }

// report tells the object what was used.
func (o *object) report(w *Wallet) {
	for _, a := range w.Report(o.find, o.now) {
		w.Apply(&o.budget, o.take(w.Holder, a), 0, o.now)
	}
}

func TestSliceServesFollowingCallsWithoutAsking(t *testing.T) {
	o, w := newObject(t, 10_000, Day), &Wallet{Holder: "a"}
	if _, _, ok := o.call(w, 10); !ok {
		t.Fatal("the first call is refused")
	}
	asked := 0
	for range 40 {
		if _, ok := w.Reserve(&o.budget, 10, o.now); !ok {
			asked++
			o.call(w, 10)
		}
	}
	if asked > 1 {
		t.Errorf("40 further calls asked %d times, want at most once", asked)
	}
}

func TestRefusalForGoodStatesTheEndOfTheWindow(t *testing.T) {
	o, w := newObject(t, 3, Day), &Wallet{Holder: "a"}
	for i := range 3 {
		h, _, ok := o.call(w, 1)
		if !ok {
			t.Fatalf("call %d is refused", i+1)
		}
		h.Settle(1, o.now)
	}
	_, g, ok := o.call(w, 1)
	if ok || !g.Refused || g.Lent || g.Wait != 12*hour {
		t.Fatalf("the fourth call: %v %+v, want a refusal until midnight", ok, g)
	}
	if w.Refusal(&o.budget, 1, o.now+second) == nil {
		t.Error("the isolate does not remember the refusal")
	}
	if got := w.Refusal(&o.budget, 1, o.now+2*second).Wait; got != 12*hour-2*second {
		t.Errorf("the remembered wait is %d, want what is left", got)
	}
	if w.Refusal(&o.budget, 1, o.now+refusedFor) != nil {
		t.Error("a refusal is remembered for too long")
	}
	raised := o.budget
	raised.Limit++
	if w.Refusal(&raised, 1, o.now+second) != nil {
		t.Error("a refusal outlives its limit")
	}
	o.now += 12 * hour
	if _, _, ok := o.call(w, 1); !ok {
		t.Error("a call of the next day is refused")
	}
}

// A regression: a call larger than the limit marked the budget as exhausted, so that
// no alert at 50 or 80 % followed.
func TestCallLargerThanTheLimitDoesNotExhaustIt(t *testing.T) {
	o, w := newObject(t, 100, Day), &Wallet{Holder: "a"}
	if _, g, ok := o.call(w, 101); ok || !g.Refused || g.Lent {
		t.Fatalf("a call of 101: %v %+v, want a refusal", ok, g)
	}
	if l := o.ledger(); l.Refused || l.Reached(&o.budget) != 0 {
		t.Errorf("the budget is exhausted: %+v", l)
	}
	h, _, _ := o.call(w, 60)
	h.Settle(60, o.now)
	o.report(w)
	if got := o.ledger().Reached(&o.budget); got != 50 {
		t.Errorf("at 60 of 100 the alert is %d, want 50", got)
	}
	if _, g, ok := o.call(w, 41); ok || !g.Refused {
		t.Fatalf("a call of 41 with 40 left: %+v", g)
	}
	if l := o.ledger(); l.Refused || l.Reached(&o.budget) != 50 {
		t.Errorf("a call that fits into the limit and not into the rest exhausts it: %+v", l)
	}
	h, _, _ = o.call(w, 36)
	h.Settle(36, o.now)
	o.report(w)
	o.call(w, 5)
	if l := o.ledger(); !l.Refused || l.Reached(&o.budget) != 100 {
		t.Errorf("a call of 5 with 4 left: %+v", l)
	}
}

// A regression: what a call used was lost if its window had ended, so that calls longer
// than a window of a minute never counted beyond their estimate.
func TestUseBeyondTheEstimateCountsInTheNextWindow(t *testing.T) {
	for _, asked := range []bool{false, true} { // whether another call has asked before the end
		o, w := newObject(t, 1000, Minute), &Wallet{Holder: "a"}
		long, _, _ := o.call(w, 10)
		exact, _, _ := o.call(w, 10)
		o.now += minute
		if asked {
			o.call(w, 1)
		}
		long.Settle(30, o.now)
		exact.Settle(10, o.now)
		next, _, ok := o.call(w, 1)
		if !ok {
			t.Fatal("a call of the next window is refused")
		}
		next.Settle(1, o.now)
		o.report(w)
		if l := o.ledger(); l.Spent != 21 {
			t.Errorf("asked %v: %d is spent, want 20 beyond the estimate and 1: %+v", asked, l.Spent, l)
		}
	}
}

// FuzzTake plays asks of one isolate that may state anything.
func FuzzTake(f *testing.F) {
	f.Add([]byte(`[{"budget":"b1","start":0,"used":5,"held":3,"need":4,"own":4}]`), int64(100))
	f.Add([]byte(`[{"used":1,"from":2},{"used":1152921504606846976,"own":1},{"start":-9,"unpriced":3}]`), int64(1))
	f.Add([]byte(`[{"held":1152921504606846976,"need":1152921504606846976},{"own":9}]`), int64(1<<50))
	f.Fuzz(func(t *testing.T, raw []byte, limit int64) {
		var asks []Ask
		if json.Unmarshal(raw, &asks) != nil || len(asks) > 100 || limit < 1 || limit > 1<<50 {
			return
		}
		o := newObject(t, limit, Day)
		spent := int64(0)
		for i := range asks {
			l := o.ledger()
			before, out := *l, l.Out(o.now)
			g, ok := l.Take(&o.budget, string(rune('a'+i%3)), &asks[i], o.now, nil)
			if !ok {
				if l.Spent != before.Spent || l.Out(o.now) != out {
					t.Fatalf("ask %d is not valid and changes the ledger: %+v", i, l)
				}
				continue
			}
			if l.Spent < spent || l.Spent > maxAmount || g.Granted < 0 || g.Seq != before.Seq+1 {
				t.Fatalf("ask %d: %+v, %+v", i, l, g)
			}
			// Only what the isolates state themselves exceeds the limit.
			if now := l.Out(o.now); now > out && l.Spent+now > limit && asks[i].Held == 0 {
				t.Fatalf("ask %d: %d is lent and %d spent of %d", i, now, l.Spent, limit)
			}
			spent = l.Spent
			o.stored, _ = json.Marshal(l)
			o.now += int64(i) * second
		}
	})
}

// A ledger stays small however many isolates ask, and an ask costs about the same.
func TestLedgerDoesNotGrow(t *testing.T) {
	o := newObject(t, 1<<40, Total)
	for i := range 3 * maxLeases {
		o.take("holder-"+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676)), Ask{Budget: "b1", Own: 1, Need: 1})
	}
	if n := len(o.ledger().Leases); n != maxLeases {
		t.Errorf("%d leases, want %d", n, maxLeases)
	}
	if len(o.stored) > 200*maxLeases {
		t.Errorf("the ledger has %d bytes", len(o.stored))
	}
}

func TestRefusalWhileOthersHoldSlicesIsShort(t *testing.T) {
	o, a, b := newObject(t, 1, Total), &Wallet{Holder: "a"}, &Wallet{Holder: "b"}
	if _, _, ok := o.call(a, 1); !ok {
		t.Fatal("the first call is refused")
	}
	_, g, ok := o.call(b, 1)
	if ok || !g.Lent || g.Wait <= 0 || g.Wait > minute {
		t.Errorf("got %v %+v, want a refusal for a minute at most", ok, g)
	}
}

func TestUnusedSliceComesBack(t *testing.T) {
	o, a, b := newObject(t, 100, Total), &Wallet{Holder: "a"}, &Wallet{Holder: "b"}
	h, _, _ := o.call(a, 1) // and a slice of 5, of which nothing is used
	h.Settle(0, o.now)
	o.report(a)
	if out := o.ledger().Leases[0].Granted; out < 2 {
		t.Fatalf("only %d is lent", out)
	}
	if _, _, ok := o.call(b, 100); ok {
		t.Fatal("what is lent is lent again")
	}
	o.now += restFor
	if _, _, ok := o.call(b, 99); !ok {
		t.Error("the rest of a slice did not come back after a minute")
	}
	if _, ok := a.Reserve(&o.budget, 1, o.now); ok {
		t.Error("its isolate still uses it")
	}
}

func TestReservedAmountStaysForTheLongestCall(t *testing.T) {
	o, a, b := newObject(t, 10, Total), &Wallet{Holder: "a"}, &Wallet{Holder: "b"}
	h, _, ok := o.call(a, 8)
	if !ok {
		t.Fatal("refused")
	}
	o.report(a)
	a.Apply(&o.budget, o.take("a", Ask{Budget: "b1", Held: 8}), 0, o.now)
	o.now += 15 * minute
	if _, _, ok := o.call(b, 3); ok {
		t.Error("what a call of 15 minutes has reserved is lent again")
	}
	h.Settle(8, o.now)
	o.report(a)
	if l := o.ledger(); l.Spent != 8 || l.Out(o.now) > 2 {
		t.Errorf("after its end: %+v", l)
	}
	if _, _, ok := o.call(b, 3); ok {
		t.Error("more than the limit is lent")
	}
}

func TestCallsThatWaitTogetherAreLentOnce(t *testing.T) {
	o, w := newObject(t, 1000, Total), &Wallet{Holder: "a"}
	var asks []Ask
	var done []func()
	for range 100 {
		a, d := w.Wait(&o.budget, 5)
		asks, done = append(asks, a), append(done, d)
	}
	var grants []Grant
	for _, a := range asks {
		grants = append(grants, o.take("a", a))
	}
	if got := o.ledger().Leases[0].Granted; got < 500 || got > 550+100 {
		t.Errorf("100 calls of 5 were lent %d, want 500 and a slice", got)
	}
	served := 0
	for i := len(grants) - 1; i >= 0; i-- { // the answers come in any order
		w.Apply(&o.budget, grants[i], 5, o.now)
		done[i]()
		if _, ok := w.Reserve(&o.budget, 5, o.now); ok {
			served++
		}
	}
	if served != 100 {
		t.Errorf("%d of 100 calls were served", served)
	}
}

func TestLostAnswerIsNotLentTwice(t *testing.T) {
	o, w := newObject(t, 100, Total), &Wallet{Holder: "a"}
	ask, done := w.Wait(&o.budget, 50)
	o.take("a", ask) // the answer is lost
	done()
	if _, _, ok := o.call(w, 50); !ok {
		t.Error("the second try is refused: the first is lent for nothing")
	}
	if out := o.ledger().Out(o.now); out > 55 {
		t.Errorf("%d is lent to one call of 50", out)
	}
}

// A report that arrives after a later one must not lend again what it states as
// reserved and what is used by now.
func TestOvertakenReportLendsNothing(t *testing.T) {
	o, w := newObject(t, 100, Total), &Wallet{Holder: "a"}
	first, _, _ := o.call(w, 10)
	rest, _, ok := o.call(w, 90)
	if !ok {
		t.Fatal("refused")
	}
	first.Settle(10, o.now)
	late := w.Report(o.find, o.now)[0]
	rest.Settle(90, o.now)
	o.report(w)
	w.Apply(&o.budget, o.take("a", late), 0, o.now)
	if _, ok := w.Reserve(&o.budget, 1, o.now); ok {
		t.Error("a call beyond the limit is served")
	}
	if l := o.ledger(); l.Spent != 100 || l.Out(o.now) != 0 {
		t.Errorf("after a late report: %+v", l)
	}
}

func TestCallWithoutAnEndFreesItsReservation(t *testing.T) {
	o, w := newObject(t, 10, Total), &Wallet{Holder: "a"}
	late, _, _ := o.call(w, 4)
	o.call(w, 6) // its end is never seen
	o.now += heldFor
	if _, _, ok := o.call(w, 1); ok {
		t.Fatal("what calls have reserved is lent again before the longest has ended")
	}
	o.now += heldFor
	h, _, ok := o.call(w, 10)
	if !ok {
		t.Fatal("the reservation of a lost call never ends")
	}
	late.Settle(4, o.now)
	h.Settle(6, o.now)
	o.report(w)
	if l := o.ledger(); l.Spent != 10 || l.Out(o.now) != 0 {
		t.Errorf("at the end: %+v", l)
	}
}

func TestUseHasABound(t *testing.T) {
	o, w := newObject(t, 100, Total), &Wallet{Holder: "a"}
	less, _, _ := o.call(w, 10)
	more, _, _ := o.call(w, 10)
	less.Settle(-1<<62, o.now)
	o.report(w)
	if l := o.ledger(); l.Spent != 0 {
		t.Errorf("a negative use counts: spent is %d", l.Spent)
	}
	more.Settle(1<<63-1, o.now)
	o.report(w)
	if l := o.ledger(); l.Spent != maxUse {
		t.Errorf("spent is %d, want %d", l.Spent, int64(maxUse))
	}
	if _, _, ok := o.call(w, 1); ok {
		t.Error("a call beyond the limit is served")
	}
}

func TestUseOfAForgottenLeaseCountsOnce(t *testing.T) {
	o, w := newObject(t, 1_000_000, Total), &Wallet{Holder: "first"}
	h, _, _ := o.call(w, 10)
	h.Settle(10, o.now)
	o.report(w)
	for i := range maxLeases {
		o.now++
		o.call(&Wallet{Holder: string(rune('a'+i%26)) + string(rune('a'+i/26))}, 1)
	}
	if n := len(o.ledger().Leases); n != maxLeases {
		t.Fatalf("there are %d leases", n)
	}
	h, _, ok := o.call(w, 7)
	if !ok {
		t.Fatal("refused")
	}
	h.Settle(7, o.now)
	o.report(w)
	if got := o.ledger().Spent; got != 17 {
		t.Errorf("spent is %d, want 17", got)
	}
}

func TestUseBeyondTheEstimateCounts(t *testing.T) {
	o, w := newObject(t, 100, Total), &Wallet{Holder: "a"}
	h, _, _ := o.call(w, 10)
	h.Settle(95, o.now)
	o.report(w)
	if _, _, ok := o.call(w, 10); ok {
		t.Error("a call beyond the limit is served")
	}
	if l := o.ledger(); l.Spent != 95 {
		t.Errorf("spent is %d", l.Spent)
	}
}

func TestInvalidAskChangesNothing(t *testing.T) {
	o := newObject(t, 100, Total)
	for _, a := range []Ask{{Used: -1}, {Held: -1}, {Own: maxAmount + 1}, {Used: 1, From: 2}, {UnpricedFrom: 1}} {
		l := o.ledger()
		if _, ok := l.Take(&o.budget, "a", &a, o.now, nil); ok || len(l.Leases) > 0 {
			t.Errorf("%+v is accepted", a)
		}
	}
}

func TestEachThresholdIsReportedOnce(t *testing.T) {
	b := store.Budget{Limit: 1000}
	var l Ledger
	for _, step := range []struct {
		spent   int64
		refused bool
		want    int
	}{{499, false, 0}, {500, false, 50}, {700, false, 0}, {800, false, 80}, {990, false, 0}, {990, true, 100}, {1200, true, 0}} {
		l.Spent, l.Refused = step.spent, step.refused
		if got := l.Reached(&b); got != step.want {
			t.Errorf("spent %d, refused %v: got %d, want %d", step.spent, step.refused, got, step.want)
		}
	}
	l = Ledger{Spent: 1000}
	if got := l.Reached(&b); got != 100 {
		t.Errorf("a jump to the limit reports %d, want 100 alone", got)
	}
}

// TestBudgetHolds plays ten isolates that end at any time, whose messages get lost
// and whose clock and that of the object jump. The overshoot is at most what isolates
// that ended, or whose slice expired under a call, had been lent.
func TestBudgetHolds(t *testing.T) {
	for seed := range uint64(40) {
		play(t, seed, false)
		play(t, seed, true)
	}
}

func play(t *testing.T, seed uint64, hostile bool) {
	const each, limit = 10, 1000 // a budget of 100 calls
	rnd := rand.New(rand.NewPCG(seed, 1))
	o := newObject(t, limit, Total)
	type call struct {
		hold Hold
		by   int
	}
	var wallets []*Wallet
	for i := range 10 {
		wallets = append(wallets, &Wallet{Holder: string(rune('a' + i))})
	}
	var running []call
	used, lost, served, ended := int64(0), int64(0), 0, 0
	// leave counts what a lease that will not be accounted for has out.
	leave := func(holder string) {
		l := o.ledger()
		for i := range l.Leases {
			if l.Leases[i].Holder == holder {
				lost += l.Leases[i].Granted - l.Leases[i].Used
			}
		}
	}
	finish := func(i int) {
		c := running[i]
		true_ := int64(each)
		if rnd.IntN(4) == 0 {
			true_ = rnd.Int64N(each + 1) // the estimate was too high
		}
		c.hold.Settle(true_, o.now)
		used += true_
		running = append(running[:i], running[i+1:]...)
	}
	for range 1000 {
		by := rnd.IntN(len(wallets))
		w := wallets[by]
		if h, ok := w.Reserve(&o.budget, each, o.now); ok {
			running, served = append(running, call{h, by}), served+1
		} else {
			ask, done := w.Wait(&o.budget, each)
			lose := hostile && rnd.IntN(10) == 0
			if !lose || rnd.IntN(2) == 0 { // else the message itself is lost
				if g := o.take(w.Holder, ask); !lose {
					w.Apply(&o.budget, g, each, o.now)
				}
			}
			done()
			if h, ok := w.Reserve(&o.budget, each, o.now); ok {
				running, served = append(running, call{h, by}), served+1
			}
		}
		if len(running) > 0 && rnd.IntN(3) > 0 {
			finish(rnd.IntN(len(running)))
		}
		if rnd.IntN(5) == 0 {
			if a := w.Report(o.find, o.now); len(a) > 0 {
				g := o.take(w.Holder, a[0])
				if !hostile || rnd.IntN(5) > 0 {
					w.Apply(&o.budget, g, 0, o.now)
				}
			}
		}
		o.now += rnd.Int64N(500)
		if hostile && rnd.IntN(50) == 0 { // an isolate ends with its calls
			leave(w.Holder)
			for i := len(running) - 1; i >= 0; i-- {
				if running[i].by == by {
					used += each // the provider may bill them
					running = append(running[:i], running[i+1:]...)
				}
			}
			ended++
			wallets[by] = &Wallet{Holder: w.Holder + "'"}
		}
		if hostile && rnd.IntN(100) == 0 { // the clock jumps, under all calls
			for _, w := range wallets {
				leave(w.Holder)
			}
			o.now += rnd.Int64N(4*hour) - 2*hour
		}
	}
	for len(running) > 0 {
		finish(0)
	}
	for _, w := range wallets {
		o.report(w)
	}
	if used > limit+lost {
		t.Fatalf("seed %d: %d used of %d, with slices of %d lost", seed, used, limit, lost)
	}
	if !hostile && used > limit {
		t.Fatalf("seed %d: %d used of %d without any loss", seed, used, limit)
	}
	// Once the slices are back all of it can be used.
	o.now += heldFor + 3*hour
	w := &Wallet{Holder: "last"}
	for {
		h, _, ok := o.call(w, each)
		if !ok {
			break
		}
		h.Settle(each, o.now)
	}
	o.report(w)
	if l := o.ledger(); limit-l.Spent >= each {
		t.Fatalf("seed %d: %d of %d cannot be used", seed, limit-l.Spent, limit)
	}
}

// A regression: the rest of a slice that was too small for a call stayed with its isolate
// for a minute, as did that of another, although both together were enough.
func TestRestThatDoesNotServeComesBack(t *testing.T) {
	o, a, b := newObject(t, 1000, Day), &Wallet{Holder: "a"}, &Wallet{Holder: "b"}
	for _, w := range []*Wallet{a, b} {
		h, _, _ := o.call(w, 470)
		h.Settle(470, o.now)
		o.report(w)
	}
	rest := o.ledger().Leases[0].out(o.now)
	if rest == 0 || rest >= 60 {
		t.Fatalf("the first isolate has %d of the last 60: %+v", rest, o.ledger())
	}
	if _, g, ok := o.call(b, 60); ok || !g.Lent || g.Busy || g.Unspent < 60 || g.Wait != restFor {
		t.Fatalf("a call of the last 60: %v %+v, want a refusal because of what is lent", ok, g)
	}
	o.report(b) // returns its own
	if _, _, ok := o.call(a, 60); !ok {
		t.Errorf("the other isolate does not get it: %+v", o.ledger())
	}
}

// A regression: what calls had reserved that then failed stayed reserved for 20 minutes.
func TestReservationThatIsNotUsedIsReported(t *testing.T) {
	o, w := newObject(t, 1000, Day), &Wallet{Holder: "a"}
	h, _, _ := o.call(w, 300)
	if got := o.ledger().Leases[0].Held; got != 300 {
		t.Errorf("%d held by the call that has asked, want 300", got)
	}
	h.Settle(0, o.now)
	o.report(w)
	if l := o.ledger(); l.Leases[0].Held != 0 {
		t.Errorf("still held: %+v", l.Leases[0])
	}
	if asks := w.Report(o.find, o.now); len(asks) != 0 {
		t.Errorf("reported again: %+v", asks)
	}
}

// A dead isolate's reservations are spent after 20 minutes, or at once if no isolate from
// before a time can be alive.
func TestReservationsOfTheDeadAreSpent(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pass  int64
		began func(o *object) int64
		spent int64
	}{
		{"at once", second, func(*object) int64 { return 0 }, 100},
		{"after the longest call", heldFor, func(*object) int64 { return 0 }, 400},
		{"the process was started again", second, func(o *object) int64 { return o.now }, 400},
	} {
		o, w := newObject(t, 1000, Total), &Wallet{Holder: "dead"}
		h, _, _ := o.call(w, 100)
		h.Settle(100, o.now)
		o.call(w, 300)
		o.report(w)
		o.now += tt.pass
		l := o.ledger()
		l.Expire(&o.budget, o.now, func(s *Lease) bool { return s.At < tt.began(o) })
		if l.Spent != tt.spent || tt.spent == 400 && l.Out(o.now) != 0 {
			t.Errorf("%s: %+v, want %d spent", tt.name, l, tt.spent)
		}
	}
}

// An isolate that was taken for dead is alive: what it has used counts once.
func TestUseOfAnIsolateThatWasTakenForDeadCountsOnce(t *testing.T) {
	for _, used := range []int64{0, 40, 300, 500} {
		o, w := newObject(t, 10_000, Total), &Wallet{Holder: "a"}
		h, _, _ := o.call(w, 300)
		o.now += heldFor
		other := &Wallet{Holder: "b"}
		g, _, _ := o.call(other, 1)
		g.Settle(1, o.now)
		o.report(other)
		h.Settle(used, o.now)
		o.report(w)
		if got, want := o.ledger().Spent, max(used, 300)+1; got != want {
			t.Errorf("%d used: spent is %d, want %d", used, got, want)
		}
		if h, _, ok := o.call(w, 500); !ok {
			t.Errorf("%d used: the next call is refused", used)
		} else {
			h.Settle(500, o.now)
		}
		o.report(w)
		if got, want := o.ledger().Spent, max(used+500, 300)+1; got != want {
			t.Errorf("%d used: spent is %d after another 500, want %d", used, got, want)
		}
	}
}

func TestCallsUnderWayAreBoundedAndNeverSpent(t *testing.T) {
	o := newObject(t, 5, Total)
	o.budget.Unit, o.budget.ID = store.Calls, "parallel:k"
	a, b := &Wallet{Holder: "a"}, &Wallet{Holder: "b"}
	var under []Hold
	for range 7 {
		for _, w := range []*Wallet{a, b} {
			if h, _, ok := o.call(w, 1); ok {
				under = append(under, h)
			}
			o.report(w)
			o.now += second
		}
	}
	if len(under) != 5 {
		t.Fatalf("%d calls under way, want 5", len(under))
	}
	if _, g, ok := o.call(a, 1); ok || !g.Busy || g.Wait != busyWait {
		t.Errorf("the sixth: %v %+v", ok, g)
	}
	for i := range under {
		under[i].Settle(1, o.now)
	}
	o.report(a)
	o.report(b)
	o.now += second
	for i := range 4 { // b has one for a call that follows
		if _, _, ok := o.call(a, 1); !ok {
			t.Errorf("call %d after all have ended is refused: %+v", i+1, o.ledger())
		}
	}
	if l := o.ledger(); l.Spent != 0 {
		t.Errorf("spent: %+v", l)
	}
	l := o.ledger()
	if l.Expire(&o.budget, o.now+heldFor, nil); l.Spent != 0 || l.Out(o.now) != 0 {
		t.Errorf("of dead isolates: %+v", l)
	}
}

func TestLeaseOfADeadIsolateExpires(t *testing.T) {
	const at, limit = 1000, 100
	for _, tt := range []struct {
		name           string
		lease          Lease
		now, began     int64
		changed        bool
		spent, granted int64
	}{
		{"fresh", Lease{Granted: 10, Used: 2, Held: 3}, at + heldFor - 1, 0, false, 0, 10},
		{"silent for long", Lease{Granted: 10, Used: 2, Held: 3}, at + heldFor, 0, true, 3, 5},
		{"silent, with nothing reserved", Lease{Granted: 10, Used: 2}, at + heldFor, 0, true, 0, 2},
		{"silent, with nothing lent", Lease{Granted: 2, Used: 2}, at + heldFor, 0, false, 0, 2},
		{"of the process that serves", Lease{Granted: 10, Used: 2, Held: 3}, at, at, false, 0, 10},
		{"of one before it", Lease{Granted: 10, Used: 2, Held: 3}, at, at + 1, true, 3, 5},
	} {
		tt.lease.At = at
		l := Ledger{Leases: []Lease{tt.lease}}
		changed := l.Expire(&store.Budget{Unit: store.Requests, Limit: limit}, tt.now,
			func(s *Lease) bool { return s.At < tt.began })
		if changed != tt.changed || l.Spent != tt.spent || l.Leases[0].Granted != tt.granted || changed && l.Leases[0].Held != 0 {
			t.Errorf("%s: changed %v, %+v", tt.name, changed, l)
		}
	}
}

// A refusal reaches the budget only if the call would fit into an unused one, and little is left.
func TestRefusalReachesTheBudget(t *testing.T) {
	b := &store.Budget{Unit: store.Tokens, Limit: 1000}
	for _, tt := range []struct {
		spent, own int64
		reached    bool
	}{
		{1000, 1000, true}, {1000, 1001, false}, {1000 - 1000/refusedPart, 1000, false}, {1001 - 1000/refusedPart, 1000, true}, {0, 1001, false},
	} {
		l := Ledger{Spent: tt.spent}
		l.refuse(b, tt.own, 0, &Grant{})
		if l.Refused != tt.reached {
			t.Errorf("%d spent, a call of %d: %v", tt.spent, tt.own, l.Refused)
		}
	}
}

// An isolate was silent for so long that its lease ended, while its calls went on.
func TestLeaseReturnsToAnIsolateThatWasSilent(t *testing.T) {
	b := &store.Budget{ID: "b", Unit: store.Calls, Limit: 10}
	l := Ledger{}
	ask := &Ask{Budget: b.ID, Held: 3, Used: 2, Own: 1, Need: 1}
	if _, ok := l.Take(b, "a", ask, 0, nil); !ok {
		t.Fatal("refused")
	}
	const later = heldFor + 1
	if l.Expire(b, later, nil); l.Out(later) != 0 {
		t.Fatalf("the lease has not ended: %+v", l)
	}
	ask.Start, ask.Own, ask.Need = l.Start, 0, 0
	if _, ok := l.Take(b, "a", ask, later, nil); !ok || l.Leases[0].Held != 3 || l.Out(later) < 3 {
		t.Errorf("after a report: %+v", l)
	}
}
