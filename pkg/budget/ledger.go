// Package budget limits what calls use: US dollars, tokens or requests.
//
// The object of a machine has a Ledger for each budget. It lends slices of what is
// left to the isolates, whose Wallets reserve the estimate of a call before it is sent
// and count its true use afterwards. A slice is stored before it is used, so what
// isolates use without the object's knowledge is never more than what is lent to them.
// See docs/decisions/0126-budgets-are-lent.md.
//
// Amounts are nano-dollars, tokens or requests, times are Unix milliseconds.
package budget

import (
	"math"
	"slices"

	"weir/pkg/store"
)

// How long a slice is lent, from the last Ask of its isolate.
const (
	restFor  = minute      // what no call has reserved
	heldFor  = 20 * minute // what calls have; the longest takes 15 minutes
	restSpan = 50 * second // of restFor, on the isolate's clock
	busyWait = 2 * second  // until a call under way may have ended
)

// restPart bounds what all isolates together are lent beyond what they need, to 1/restPart
// of the limit: no more than that is used without the object's knowledge.
const restPart = 20

// slice returns how much an isolate is lent beyond what it needs: a sixteenth of what is
// left, less with many isolates, and at most a half of the bound of restPart, a third of what
// one other isolate leaves of it, and so on: there is always some for the next one. The
// limits of keys are small numbers, of which an isolate is lent more.
func (l *Ledger) slice(b *store.Budget, of *Lease, left, now int64) int64 {
	live, others, rests := int64(0), int64(0), int64(0)
	for i := range l.Leases {
		s := &l.Leases[i]
		out := s.out(now)
		if out <= 0 {
			continue
		}
		if live++; s != of {
			others, rests = others+1, rests+out-s.Held
		}
	}
	if b.IsLimit() {
		return left / (4 + 4*live)
	}
	return min(left/(16+4*live), max(b.Limit/restPart-rests, 0)/(others+2))
}

// refusedPart decides whether a budget that refuses a call is exhausted: if less than
// 1/refusedPart of its limit is left.
const refusedPart = 20

const (
	maxLeases = 256     // of one budget; more push out the oldest
	maxAmount = 1 << 60 // of anything an isolate states
	maxUse    = 1 << 50 // of one call, more than any limit
)

// Ledger is the durable state of a budget in one window.
type Ledger struct {
	Open     bool    `json:"open,omitempty"` // a window has begun
	Start    int64   `json:"start"`
	End      int64   `json:"end,omitempty"` // 0 for never
	Spent    int64   `json:"spent"`
	Unpriced int64   `json:"unpriced,omitempty"` // answers whose price is not known
	Alerted  int     `json:"alerted,omitempty"`  // the highest percentage that was reported
	Refused  bool    `json:"refused,omitempty"`  // a call was refused for good, with hardly anything left
	Seq      int64   `json:"seq,omitempty"`      // of the last Grant
	Leases   []Lease `json:"leases,omitempty"`
}

// Lease is what one isolate has of a budget. Granted, Used, Held and Back count from
// the beginning of the window.
type Lease struct {
	Holder   string `json:"holder"`
	Granted  int64  `json:"granted"`        // it may use as much
	Used     int64  `json:"used"`           // part of Ledger.Spent
	Held     int64  `json:"held"`           // reserved by its calls
	Back     int64  `json:"back,omitempty"` // it has given back
	Unpriced int64  `json:"unpriced,omitempty"`
	At       int64  `json:"at"` // of the last Ask
}

// out returns how much of the lease is lent and not spent. An isolate with calls under way
// states more when they end: until then others may have begun with the rest.
func (l *Lease) out(now int64) int64 {
	if since := now - l.At; since < restFor || l.Held > 0 && since < heldFor {
		return max(l.Granted-l.Used, l.Held, 0)
	}
	return 0
}

// Ask is what an isolate states of a budget, and what it needs. All amounts but Own
// count from the beginning of the window, so that an Ask whose answer is lost can be
// repeated.
type Ask struct {
	Budget       string `json:"budget"`
	Start        int64  `json:"start"`          // of the window
	Used         int64  `json:"used,omitempty"` // by calls that have ended
	From         int64  `json:"from,omitempty"` // of Used: what the object has confirmed
	Held         int64  `json:"held,omitempty"` // reserved by calls under way
	Back         int64  `json:"back,omitempty"` // given back of what was granted
	Need         int64  `json:"need,omitempty"` // of calls that wait for a slice, together
	Own          int64  `json:"own,omitempty"`  // of the call that asks; 0 for a report
	Unpriced     int64  `json:"unpriced,omitempty"`
	UnpricedFrom int64  `json:"unpricedFrom,omitempty"`
}

