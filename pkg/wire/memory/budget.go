// Package memory bounds the memory that the calls of an instance of the program
// take together: bodies while they are read and sent, answers, what a translation
// needs, and the lines of event streams.
//
// A call is admitted before its body is read: it waits until there is all that the body
// and its translation take, and has nothing meanwhile. Later requests succeed at once, or
// the call fails alone. Two may wait, in an order in which no call waits for itself: an
// answer of known length for memory, and one of unknown length, or a long line, for the
// one that grows at the moment.
package memory

import (
	"context"
	"slices"
	"sync"
	"time"

	"weir/pkg/wire/upstream"
)

// Amount is memory in bytes: the program's own, and that of its host. On the edge
// the program's never shrinks, but is used again.
type Amount struct{ Program, Host int64 }

func (a Amount) plus(b Amount) Amount {
	return Amount{a.Program + b.Program, a.Host + b.Host}
}

func (a Amount) minus(b Amount) Amount {
	return Amount{a.Program - b.Program, a.Host - b.Host}
}

func (a Amount) sum() int64 { return a.Program + a.Host }

// within reports whether no part of a is over that of b.
func (a Amount) within(b Amount) bool { return a.Program <= b.Program && a.Host <= b.Host }

// Both returns n bytes in the program and n in its host, as of a body that one
// passes to the other.
func Both(n int64) Amount { return Amount{n, n} }

// Budget bounds the memory of an instance of the program.
//
// Large calls are admitted in the order in which they came, small ones beside them, and
// one tenant has at most five eighths, or one call of any size and little besides. A
// call may not wait for another one, which the platform forbids; each tries again after
// a pause.
type Budget struct {
	Max   int64           // bytes; zero means DefaultMax
	Pause upstream.Pauser // nil: what would wait fails at once
	// Elsewhere returns how many bytes the program's own memory has grown by since
	// its start, and how many other instances have in the same limit. nil means
	// neither is known. It must not call the Budget.
	Elsewhere func() (grown, others int64)

	// Collect is called before the program's memory grows from used by n bytes, so that
	// garbage makes way for them, and when n bytes have become garbage. It must not call
	// the Budget. It may be nil.
	Collect func(used, n int64)

	mu      sync.Mutex // of these fields and of the leases
	used    Amount
	kept    int64            // bytes that are kept, see Lease
	small   int64            // bytes of small bodies, see taken
	open    int64            // bytes of answers and lines of unknown length
	longest *Lease           // that may have more of those than all others
	of      map[string]int64 // bytes by tenant
	queue   []*Lease         // large calls that wait to be admitted
	reading map[string]int   // calls whose bodies are read and translated, by tenant
	waiting map[string]int   // calls that wait, by tenant
	waits   int              // all of them
}

// DefaultMax is the limit of a Budget without one.
const DefaultMax = 80 << 20

// How much of the limit, in sixteenths, the calls of one tenant may have, and how much may
// be in use after a large call is admitted, and after a small one. The rest is for answers.
const (
	forTenant = 10
	forLarge  = 12
	forSmall  = 13
	forAnswer = 16
)

// Part is what the memory of a call is for.
type Part uint8

// The parts of a lease.
const (
	Body   Part = iota // the client's body
	Form               // a form that the host holds
	Work               // what a translation or a conversion needs
	Answer             // the upstream's answer, and the client's
	Reply              // what the translation of the answer needs
	Line               // the line of an event stream
	parts
)

// Lease is the memory of one call. The zero value is unlimited.
type Lease struct {
	// Translates reports that the answer will be translated, which takes more.
	Translates bool

	budget *Budget
	who    string
	have   Amount
	part   [parts]Amount
	kept   int64 // of the program's memory, for what it will have: beside have
	need   int64 // bytes that it waits for in the queue
	small  int64
	open   int64 // bytes of have whose length is not known yet
	reads  bool  // its body is read and translated
	waits  bool  // its host asks again
	tries  int   // in vain, while others may wait for what it has
}

// The pace and the bounds of waiting calls. Those with an answer or a line have up to
// Uncounted bytes each.
const (
	look       = 100 * time.Millisecond // between two attempts, which the host of a body keeps too
	wait       = time.Minute            // until a call is refused
	maxWaiting = 128                    // calls, three quarters of them of one tenant
	patience   = 100                    // attempts of a call that others may wait for
	// maxReading is how many bodies of one tenant are read and translated at the same time:
	// the calls of others wait for the CPU behind all of them.
	maxReading = 32
)

// smallBody is the length up to which a body does not queue behind larger ones.
const smallBody = 256 << 10

// Uncounted is the length up to which a body or an answer is not counted, in bytes.
const Uncounted = 64 << 10

