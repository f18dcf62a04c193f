// Package memory bounds the memory that the calls of an instance of the program
// take together: bodies while they are read and sent, answers, what a translation
// needs, and the lines of event streams.
package memory

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
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

func (a Amount) most(b Amount) Amount {
	return Amount{max(a.Program, b.Program), max(a.Host, b.Host)}
}

func (a Amount) sum() int64 { return a.Program + a.Host }

// within reports whether no part of a is over that of b.
func (a Amount) within(b Amount) bool { return a.Program <= b.Program && a.Host <= b.Host }

// Both returns n bytes in the program and n in its host, as of a body that one
// passes to the other.
func Both(n int64) Amount { return Amount{n, n} }

// Budget bounds the memory of an instance of the program. Memory is acquired as
// bytes arrive, so a declared length alone blocks no one. One tenant has at most
// three quarters of it, or one call of any size and little besides.
//
// A call without memory waits with its bytes unread, which slows the sender down.
// It may not wait for another call, which the platform forbids; each retries after
// a pause.
//
// Calls that grow at the same time must not deadlock. So memory is granted only
// while every lease could still get all that it may need, one after the other (the
// banker's algorithm). Of an answer of unknown length that is not known: such answers
// share a part of the memory, and beyond it one at a time grows. If all calls with
// memory wait nevertheless, those that began last are refused.
type Budget struct {
	Max   int64           // bytes; zero means DefaultMax
	Pause upstream.Pauser // nil: Acquire fails at once
	// Elsewhere returns how many bytes the program's own memory has grown by since
	// its start, and how many other instances have in the same limit. nil means
	// neither is known. It must not call the Budget.
	Elsewhere func() (grown, others int64)

	// Collect is called before the program's memory grows from used by n bytes, so that
	// garbage makes way for them, and when n bytes have become garbage. It must not call
	// the Budget. It may be nil.
	Collect func(used, n int64)

	mu     sync.Mutex // of these fields and of the leases
	used   Amount
	small  int64            // bytes of small bodies, see taken
	of     map[string]int64 // bytes by tenant
	leases []*Lease         // those with memory
	queue  []*waiter
	turn   *Lease // the call that may grow although others might not complete
	// vain counts the attempts in vain of all calls since one was granted memory.
	vain    int
	waiting map[waiters]int // calls that wait, of a tenant and, with who empty, of all
}

// DefaultMax is the limit of a Budget without one.
const DefaultMax = 72 << 20

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
	budget *Budget
	who    string
	most   Amount // upper bound of have
	have   Amount
	part   [parts]Amount
	small  int64
	open   bool // its answer, or its line, has no known length
	tries  int  // attempts in vain since it waits
	waits  bool // as answer of waiters
	line   bool // it waits for a line
	begun  bool // its upstream has begun to answer
}

// waiters are the calls of a tenant that wait and read an answer, or do not yet.
type waiters struct {
	who    string
	answer bool
}

// waiter is a lease that waits until a part of it may have amount in all.
type waiter struct {
	lease  *Lease
	part   Part
	amount Amount
}

// total returns the memory that the lease waits for. Its other parts may change
// meanwhile.
func (w *waiter) total() Amount { return w.lease.with(w.part, w.amount) }

// The pace of waiting calls.
const (
	look = 100 * time.Millisecond // between two attempts, which the host of a body keeps too
	// The attempts in vain after which a call whose upstream answers may have the turn,
	// any call with memory may have it if all wait, and one may have it instead of one
	// that does not wait; those of each call, since any was granted memory, after which
	// one makes way, and how many of them it takes back.
	turnAfter, anyTurnAfter, nextTurnAfter, giveWayAfter, giveWayEvery = 3, 20, 50, 10, 2
	// How many calls wait at most; three quarters of them may be of one tenant. One that
	// reads an answer has up to Uncounted bytes of it already. Their clients may have
	// left, which the platform does not always report before the answer.
	maxWaiting, maxWaitingAnswers = 256, 64
	// wait is how long a call waits before it is refused.
	wait = time.Minute
)

// smallBody is the length up to which a body does not queue behind larger ones.
const smallBody = 256 << 10

