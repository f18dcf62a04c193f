package budget

import (
	"slices"
	"strings"
	"sync"

	"weir/pkg/store"
)

// How long a refusal is remembered. A limit that was raised ends it.
const (
	refusedFor = 5 * second
	lentFor    = second
)

// Wallet has the slices that one isolate was lent of a machine's budgets. Its methods
// and those of its Holds may be called at the same time.
type Wallet struct {
	Holder string // random, different for every Wallet

	mu     sync.Mutex // of all slices
	slices map[string]*slice
}

// slice is what the isolate has of one budget in one window.
type slice struct {
	mu       *sync.Mutex // of the wallet
	budget   *store.Budget
	Grant          // the last one
	sent     int64 // when it was asked for
	used     int64
	reserved [2]int64 // by calls that began in this span of heldFor, and in the one before
	span     int64    // the number of this span
	since    int64    // when it began
	unpriced int64
	back     int64 // given back of what was granted
	late     int64 // used by calls of earlier windows beyond their estimates, for the next one
	waiting  int64 // of calls that ask for a slice
	refused  int64 // calls that need as much are refused
	until    int64 // until then
	limit    int64 // that the refusal was for
}

// Hold is what a call has reserved of a budget.
type Hold struct {
	Budget *store.Budget
	Amount int64
	slice  *slice
	start  int64 // of the window
	span   int64 // see slice
}

// slice returns the slice of a budget, which begins empty. The caller has the lock.
func (w *Wallet) slice(b *store.Budget) *slice {
	s := w.slices[b.ID]
	if s == nil {
		if w.slices == nil {
			w.slices = map[string]*slice{}
		}
		s = &slice{mu: &w.mu}
		w.slices[b.ID] = s
	}
	s.budget = b
	return s
}

// free returns what a call that begins now may use.
func (s *slice) free(now int64) int64 {
	if now < s.sent || now-s.sent >= s.For {
		return 0
	}
	return s.rest()
}

// rest returns what is lent and no call has reserved or used.
func (s *slice) rest() int64 { return s.Granted - (s.back - s.Back) - s.used - s.held() }

// giveBack returns what is lent and not reserved, but for an amount, to the object. The
// next Ask states it.
func (s *slice) giveBack(but int64) {
	if n := s.rest() - but; n > 0 {
		s.back = min(s.back+n, maxAmount)
	}
}

// held returns what calls have reserved.
func (s *slice) held() int64 { return s.reserved[0] + s.reserved[1] }

// age drops what calls have reserved that began one to two spans ago: the platform can
// end a call without a word.
func (s *slice) age(now int64) {
	switch since := now - s.since; {
	case since < 0: // the clock went back
		s.since = now
	case since >= 2*heldFor:
		s.reserved, s.span, s.since = [2]int64{}, s.span+2, now
	case since >= heldFor:
		s.reserved, s.span, s.since = [2]int64{0, s.reserved[0]}, s.span+1, now
	}
}

// open reports whether the window of the last Grant has not ended.
func (s *slice) open(now int64) bool { return s.Seq > 0 && (s.End == 0 || now < s.End) }

// Refusal returns the Grant by which a call of an amount is known to be refused, with
// the wait that is left, or nil.
func (w *Wallet) Refusal(b *store.Budget, amount, now int64) *Grant {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.slices[b.ID]
	if s == nil || s.refused == 0 || amount < s.refused || now >= s.until || now < s.sent || s.limit != b.Limit {
		return nil
	}
	if s.age(now); s.free(now)-s.waiting >= amount { // a call has ended
		return nil
	}
	g := s.Grant
	if g.Wait > 0 {
		g.Wait = max(g.Wait-(now-s.sent), second)
	}
	return &g
}

// Reserve reserves an amount if a slice has it beside what calls wait for, without asking
// anyone. For an amount of 0 the window must be known.
func (w *Wallet) Reserve(b *store.Budget, amount, now int64) (Hold, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.slices[b.ID]
	if s == nil {
		return Hold{}, false
	}
	return s.reserve(b, amount, s.waiting, now)
}

// ReserveLent is Reserve for a call that has waited for the amount, before its wait is done.
func (w *Wallet) ReserveLent(b *store.Budget, amount, now int64) (Hold, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slice(b).reserve(b, amount, 0, now)
}

// reserve reserves an amount of what is lent but for what others wait for.
func (s *slice) reserve(b *store.Budget, amount, others, now int64) (Hold, bool) {
	s.age(now)
	if amount > 0 && s.free(now)-others < amount || amount == 0 && !s.open(now) {
		return Hold{}, false
	}
	s.reserved[0] += amount
	return Hold{Budget: b, Amount: amount, slice: s, start: s.Start, span: s.span}, true
}

// sharePart is the part of what is left of a budget that a call may reserve which can do
// with less: so that a few long answers do not reserve all of it.
const sharePart = 8