// Start begins the lease of a call of who, a machine. small is the length of a body of at
// most Uncounted bytes that has arrived already: it does not wait, but is counted. Start
// reports whether the share of who has room for it. A nil Budget grants everything.
func (b *Budget) Start(l *Lease, who string, small int64) bool {
	l.budget, l.who = b, who
	if b == nil || small == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[who]+b.taken(small).sum() > b.share() {
		return false
	}
	l.small = small
	b.small += small
	b.count(who, b.taken(small).sum())
	if b.Collect != nil && b.small >= b.limit()/32 {
		b.Collect(b.needs().Program, b.taken(small).Program)
	}
	return true
}

// taken returns the memory that small bodies of n bytes take: they are in the program and
// in its host. The program's own memory, if it never shrinks, has as much garbage of them.
func (b *Budget) taken(n int64) Amount {
	if b.Elsewhere != nil {
		return Amount{2 * n, n}
	}
	return Both(n)
}

// count adds n bytes to those of a tenant.
func (b *Budget) count(who string, n int64) {
	if b.of == nil {
		b.of = map[string]int64{}
	}
	if b.of[who] += n; b.of[who] <= 0 {
		delete(b.of, who)
	}
}

// verdict is the answer to a call that asks for memory.
type verdict uint8

const (
	granted verdict = iota
	later           // others have it at the moment
	never           // waiting is in vain
)

// Acquire sets a part of the call to a in all: less releases the rest. A call that has
// nothing yet is admitted, and waits for that.
//
// The error is a 503 for a call that gets no memory, a 413 or 502 for more than there
// could ever be, and upstream.ErrCanceled if the client disconnected.
func (l *Lease) Acquire(ctx context.Context, p Part, a Amount) error {
	return l.enter(ctx, p, a, 0)
}

// enter is Acquire, with kept bytes of the program kept for later.
func (l *Lease) enter(ctx context.Context, p Part, a Amount, kept int64) error {
	b := l.budget
	if b == nil {
		return nil
	}
	b.mu.Lock()
	admitted := l.have != (Amount{})
	b.mu.Unlock()
	return b.acquire(ctx, l, p, a, kept, func() verdict {
		if admitted {
			return b.grow(l, p, a, false)
		}
		return b.admit(l, p, a, kept)
	}, !admitted)
}

// TryAcquire is Acquire without waiting. It reports whether the call has the memory.
func (l *Lease) TryAcquire(p Part, a Amount) bool {
	b := l.budget
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.have != (Amount{}) {
		return b.grow(l, p, a, false) == granted
	}
	v := b.admit(l, p, a, 0)
	b.leave(l)
	return v == granted
}

// TryGrow is TryAcquire for a part whose length is not known before it is complete. It
// also reports whether the call never will have the memory; else it may ask again.
func (l *Lease) TryGrow(p Part, a Amount) (ok, refused bool) {
	b := l.budget
	if b == nil {
		return true, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.waitsOutside(l, b.grow(l, p, a, true))
	return v == granted, v == never
}

// waitsOutside notes that the host of a call waits if v is later, and returns never if it
// may not.
func (b *Budget) waitsOutside(l *Lease, v verdict) verdict {
	switch {
	case v == later && !l.waits && !b.startWaiting(l):
		return never
	case v == later:
		l.waits = true
	case l.waits:
		l.waits = false
		b.stopWaiting(l)
	}
	return v
}

// acquire asks for memory until it is granted, with pauses if the call may wait.
func (b *Budget) acquire(ctx context.Context, l *Lease, p Part, a Amount, kept int64, ask func() verdict,
	waits bool) error {
	for waited := time.Duration(0); ; waited += look {
		b.mu.Lock()
		v := ask()
		if v == later && waited == 0 && (!waits || b.Pause == nil || !b.startWaiting(l)) {
			b.leave(l)
			v = never
		} else if v != later && waited > 0 || waited >= wait {
			b.stopWaiting(l)
		}
		total := l.with(p, a).plus(Amount{Program: kept})
		b.mu.Unlock()
		switch {
		case v == granted:
			return nil
		case v == never && total.sum() > b.limit():
			return tooLarge(p, total, b.limit())
		case v == never || waited >= wait:
			return Full()
		}
		if b.Pause.Pause(ctx, look) != nil {
			b.mu.Lock()
			b.stopWaiting(l)
			b.mu.Unlock()
			return upstream.ErrCanceled
		}
	}
}

// startWaiting notes that a call waits, and reports whether it may.
func (b *Budget) startWaiting(l *Lease) bool {
	if b.waits >= maxWaiting || b.waiting[l.who] >= maxWaiting/4*3 {
		return false
	}
	if b.waiting == nil {
		b.waiting = map[string]int{}
	}
	b.waits++
	b.waiting[l.who]++
	return true
}

func (b *Budget) stopWaiting(l *Lease) {
	b.leave(l)
	b.waits--
	if b.waiting[l.who]--; b.waiting[l.who] == 0 {
		delete(b.waiting, l.who)
	}
}

// leave takes a call from the queue.
func (b *Budget) leave(l *Lease) {
	if i := slices.Index(b.queue, l); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	}
}