// Uncounted is the length up to which a body or an answer is acquired without a
// check, in bytes.
const Uncounted = 64 << 10

// lock acquires the lock of a Budget that may be nil.
func (b *Budget) lock() {
	if b != nil {
		b.mu.Lock()
	}
}

func (b *Budget) unlock() {
	if b != nil {
		b.mu.Unlock()
	}
}

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

// Expect sets the memory that a call may need in all: it is not started before it
// could get that.
func (l *Lease) Expect(a Amount) {
	l.budget.lock()
	defer l.budget.unlock()
	l.expect(a)
}

func (l *Lease) expect(a Amount) { l.most = l.have.most(a) }

// Acquire waits until a part of the call may have a in all. If it has more, the
// rest is released.
//
// The error is a 503 after waiting in vain, a 413 for more than there could ever
// be, and upstream.ErrCanceled if the client disconnected.
func (l *Lease) Acquire(ctx context.Context, p Part, a Amount) error {
	b := l.budget
	if b == nil {
		return nil
	}
	mine, err := b.begin(l, p, a)
	if mine == nil {
		return err
	}
	return b.wait(ctx, mine)
}

// begin is Acquire without the wait: it returns the waiter of a call that must wait.
func (b *Budget) begin(l *Lease, p Part, a Amount) (*waiter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	total := l.with(p, a)
	if !total.within(l.have) {
		l.most = l.most.most(total)
		if !b.enter(l, total, len(b.queue)) {
			return b.queued(l, p, a)
		}
	}
	l.part[p] = a
	b.set(l, total)
	return nil, nil
}

// TryAcquire is Acquire without waiting. It reports whether the call has the memory.
func (l *Lease) TryAcquire(p Part, a Amount) bool {
	l.budget.lock()
	defer l.budget.unlock()
	return l.tryAcquire(p, a)
}

func (l *Lease) tryAcquire(p Part, a Amount) bool {
	b := l.budget
	if b == nil {
		return true
	}
	total := l.with(p, a)
	if !total.within(l.have) && !b.enter(l, total, 0) {
		b.failed(l, p)
		return false
	}
	l.part[p] = a
	b.set(l, total)
	return true
}

// TryGrow is TryAcquire for a part whose length is not known before it is complete. It
// also reports whether the call never will have the memory.
func (l *Lease) TryGrow(p Part, a Amount) (ok, refused bool) {
	l.budget.lock()
	defer l.budget.unlock()
	l.open, l.begun = true, true
	if l.tryAcquire(p, a) {
		return true, false
	}
	return false, l.refused(p, a)
}

// refused reports whether a call that waits for a part to have a in all shall give up.
func (l *Lease) refused(p Part, a Amount) bool {
	total := l.with(p, a)
	return l.tries == 0 || total.sum() > l.budget.limit() || l.budget.never(total) || l.budget.refuses(l)
}

// with returns the memory of the lease if the part p had a.
func (l *Lease) with(p Part, a Amount) Amount { return l.have.minus(l.part[p]).plus(a) }

// Has reports whether the lease has memory that Release returns.
func (l *Lease) Has() bool {
	l.budget.lock()
	defer l.budget.unlock()
	return l.have != Amount{} || l.small != 0
}

// Settle states that a call needs no more than it has.
func (l *Lease) Settle() {
	l.budget.lock()
	defer l.budget.unlock()
	l.settle()
}

func (l *Lease) settle() {
	l.most, l.open = l.have, false
	if l.budget != nil && l.budget.turn == l {
		l.budget.turn = nil
	}
}

// Drop releases the memory of a part, and of what the lease was expected to need.
func (l *Lease) Drop(p Part) {
	l.budget.lock()
	defer l.budget.unlock()
	l.drop(p)
}

func (l *Lease) drop(p Part) {
	if l.budget != nil && l.part[p] != (Amount{}) {
		total := l.with(p, Amount{})
		l.part[p] = Amount{}
		l.budget.set(l, total)
	}
	l.settle()
}