// Share returns how much a call reserves that needs least, and can use up to most, of a
// budget that has left.
func Share(left, least, most int64) int64 { return min(max(left/sharePart, least), most) }

// Share is Share of what the isolate knows to be left.
func (w *Wallet) Share(b *store.Budget, least, most, now int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := b.Limit
	if s := w.slices[b.ID]; s != nil && s.open(now) {
		s.age(now)
		left = max(s.rest(), 0) + s.Left
	}
	return Share(left, least, most)
}

// Wait notes that a call needs an amount and asks for it, until done is called.
func (w *Wallet) Wait(b *store.Budget, amount int64) (ask Ask, done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.slice(b)
	s.waiting += amount
	ask = s.ask(b.ID)
	ask.Own = amount
	return ask, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.waiting -= amount
	}
}

func (s *slice) ask(id string) Ask {
	return Ask{
		Budget: id, Start: s.Start, Used: max(s.used, s.Used), From: s.Used, Held: s.held(), Back: s.back, Need: s.waiting,
		Unpriced: s.unpriced, UnpricedFrom: s.Grant.Unpriced,
	}
}

// idlePart returns the part of a limit, as 1/idlePart, that an isolate keeps at most for calls
// that follow: what the object lends it for them. The others are free for other isolates.
func idlePart(b *store.Budget) int64 {
	switch {
	case b.Unit == store.Calls:
		return 4
	case b.IsLimit():
		return 8
	}
	return 2 * restPart
}

// Report returns what the object does not know yet of the use of budgets. find returns a
// budget by its id. One that it does not find was deleted, or is newer than the snapshot of
// the call that reports: its slice is forgotten once there is nothing to report of it, or
// the object has not answered for it for as long as a call can take.
func (w *Wallet) Report(find func(id string) *store.Budget, now int64) (asks []Ask) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, s := range w.slices {
		// Calls that reserved more than they used leave much, which others may need.
		s.giveBack(s.waiting + s.budget.Limit/idlePart(s.budget))
		news := s.used > s.Used || s.unpriced != s.Grant.Unpriced || s.held() < s.Grant.Held || s.back != s.Grant.Back
		switch idle := s.held()+s.waiting+s.late == 0; {
		case find(id) == nil && (idle && !news || now-s.sent >= heldFor):
			delete(w.slices, id)
		case news:
			asks = append(asks, s.ask(id))
		}
	}
	slices.SortFunc(asks, func(a, b Ask) int { return strings.Compare(a.Budget, b.Budget) })
	return asks
}

// Apply takes the answer to an Ask for an amount that was sent at a time.
func (w *Wallet) Apply(b *store.Budget, g Grant, amount, sent int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slice(b).apply(g, amount, sent)
}

// Reported takes the answer to a Report that was sent at a time.
func (w *Wallet) Reported(grants []Grant, sent int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range grants {
		if s := w.slices[grants[i].Budget]; s != nil {
			s.apply(grants[i], 0, sent)
		}
	}
}

func (s *slice) apply(g Grant, amount, sent int64) {
	if g.Seq <= s.Seq {
		return // a later answer has overtaken it
	}
	if g.Start != s.Start {
		s.used, s.reserved, s.unpriced, s.back = min(g.Used+s.late, maxAmount), [2]int64{}, g.Unpriced, g.Back
		s.late = 0
	}
	s.Grant, s.sent = g, sent
	s.refused, s.until = 0, 0
	if g.Refused {
		s.refused, s.limit = amount, s.budget.Limit
		s.until = sent + refusedFor
		if g.Lent { // what is left may be enough for a call of another isolate
			s.until = sent + lentFor
			s.giveBack(0)
		}
	}
}

// Settle ends a reservation with what the call has used in truth. If its window is over,
// the estimate has counted there, and what is beyond it counts in the next one.
func (h *Hold) Settle(used, now int64) {
	s := h.slice
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if used = min(max(used, 0), maxUse); h.Budget.Unit == store.Calls {
		used = 0 // the call is not under way any more
	}
	if s.Start != h.start || !s.open(now) {
		used = max(used-h.Amount, 0)
	}
	if i := s.span - h.span; s.Start == h.start && i < int64(len(s.reserved)) {
		s.reserved[i] -= h.Amount
	}
	h.Amount = 0
	s.count(used, now)
}

// Count adds what a call has used beside its reservation.
func (h *Hold) Count(used, now int64) {
	if s := h.slice; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.count(used, now)
	}
}

// count adds what a call has used.
func (s *slice) count(used, now int64) {
	used = min(max(used, 0), maxUse)
	if s.open(now) {
		s.used = min(s.used+used, maxAmount)
	} else {
		s.late = min(s.late+used, maxAmount)
	}
}

// CountUnpriced counts an answer whose price is not known.
func (h *Hold) CountUnpriced() {
	if s := h.slice; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.Start == h.start {
			s.unpriced++
		}
	}
}