// admit asks for a part of a call that has nothing, and has kept bytes kept for it. A
// large call queues.
func (b *Budget) admit(l *Lease, p Part, a Amount, kept int64) verdict {
	total := l.with(p, a).plus(Amount{Program: kept})
	most := int64(forSmall)
	if large := total.sum() > Both(smallBody+1).sum()+Translated(smallBody+1); large {
		most = forLarge
		if l.need = total.sum(); !slices.Contains(b.queue, l) {
			b.queue = append(b.queue, l)
		}
		if !b.isNext(l) {
			return later
		}
	}
	v := b.fits(l, total, most)
	if v == never && kept > 0 { // what the translation takes may be less
		kept = min(kept, a.Host)
		total = l.with(p, a).plus(Amount{Program: kept})
		v = b.fits(l, total, most)
	}
	if v == granted && !b.mayHave(l.who, total.sum()) {
		v = later
	}
	if v == granted && p == Body {
		b.read(l, true)
	}
	if v != later {
		b.leave(l)
	}
	return b.granted(l, p, a, kept, v)
}

// read notes that the body of a call is read, or has been sent.
func (b *Budget) read(l *Lease, reads bool) {
	switch {
	case l.reads == reads:
		return
	case b.reading == nil:
		b.reading = map[string]int{}
	}
	l.reads = reads
	if reads {
		b.reading[l.who]++
	} else if b.reading[l.who]--; b.reading[l.who] == 0 {
		delete(b.reading, l.who)
	}
}

// isNext reports whether a call of the queue is the first that its tenant's share permits:
// the others in front of it wait for calls of their own tenants.
func (b *Budget) isNext(l *Lease) bool {
	for _, x := range b.queue {
		if x == l {
			return true
		}
		if x.who == l.who || b.mayHave(x.who, x.need) {
			return false
		}
	}
	return true
}

// grow asks for more than a call has. open reports that its length is not known.
func (b *Budget) grow(l *Lease, p Part, a Amount, open bool) verdict {
	total := l.with(p, a)
	if total.within(l.have) {
		b.set(l, p, a)
		return granted
	}
	if !open {
		kept := max(0, l.kept-max(0, total.Program-l.have.Program))
		return b.granted(l, p, a, kept, b.fits(l, total.plus(Amount{Program: kept}), forAnswer))
	}
	more := total.minus(l.have).sum()
	if b.longest != l && b.open+more > b.limit()/8 {
		if b.longest != nil {
			return later // it waits for nothing
		}
		b.longest = l
	}
	v := b.fits(l, total, forAnswer)
	if b.longest == l {
		v = l.patient(v)
	}
	if b.granted(l, p, a, l.kept, v) == granted {
		l.open += more
		b.open += more
	}
	return v
}

// patient returns v, or never for a call that others may wait for, and that has waited
// long enough.
func (l *Lease) patient(v verdict) verdict {
	if v != later {
		l.tries = 0
	} else if l.tries++; l.tries > patience {
		return never
	}
	return v
}

// granted sets a part, and what is kept, if v is granted, and returns v.
func (b *Budget) granted(l *Lease, p Part, a Amount, kept int64, v verdict) verdict {
	if v == granted {
		l.tries = 0
		b.keep(l, kept)
		b.set(l, p, a)
	}
	return v
}

// fits returns whether the instance can have total for a lease, and up to most sixteenths
// of the limit in all. A call that has little beside it has a reserve of an eighth: a
// program that has grown too far must still serve one call after the other.
func (b *Budget) fits(l *Lease, total Amount, most int64) verdict {
	if total.sum() > b.limit() {
		return never
	}
	grown, others := b.elsewhere()
	limit := b.limit() / 16 * most
	beside := b.used.minus(l.have).plus(Amount{Program: b.kept - l.kept})
	if beside.sum() <= b.limit()/8 {
		limit = b.limit() + b.limit()/8
	}
	if b.size(beside.plus(total), grown, others) <= limit {
		return granted
	}
	switch own, all := max(grown, b.program(total))+total.Host, b.limit()+b.limit()/8; {
	case own > all:
		return never // that shrinks with the instance alone
	case own+others > all:
		return l.patient(later) // another instance may end soon
	}
	return later
}