// shrink releases what a part has beyond a. The caller has the lock.
func (l *Lease) shrink(p Part, a Amount) {
	if less := l.part[p].most(a); l.budget != nil && less != a {
		total := l.with(p, a)
		l.part[p] = a
		l.budget.set(l, total)
	}
}

// dropSmall ends the count of the small body. The caller has the lock.
func (l *Lease) dropSmall() {
	if l.small != 0 {
		l.budget.small -= l.small
		l.budget.count(l.who, -l.budget.taken(l.small).sum())
		l.small = 0
	}
}

// Release releases everything. It may be called more than once.
func (l *Lease) Release() {
	if l.budget == nil {
		return
	}
	l.budget.lock()
	defer l.budget.unlock()
	l.stopWaiting()
	l.dropSmall()
	l.part = [parts]Amount{}
	l.budget.set(l, Amount{})
	l.settle()
}

// Translated returns the memory that the translation of n bytes of JSON takes beside
// them: each text without its escapes, and the translated text, in a buffer with a
// quarter to spare.
func Translated(n int64) int64 { return n * 9 / 4 }

// Spare reports whether n bytes that a call could do without may be acquired: the
// last quarter is for those that cannot.
func (l *Lease) Spare(n int64) bool {
	b := l.budget
	b.lock()
	defer b.unlock()
	return b != nil && b.needs().sum()+n <= b.share() && b.safe(l, l.have.plus(Amount{Host: n}))
}

// grow returns the function that acquires memory for a body as it arrives. The host
// gathers it; whole reports whether the program has it, or gets it with that many bytes.
func (l *Lease) grow(ctx context.Context, p Part, whole func(n int64, last bool) bool) func(total int64, last bool) error {
	return func(total int64, last bool) error {
		switch {
		case total <= Uncounted:
			return l.Acquire(ctx, p, Amount{})
		case whole(total, last):
			return l.Acquire(ctx, p, Both(total))
		}
		return l.Acquire(ctx, p, Amount{Host: total})
	}
}

// Read returns body so that reading it acquires memory for the part Body. length is
// the declared one, -1 if unknown. translates reports that it may be translated: the
// memory for that is not acquired yet, but is expected.
func (l *Lease) Read(ctx context.Context, body io.ReadCloser, length int64, translates bool) io.ReadCloser {
	if l.budget == nil {
		return body
	}
	most := Both(max(length, 0) + 1) // the end is noticed by asking for more
	if translates {
		most.Program = max(most.Program, min(most.Program/4*5, l.budget.share()-most.Host)) // its long texts are not copied
	}
	l.Expect(most)
	// A body of unknown length, as a decoded one, may be complete at any time.
	whole := func(n int64, last bool) bool { return last || n >= length }
	return &stream.Metered{ReadCloser: body, Length: length, Grow: l.grow(ctx, Body, whole)}
}

// ReadWhole reads a body of at most max bytes, whose length is not known, into memory of
// the part Form.
func (l *Lease) ReadWhole(ctx context.Context, body io.ReadCloser, max int64) ([]byte, error) {
	m := stream.Metered{ReadCloser: body, Length: -1, Grow: l.grow(ctx, Form, func(int64, bool) bool { return true })}
	all, err := m.ReadAll(max)
	if err != nil {
		l.Drop(Form)
	}
	return all, err
}

// Hold reads a body of at most max bytes and keeps it outside of the program.
// release must be called when it is no longer needed.
//
// The error is that of Acquire, stream.ErrTooLarge for a body over max, or one for
// a client that sent the body too slowly or not completely.
func (l *Lease) Hold(ctx context.Context, body io.ReadCloser, length, max int64) (held stream.Held, release func(), err error) {
	if length > max {
		return nil, nil, stream.ErrTooLarge
	}
	if length > 0 && l.budget != nil {
		l.budget.lock()
		l.expect(l.have.plus(Amount{Host: min(length, l.budget.limit())}))
		l.budget.unlock()
	}
	held, err = stream.Hold(&stream.Metered{ReadCloser: body, Length: length, Grow: l.grow(ctx, Form, func(int64, bool) bool { return false })}, max)
	if err != nil {
		l.Drop(Form)
		return nil, nil, BodyError(err)
	}
	return held, func() {
		held.Release()
		l.Drop(Form)
	}, nil
}