func (a *Ask) valid() bool {
	for _, n := range [...]int64{a.Used, a.From, a.Held, a.Back, a.Need, a.Own, a.Unpriced, a.UnpricedFrom} {
		if n < 0 || n > maxAmount {
			return false
		}
	}
	return a.Used >= a.From && a.Unpriced >= a.UnpricedFrom
}

// Asks is the body of the operation "budget.take".
type Asks struct {
	Holder string `json:"holder"`
	Asks   []Ask  `json:"asks"`
}

// Grant answers an Ask.
type Grant struct {
	Budget   string `json:"budget"`
	Seq      int64  `json:"seq"` // a Grant with a lower one is older
	Start    int64  `json:"start"`
	End      int64  `json:"end,omitempty"`
	Granted  int64  `json:"granted"` // from the beginning of the window
	Used     int64  `json:"used,omitempty"`
	Held     int64  `json:"held,omitempty"`
	Back     int64  `json:"back,omitempty"`
	Unpriced int64  `json:"unpriced,omitempty"`
	For      int64  `json:"for"`            // how long calls may begin with it, milliseconds
	Left     int64  `json:"left,omitempty"` // of the limit, neither spent nor lent
	// Refused reports that Own does not fit. Wait is when to ask again, in
	// milliseconds; 0 if the budget never has more.
	Refused bool  `json:"refused,omitempty"`
	Wait    int64 `json:"wait,omitempty"`
	// Lent reports that it does not fit because of what is lent, Busy that calls under way
	// have reserved too much. Unspent is what is not spent of the limit.
	Lent    bool  `json:"lent,omitempty"`
	Busy    bool  `json:"busy,omitempty"`
	Unspent int64 `json:"unspent,omitempty"`
}

// Roll begins a new window if the last one has ended. A clock that went back keeps
// the window for as long as that is near.
func (l *Ledger) Roll(b *store.Budget, now int64, zone Zone) {
	if l.Open && (l.End == 0 || now < l.End && (now >= l.Start || l.Start-now <= l.End-l.Start)) {
		return
	}
	*l = Ledger{Open: true, Seq: l.Seq}
	l.Start, l.End = Window(b.Window, now, zone)
}

// Expire counts as spent what calls had reserved whose isolate is dead: it has stated nothing
// for longer than any call takes, or ended reports so, which may be nil. It reports whether it has
// changed anything.
func (l *Ledger) Expire(b *store.Budget, now int64, ended func(s *Lease) bool) (changed bool) {
	for i := range l.Leases {
		s := &l.Leases[i]
		if now-s.At < heldFor && (ended == nil || !ended(s)) || s.Held == 0 && s.Granted == s.Used {
			continue
		}
		changed = true
		if b.Unit != store.Calls {
			l.Spent, s.Used = min(l.Spent+s.Held, maxAmount), min(s.Used+s.Held, maxAmount)
		}
		s.Held, s.Granted = 0, s.Used
	}
	return changed
}

// Out returns how much is lent and not spent.
func (l *Ledger) Out(now int64) (sum int64) {
	for i := range l.Leases {
		sum += l.Leases[i].out(now)
	}
	return sum
}

// Left returns how much of the limit is neither spent nor lent.
func (l *Ledger) Left(b *store.Budget, now int64) int64 { return b.Limit - l.Spent - l.Out(now) }