// size returns the memory of the isolate if the calls have used. The program's memory
// counts with the size that it has grown to, even if less of it is in use.
func (b *Budget) size(used Amount, grown, others int64) int64 {
	used = used.plus(b.taken(b.small))
	return max(grown, b.program(used)) + used.Host + others
}

// program returns the size to which the program grows if the calls have used. Beside a
// large body it has gaps that no other fits into.
func (b *Budget) program(used Amount) int64 {
	if b.Elsewhere == nil {
		return used.Program
	}
	return used.Program + used.Program/4
}

func (b *Budget) elsewhere() (grown, others int64) {
	if b.Elsewhere == nil {
		return 0, 0
	}
	return b.Elsewhere()
}

// mayHave reports whether a tenant may have a call with n bytes more: within its share, or
// a call of any size and a little besides.
func (b *Budget) mayHave(who string, n int64) bool {
	return b.reading[who] < maxReading && (b.of[who]+n <= b.share() || b.of[who] <= b.limit()/16)
}

// set changes a part of the lease to a.
func (b *Budget) set(l *Lease, p Part, a Amount) {
	total := l.with(p, a)
	l.part[p] = a
	more := total.minus(l.have)
	if more == (Amount{}) {
		return
	}
	if more.Program != 0 && b.Collect != nil {
		b.Collect(b.needs().Program, max(more.Program, -more.Program))
	}
	b.used = b.used.plus(more)
	b.count(l.who, more.sum())
	l.have = total
}

// with returns the memory of the lease if the part p had a.
func (l *Lease) with(p Part, a Amount) Amount { return l.have.minus(l.part[p]).plus(a) }

// Drop releases the memory of a part.
func (l *Lease) Drop(p Part) {
	if b := l.budget; b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.set(l, p, Amount{})
		if p == Line || p == Answer {
			b.settle(l)
		}
	}
}

// Settle releases what is kept: the translation of the body is done, or none follows.
func (l *Lease) Settle() {
	if b := l.budget; b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.keep(l, 0)
	}
}

// keep sets what is kept. It becomes memory of the program right before that has it, so
// that garbage is collected then.
func (b *Budget) keep(l *Lease, n int64) {
	b.kept += n - l.kept
	b.count(l.who, n-l.kept)
	l.kept = n
}

// settle notes that nothing of a lease grows any more.
func (b *Budget) settle(l *Lease) {
	b.open -= l.open
	l.open = 0
	if b.longest == l {
		b.longest = nil
	}
}

// Release releases everything. It may be called more than once.
func (l *Lease) Release() {
	if b := l.budget; b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.release(l)
	}
}

func (b *Budget) release(l *Lease) {
	if l.small != 0 {
		b.small -= l.small
		b.count(l.who, -b.taken(l.small).sum())
		l.small = 0
	}
	for p := range parts {
		b.set(l, p, Amount{})
	}
	b.read(l, false)
	b.keep(l, 0)
	b.settle(l)
	b.waitsOutside(l, never)
}

// Translated returns the memory that the translation of n bytes of JSON takes beside
// them: each text without its escapes, and the translated text, in a buffer with a
// quarter to spare.
func Translated(n int64) int64 { return n * 9 / 4 }

// Spare reports whether n bytes that a call could do without may be acquired: the
// rest is for those that cannot.
func (l *Lease) Spare(n int64) bool {
	b := l.budget
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.needs().sum()+n <= b.share()
}

// Sent implements stream.Memory: the host has sent the request, and has freed its
// copy of the body. Nothing refers to what the translation needed.
func (l *Lease) Sent() {
	b := l.budget
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.have == (Amount{}) {
		return
	}
	b.read(l, false)
	b.keep(l, 0)
	b.set(l, Work, Amount{})
	b.set(l, Body, Amount{Program: l.part[Body].Program})
}

// Passed states that nothing is needed any more but the answer, n bytes that are with
// the host on their way to the client.
func (l *Lease) Passed(n int64) {
	b := l.budget
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	answer := Amount{Host: min(n, l.part[Answer].Host)}
	b.release(l)
	b.set(l, Answer, answer)
}

// share is the limit of one tenant.
func (b *Budget) share() int64 { return b.limit() / 16 * forTenant }

func (b *Budget) limit() int64 {
	if b == nil || b.Max <= 0 {
		return DefaultMax
	}
	return b.Max
}

// Used returns how many bytes the calls have at the moment.
func (b *Budget) Used() int64 { return b.Needs().sum() }

// Needs returns the memory that the calls of the instance need: that of the host, and
// what is in use of the program's own.
func (b *Budget) Needs() Amount {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.needs()
}

func (b *Budget) needs() Amount { return b.used.plus(b.taken(b.small)) }

// Waiting returns how many calls wait for memory.
func (b *Budget) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waits
}