// GrowAnswer implements stream.Memory: an answer is gathered by the host, and passed
// to the program whole.
func (l *Lease) GrowAnswer(ctx context.Context, had, next stream.Gathered) error {
	if l.budget == nil {
		return nil
	}
	l.budget.lock()
	a := l.expectAnswer(had, next)
	l.budget.unlock()
	return l.Acquire(ctx, Answer, a)
}

// TryAnswer implements stream.Memory.
func (l *Lease) TryAnswer(had, next stream.Gathered) (ok, refused bool) {
	if l.budget == nil {
		return true, false
	}
	l.budget.lock()
	defer l.budget.unlock()
	a := l.expectAnswer(had, next)
	if l.tryAcquire(Answer, a) {
		return true, false
	}
	return false, l.refused(Answer, a)
}

// expectAnswer states what the call needs for an answer, and returns what its answers
// need now.
func (l *Lease) expectAnswer(had, next stream.Gathered) Amount {
	others := l.part[Answer].minus(gathered(had))
	a := others.plus(gathered(next))
	if next.Bytes > Uncounted+1 { // a short answer neither waits nor makes others wait
		l.open, l.begun = next.Of < 0 || had.Of < 0, true
		l.expect(l.with(Answer, others.plus(Both(max(next.Bytes, next.Of)))))
	}
	return a
}

// gathered returns the memory of an answer. One byte more than it has shows its end.
func gathered(g stream.Gathered) Amount {
	switch {
	case g.Bytes <= Uncounted+1:
		return Amount{}
	case g.All():
		return Both(g.Bytes)
	}
	return Amount{Host: g.Bytes}
}

// Sent implements stream.Memory: the host has sent the request, and has freed its
// copy of the body. Nothing refers to what the translation needed.
func (l *Lease) Sent() {
	if l.budget == nil {
		return
	}
	l.budget.lock()
	defer l.budget.unlock()
	if l.have == (Amount{}) {
		return
	}
	l.drop(Work)
	l.shrink(Body, Amount{Program: l.part[Body].Program})
}

// Passed states that nothing is needed any more but the answer, n bytes that are with
// the host on their way to the client.
func (l *Lease) Passed(n int64) {
	if l.budget == nil {
		return
	}
	l.budget.lock()
	defer l.budget.unlock()
	l.dropSmall()
	answer := Amount{Host: min(n, l.part[Answer].Host)}
	l.part = [parts]Amount{Answer: answer}
	l.budget.set(l, answer)
	l.settle()
}

// queued lets the lease wait until its part may have a in all, if it may wait.
func (b *Budget) queued(l *Lease, p Part, a Amount) (*waiter, error) {
	mine := &waiter{l, p, a}
	total := mine.total()
	if total.sum() > b.limit() {
		return nil, tooLarge(p, total, b.limit())
	}
	if b.Pause == nil || b.never(total) || !b.failed(l, p) {
		return nil, Full()
	}
	b.queue = append(b.queue, mine)
	return mine, nil
}

// wait retries until the waiter has its memory.
func (b *Budget) wait(ctx context.Context, mine *waiter) error {
	defer b.leave(mine)
	for waited := time.Duration(0); waited < wait; waited += look {
		if b.Pause.Pause(ctx, look) != nil {
			return upstream.ErrCanceled
		}
		if ok, refused := b.retry(mine); ok {
			return nil
		} else if refused {
			break
		}
	}
	return Full()
}

// retry reports whether the waiter has its memory now, or shall give up.
func (b *Budget) retry(mine *waiter) (ok, refused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := mine.lease
	if b.enter(l, mine.total(), slices.Index(b.queue, mine)) {
		l.part[mine.part] = mine.amount
		return true, false
	}
	b.failed(l, mine.part)
	return false, b.refuses(l) || b.never(mine.total())
}

// leave ends a wait.
func (b *Budget) leave(mine *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	mine.lease.stopWaiting()
	if i := slices.Index(b.queue, mine); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	}
}