// Take counts what an isolate has used and lends it what it needs, with a slice for
// the calls that follow. ok is false for an Ask that is not valid, which changes
// nothing.
func (l *Ledger) Take(b *store.Budget, holder string, a *Ask, now int64, zone Zone) (g Grant, ok bool) {
	if !a.valid() {
		return g, false
	}
	l.Roll(b, now, zone)
	l.Expire(b, now, nil)
	if a.Start != l.Start { // of another window
		a = &Ask{Budget: a.Budget, Need: a.Need, Own: a.Own}
	}
	s := l.lease(holder, a, now)
	lent := s.out(now)
	if back := a.Back - s.Back; back > 0 {
		lent, s.Back = max(lent-back, 0), a.Back
	}
	if a.Used < s.Used { // a later Ask has overtaken it: some of Held is used by now
		a.Held = min(a.Held, lent)
	}
	if used := a.Used - s.Used; used > 0 {
		l.Spent, s.Used = min(l.Spent+used, maxAmount), a.Used
		lent -= used
	}
	if n := a.Unpriced - s.Unpriced; n > 0 {
		l.Unpriced, s.Unpriced = l.Unpriced+n, a.Unpriced
	}
	// The isolate keeps what its calls have reserved, and the rest while that is fresh.
	rest := max(lent-a.Held, 0)
	s.Held, s.At, s.Granted = a.Held, now, s.Used+a.Held+rest

	left := max(l.Left(b, now), 0)
	slice := l.slice(b, s, left, now)
	want := max(a.Need, a.Own) - rest
	g = Grant{Budget: b.ID, Start: l.Start, End: l.End, Used: s.Used, Back: s.Back, Unpriced: s.Unpriced, For: restSpan}
	switch {
	case a.Own > rest+left:
		l.refuse(b, a.Own, now, &g)
	case want > 0 || rest < slice/2:
		s.Granted += min(max(want, 0)+slice, left)
		fallthrough
	default:
		s.Held = min(s.Held+max(a.Need, a.Own), s.Granted-s.Used) // these calls begin with the answer
	}
	if l.End > 0 {
		g.For = max(min(g.For, l.End-now), 0)
	}
	l.Seq++
	g.Seq, g.Granted, g.Held, g.Left = l.Seq, s.Granted, s.Held, max(l.Left(b, now), 0)
	return g, true
}

// refuse fills in why a call does not fit, and until when.
func (l *Ledger) refuse(b *store.Budget, own, now int64, g *Grant) {
	g.Refused, g.Unspent = true, max(b.Limit-l.Spent, 0)
	// A large call says little of what is left: smaller ones are still served.
	l.Refused = l.Refused || own <= b.Limit && g.Unspent < b.Limit/refusedPart
	if g.Lent = own <= g.Unspent; g.Lent {
		held := int64(0)
		for i := range l.Leases {
			held += min(l.Leases[i].Held, l.Leases[i].out(now))
		}
		if g.Busy = held > g.Unspent-own; g.Busy {
			g.Wait = busyWait
			return
		}
		g.Wait = restFor
		for i := range l.Leases {
			if s := &l.Leases[i]; s.out(now) > s.Held {
				g.Wait = min(g.Wait, max(s.At+restFor-now, busyWait))
			}
		}
		return
	}
	if l.End > 0 {
		g.Wait = max(l.End-now, second)
	}
}

// lease returns the lease of an isolate. If it is not known any more, what it has
// confirmed is part of Spent.
func (l *Ledger) lease(holder string, a *Ask, now int64) *Lease {
	for i := range l.Leases {
		s := &l.Leases[i]
		if s.At > now { // the clock went back
			s.At = now
		}
	}
	if i := slices.IndexFunc(l.Leases, func(s Lease) bool { return s.Holder == holder }); i >= 0 {
		return &l.Leases[i]
	}
	if len(l.Leases) >= maxLeases {
		oldest := 0
		for i := range l.Leases {
			if l.Leases[i].At < l.Leases[oldest].At {
				oldest = i
			}
		}
		l.Leases = slices.Delete(l.Leases, oldest, oldest+1)
	}
	l.Leases = append(l.Leases, Lease{Holder: holder, Granted: a.From, Used: a.From, Back: a.Back,
		Unpriced: a.UnpricedFrom, At: now})
	return &l.Leases[len(l.Leases)-1]
}

// Reached returns the highest of the percentages 50, 80 and 100 that the budget has
// reached and not reported yet, and notes it; 0 for none. A call that was refused
// for good has reached the last one.
func (l *Ledger) Reached(b *store.Budget) int {
	for _, percent := range [...]int{100, 80, 50} {
		if percent <= l.Alerted {
			return 0
		}
		if l.Spent >= int64(math.Ceil(float64(b.Limit)/100*float64(percent))) || percent == 100 && l.Refused {
			l.Alerted = percent
			return percent
		}
	}
	return 0
}