// Refusal returns the error of a client whose call got no memory, for the error that it
// ended with.
func Refusal(err error) *apierr.Error {
	var e *apierr.Error
	if errors.As(err, &e) && (e.Code == "upstream_too_large" || e.Code == "request_too_large") {
		return e
	}
	return Full()
}

// Full returns the error for a call that waited for memory in vain.
func Full() *apierr.Error {
	e := apierr.New(503, "overloaded", "The gateway has no memory for this call at the moment. Try again in a moment.")
	e.RetryAfter, e.Err = time.Second, stream.ErrMemory
	return e
}

// tooLarge returns the error for a call that needs more than there is.
func tooLarge(p Part, total Amount, limit int64) error {
	const mib = 1 << 20
	need := (total.sum() + mib - 1) / mib
	e := apierr.New(413, "request_too_large", "The request needs %d MiB of memory; the gateway has %d MiB.", need, limit/mib)
	if p == Answer || p == Reply {
		e = apierr.New(502, "upstream_too_large", "The provider's answer needs %d MiB of memory; the gateway has %d MiB.", need, limit/mib)
	}
	e.Err = stream.ErrMemory
	return e
}

// enter grants the lease total bytes if it may have them. A lease without memory
// queues behind the first before waiters without memory, except those whose
// own tenant has reached its share. One of a small body does not.
func (b *Budget) enter(l *Lease, total Amount, before int) bool {
	if l.have == (Amount{}) && l.most.most(total).sum() > Both(smallBody+1).sum()+Translated(smallBody+1) {
		if b.turn != nil && b.turn != l && b.turn.tries > 0 {
			return false
		}
		for _, w := range b.queue[:before] {
			if w.lease.have == (Amount{}) && b.of[w.lease.who]+w.total().sum() <= b.share() {
				return false
			}
		}
	}
	free := b.safe
	if l.open {
		free = b.spare
	}
	if !free(l, total) && !b.takeTurn(l, total) {
		return false
	}
	l.stopWaiting()
	b.set(l, total)
	b.vain = 0
	return true
}

// spare reports whether a lease with an answer, or a line, of unknown length may have
// total bytes: such leases have an eighth of the limit for these, so that the longest one
// that has the turn fits beside them.
func (b *Budget) spare(l *Lease, total Amount) bool {
	growing := total.minus(l.have).plus(l.growing()).sum()
	for _, x := range b.leases {
		if x.open && x != l && x != b.turn {
			growing += x.growing().sum()
		}
	}
	return growing <= b.limit()/8 && b.has(l, total) && b.safe(l, total)
}

// stuck reports whether a lease may wait for memory, which was not promised, with all that
// it has.
func (l *Lease) stuck() bool { return l.open || l.begun && l.part[Answer] == (Amount{}) }

// growing returns the memory of the parts whose length may be unknown.
func (l *Lease) growing() Amount { return l.part[Answer].plus(l.part[Line]) }

// takeTurn lets the call that has waited longest have memory although the others might
// not complete then: one with an answer of unknown length, or any with memory if all have
// waited for a while. One call at a time has the turn, until it needs no more; one that does
// not wait itself, since its upstream is slow, loses it to others.
func (b *Budget) takeTurn(l *Lease, total Amount) bool {
	if b.turn != l && !b.isNext(l, total) {
		return false
	}
	b.turn = l
	return b.fitsNow(l, total) && (b.vain >= giveWayAfter/2*b.allWaiting() || b.safe(l, total))
}

// isNext reports whether the lease is the one that gets the turn.
func (b *Budget) isNext(l *Lease, total Amount) bool {
	if l.tries < turnAfter || b.turn != nil && (b.turn.tries > 0 || l.tries < nextTurnAfter) {
		return false
	}
	if !l.begun {
		waits := func(x *Lease) bool { return x.tries > 0 }
		if l.have == (Amount{}) || l.tries < anyTurnAfter || !all(b.leases, waits) {
			return false
		}
	}
	return !slices.ContainsFunc(b.leases, func(x *Lease) bool { return x.tries > l.tries })
}

// has reports whether there are total bytes for the lease now.
func (b *Budget) has(l *Lease, total Amount) bool {
	if b.alone(l) {
		return b.hasAlone(l, total)
	}
	own := b.of[l.who] - l.have.sum() + total.sum()
	return b.fitsNow(l, total) && b.allowed(own, total.sum())
}

// fitsNow is has without regard for the share of a tenant.
func (b *Budget) fitsNow(l *Lease, total Amount) bool {
	if b.alone(l) {
		return b.hasAlone(l, total)
	}
	grown, others := b.elsewhere()
	return b.fits(b.used.minus(l.have).plus(total), grown, others)
}

// alone reports whether nothing else has much.
func (b *Budget) alone(l *Lease) bool { return b.used.minus(l.have).sum() <= b.limit()/8 }

// hasAlone is has beside little else. A program that has grown too far must still serve
// one call after the other, for which there is a reserve.
func (b *Budget) hasAlone(l *Lease, total Amount) bool {
	grown, others := b.elsewhere()
	return total.sum() <= b.limit() && b.size(b.used.minus(l.have).plus(total), grown, others) <= b.limit()+b.limit()/4
}

// never reports whether a call could not have total bytes even if all others of the
// instance ended: the memory of the program, or of another instance, has grown too far,
// and that shrinks with the instance alone.
func (b *Budget) never(total Amount) bool {
	grown, others := b.elsewhere()
	return max(grown, b.program(total))+total.Host+others > b.limit()+b.limit()/4
}

// failed counts an attempt in vain. It reports whether the call may wait.
func (b *Budget) failed(l *Lease, p Part) bool {
	if l.tries == 0 {
		l.waits, l.line = p == Answer || p == Reply, p == Line
		most := maxWaiting
		if l.waits {
			most = maxWaitingAnswers
		}
		if b.waiting[waiters{"", l.waits}] >= most || b.waiting[waiters{l.who, l.waits}] >= most/4*3 {
			return false
		}
		b.countWaiting(l, 1)
	}
	l.tries++
	b.vain++
	return true
}

// stopWaiting ends what failed has begun.
func (l *Lease) stopWaiting() {
	if l.tries > 0 {
		l.tries = 0
		l.budget.countWaiting(l, -1)
	}
}

func (b *Budget) countWaiting(l *Lease, n int) {
	if b.waiting == nil {
		b.waiting = map[waiters]int{}
	}
	for _, w := range [...]waiters{{"", l.waits}, {l.who, l.waits}} {
		if b.waiting[w] += n; b.waiting[w] == 0 {
			delete(b.waiting, w)
		}
	}
}

// refuses reports whether the lease must give way, since none that waits is granted
// anything: the last to begin, one without an answer before one with, whose upstream has
// done its work, and one with a line, whose client has a part of the answer, only after
// all others, if the one that has the turn waits too.
func (b *Budget) refuses(l *Lease) bool {
	if b.turn == nil || b.turn == l || b.vain < giveWayAfter*b.allWaiting() || l.tries == 0 || l.have == (Amount{}) {
		return false
	}
	var last *Lease
	for _, x := range b.leases {
		if x.tries > 0 && x != b.turn && (!x.line || b.turn.tries > 0) && (last == nil || x.yields() <= last.yields()) {
			last = x
		}
	}
	if last != l {
		return false
	}
	b.vain -= giveWayEvery * b.allWaiting()
	return true
}

// yields returns the place of a waiting call among those that give way, 0 for the first.
func (l *Lease) yields() int {
	switch {
	case l.line:
		return 2
	case l.waits:
		return 1
	}
	return 0
}

// allWaiting returns how many calls wait.
func (b *Budget) allWaiting() int {
	return b.waiting[waiters{"", true}] + b.waiting[waiters{"", false}]
}

func all(leases []*Lease, is func(*Lease) bool) bool {
	return !slices.ContainsFunc(leases, func(x *Lease) bool { return !is(x) })
}

// set changes the memory of the lease to total bytes.
func (b *Budget) set(l *Lease, total Amount) {
	if total == l.have {
		return
	}
	if l.have == (Amount{}) {
		b.leases = append(b.leases, l)
	}
	more := total.minus(l.have)
	if more.Program != 0 && b.Collect != nil {
		b.Collect(b.needs().Program, max(more.Program, -more.Program))
	}
	b.used = b.used.plus(more)
	b.count(l.who, more.sum())
	if l.have = total; total == (Amount{}) {
		i := slices.Index(b.leases, l)
		b.leases = slices.Delete(b.leases, i, i+1)
	}
}

// fits reports whether the isolate can have used. The program's memory counts with
// the size that it has grown to, even if less of it is in use. Beside a large body it
// has gaps that no other fits into.
func (b *Budget) fits(used Amount, grown, others int64) bool {
	return b.size(used, grown, others) <= b.limit()
}

// size returns the memory of the isolate if the calls have used.
func (b *Budget) size(used Amount, grown, others int64) int64 {
	used = used.plus(b.taken(b.small))
	return max(grown, b.program(used)) + used.Host + others
}

// program returns the size to which the program grows if the calls have used.
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

// allowed reports whether a tenant may have total bytes, one lease of it having
// own of them: its share, or a call of any size and a little besides.
func (b *Budget) allowed(total, own int64) bool {
	return total <= b.share() || total-own <= b.limit()/16
}

// safe reports whether all leases could still complete, one after the other, if
// this lease had total bytes.
func (b *Budget) safe(l *Lease, total Amount) bool {
	if b.alone(l) {
		return b.hasAlone(l, total)
	}
	grown, others := b.elsewhere()
	used, own := b.used.minus(l.have).plus(total), b.of[l.who]-l.have.sum()+total.sum()
	if !b.fits(used, grown, others) || !b.allowed(own, total.sum()) {
		return false
	}
	most := l.most.most(total)
	if !l.open && b.fits(used.minus(total).plus(most), grown, others) && b.allowed(own-total.sum()+most.sum(), most.sum()) {
		return true // it can complete, and then releases all it has
	}
	of := map[string]int64{l.who: own}
	for who, n := range b.of {
		if who != l.who {
			of[who] = n
		}
	}
	var rest []*Lease
	for _, x := range b.leases {
		if x == l && !l.open || !x.stuck() {
			rest = append(rest, x)
		}
	}
	if l.have == (Amount{}) && !l.open {
		rest = append(rest, l)
	}
	has := func(x *Lease) Amount {
		if x == l {
			return total
		}
		return x.have
	}
	need := func(x *Lease) int64 { return x.most.most(has(x)).minus(has(x)).sum() }
	slices.SortFunc(rest, func(x, y *Lease) int { return int(need(x) - need(y)) })
	for progress := true; progress && len(rest) > 0; {
		progress = false
		left := rest[:0]
		for _, x := range rest {
			most := x.most.most(has(x))
			if b.fits(used.minus(has(x)).plus(most), grown, others) && b.allowed(of[x.who]-has(x).sum()+most.sum(), most.sum()) {
				used = used.minus(has(x))
				of[x.who] -= has(x).sum()
				progress = true
			} else {
				left = append(left, x)
			}
		}
		rest = left
	}
	return len(rest) == 0
}

// share is the limit of one tenant.
func (b *Budget) share() int64 { return b.limit() / 4 * 3 }

func (b *Budget) limit() int64 {
	if b == nil || b.Max <= 0 {
		return DefaultMax
	}
	return b.Max
}

// Used returns how many bytes the calls have at the moment.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.needs().sum()
}

// Needs returns the memory that the calls of the instance need: that of the host, and
// what is in use of the program's own.
func (b *Budget) Needs() Amount {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.needs()
}

func (b *Budget) needs() Amount { return b.used.plus(b.taken(b.small)) }

// BodyError returns the error that a client gets for a body that could not be read.
func BodyError(err error) error {
	if errors.Is(err, stream.ErrIdle) || errors.Is(err, upstream.ErrTimeout) {
		e := apierr.New(408, "timeout", "The request body did not arrive in time.")
		e.Err = err
		return e
	}
	if errors.Is(err, stream.ErrReset) || errors.Is(err, upstream.ErrNetwork) || errors.Is(err, io.ErrUnexpectedEOF) {
		e := apierr.Invalid("", "The request body broke off.")
		e.Err = err
		return e
	}
	return err
}
