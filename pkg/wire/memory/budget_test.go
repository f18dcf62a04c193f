package memory_test

import (
	"context"
	"errors"
	"math/rand"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
)

const mib = 1 << 20

var ctx = context.Background()

// none is an answer without bytes.
var none stream.Gathered

func host(n int64) memory.Amount { return memory.Amount{Host: n} }

// lease returns a lease of a tenant.
func lease(b *memory.Budget, who string) *memory.Lease {
	l := &memory.Lease{}
	b.Start(l, who, 0)
	return l
}

func TestTenantLeavesMemoryToOthers(t *testing.T) {
	b := &memory.Budget{Max: 32 * mib}
	var all []*memory.Lease
	for i, step := range []struct {
		who  string
		want int64
		ok   bool
	}{
		{"a", 16 * mib, true}, {"a", 8 * mib, false}, {"a", 4 * mib, true}, {"a", mib, false},
		{"b", 4 * mib, true}, {"b", 2 * mib, false}, {"b", mib, true}, {"c", mib, true}, {"c", mib, false},
	} {
		l := lease(b, step.who)
		if got := l.TryAcquire(memory.Body, host(step.want)); got != step.ok {
			t.Errorf("step %d: %s acquires %d: %v", i, step.who, step.want, got)
		}
		all = append(all, l)
	}
	for _, l := range all {
		l.Release()
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are left", b.Used())
	}
	a := lease(b, "a") // one call may have all
	if !a.TryAcquire(memory.Body, memory.Both(16*mib)) || lease(b, "a").TryAcquire(memory.Body, host(mib)) {
		t.Error("the largest call")
	}
}

// The program's memory never shrinks: what it has grown to is used again by it, but
// not by its host, and what other instances have is not there at all.
func TestGrownMemoryIsForTheProgramOnly(t *testing.T) {
	grown, others := int64(8*mib), int64(0)
	b := &memory.Budget{Max: 32 * mib, Elsewhere: func() (int64, int64) { return grown, others }}
	z := lease(b, "z")
	z.TryAcquire(memory.Body, host(5*mib)) // a call that is alone gets memory anyway
	if l := lease(b, "a"); l.TryAcquire(memory.Body, host(12*mib)) || !l.TryAcquire(memory.Body, host(11*mib)) {
		t.Error("the host's share of a grown program")
	} else {
		l.Release()
	}
	l := lease(b, "a")
	if !l.TryAcquire(memory.Body, memory.Amount{Program: 6 * mib, Host: 11 * mib}) {
		t.Error("the program's own memory counts twice")
	}
	l.Release()
	if others = 6 * mib; l.TryAcquire(memory.Body, host(6*mib)) || !l.TryAcquire(memory.Body, host(5*mib)) {
		t.Error("beside another instance")
	}
	l.Release()
	others = 16 * mib
	if l.TryAcquire(memory.Body, host(mib)) {
		t.Error("there is no memory left")
	}
	z.Release()
	if l.TryAcquire(memory.Body, host(13*mib)) || !l.TryAcquire(memory.Body, host(12*mib)) {
		t.Error("a call that is alone has a reserve of an eighth")
	}
}

func TestPartsAreReleasedOneByOne(t *testing.T) {
	b := &memory.Budget{Max: 32 * mib}
	l := lease(b, "a")
	l.Acquire(ctx, memory.Body, memory.Both(4*mib))
	l.Acquire(ctx, memory.Work, memory.Amount{Program: 5 * mib})
	if l.Sent(); b.Used() != 4*mib {
		t.Errorf("after the request was sent: %d", b.Used())
	}
	half, all := stream.Gathered{Bytes: mib, Of: 2 * mib}, stream.Gathered{Bytes: 2 * mib, Of: 2 * mib}
	if l.GrowAnswer(ctx, none, half); b.Used() != 6*mib {
		t.Errorf("with half an answer of known length: %d", b.Used())
	}
	l.GrowAnswer(ctx, half, all)
	if b.Used() != 8*mib {
		t.Errorf("with an answer: %d", b.Used())
	}
	if l.Passed(2 * mib); b.Used() != 2*mib {
		t.Errorf("with the answer on its way: %d", b.Used())
	}
	l.Release()
	if l.Release(); b.Used() != 0 {
		t.Errorf("%d bytes are left", b.Used())
	}
	var none *memory.Budget
	if free := lease(none, "a"); free.Acquire(ctx, memory.Body, host(100*mib)) != nil {
		t.Error("no budget grants everything")
	}
}

// Small bodies do not wait, but others wait for them.
func TestSmallBodiesCount(t *testing.T) {
	b := &memory.Budget{Max: 32 * mib}
	small := make([]memory.Lease, 200)
	for i := range small {
		if !b.Start(&small[i], string(rune('x'+i%2)), memory.Uncounted) {
			t.Fatal("a small body is refused")
		}
	}
	l := lease(b, "b")
	other := lease(b, "c")
	if !other.TryAcquire(memory.Body, host(8*mib)) || l.TryAcquire(memory.Body, host(mib)) {
		t.Errorf("beside %d bytes of small bodies", b.Used())
	}
	for i := range small {
		small[i].Release()
	}
	if !l.TryAcquire(memory.Body, host(16*mib)) {
		t.Error("after them")
	}
}

// Small bodies of one tenant once took the memory of all.
func TestSmallBodiesStayWithinTheShareOfATenant(t *testing.T) {
	b := &memory.Budget{Max: 32 * mib}
	small := make([]memory.Lease, 300)
	n := 0
	for i := range small {
		if b.Start(&small[i], "a", memory.Uncounted) {
			n++
		}
	}
	if n != 160 || !lease(b, "b").TryAcquire(memory.Body, host(7*mib)) {
		t.Errorf("%d small bodies, %d bytes", n, b.Used())
	}
}

// On the edge small bodies leave as much garbage in memory that never shrinks, which is
// collected while there are many.
func TestSmallBodiesCountWithTheirGarbage(t *testing.T) {
	collected := int64(0)
	b := &memory.Budget{Max: 32 * mib, Elsewhere: func() (int64, int64) { return 0, 0 }, Collect: func(_, n int64) { collected += n }}
	small := make([]memory.Lease, 300)
	n := 0
	for i := range small {
		if b.Start(&small[i], "a", memory.Uncounted) {
			n++
		}
	}
	if n != 106 || b.Needs() != (memory.Amount{Program: 212 * memory.Uncounted, Host: 106 * memory.Uncounted}) || collected < 11*mib {
		t.Errorf("%d small bodies, %+v, %d collected", n, b.Needs(), collected)
	}
	for i := range small {
		small[i].Release()
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are left", b.Used())
	}
}

// No count of a small call allocates.
func TestSmallCallsDoNotAllocate(t *testing.T) {
	b := &memory.Budget{}
	l := &memory.Lease{}
	if n := testing.AllocsPerRun(100, func() {
		b.Start(l, "a", 1000)
		l.Sent()
		l.Passed(0)
		l.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCallThatNeverFitsIsRefusedAtOnce(t *testing.T) {
	clock := fake.NewClock(time.Time{})
	b := &memory.Budget{Max: 32 * mib, Pause: clock}
	for _, tt := range []struct {
		part memory.Part
		want int
	}{{memory.Work, 413}, {memory.Answer, 502}} {
		var e *apierr.Error
		if err := lease(b, "a").Acquire(ctx, tt.part, host(33*mib)); !errors.As(err, &e) || e.Status != tt.want || clock.Pauses() != 0 {
			t.Errorf("%v after %d pauses", err, clock.Pauses())
		}
	}
	lease(b, "b").Acquire(ctx, memory.Body, host(24*mib))
	var e *apierr.Error
	if err := lease(b, "a").Acquire(ctx, memory.Body, host(16*mib)); !errors.As(err, &e) || e.Status != 503 || e.RetryAfter == 0 || clock.Pauses() < 100 {
		t.Errorf("%v after %d pauses", err, clock.Pauses())
	}
}

// The first of a queue waits for its own calls: those behind it do not.
func TestOneTenantDoesNotBlockQueue(t *testing.T) {
	var order []string
	clock := fake.NewClock(time.Time{})
	b := &memory.Budget{Max: 32 * mib, Pause: clock}
	first := lease(b, "a")
	first.Acquire(ctx, memory.Body, host(20*mib))
	clock.Meanwhile = func() {
		switch clock.Pauses() {
		case 0: // a waits; b comes
			l := lease(b, "b")
			if err := l.Acquire(ctx, memory.Body, host(2*mib)); err != nil {
				t.Errorf("b: %v", err)
				return
			}
			order = append(order, "b")
			l.Release()
		case 1:
			first.Release()
		}
	}
	l := lease(b, "a")
	if err := l.Acquire(ctx, memory.Body, host(8*mib)); err != nil {
		t.Fatal(err)
	}
	order = append(order, "a")
	l.Release()
	if len(order) != 2 || order[0] != "b" || b.Used() != 0 {
		t.Errorf("%v, %d bytes left", order, b.Used())
	}
}

func TestShortAnswerNeitherWaitsNorCounts(t *testing.T) {
	b := &memory.Budget{Max: 32 * mib}
	lease(b, "a").TryAcquire(memory.Body, host(32*mib))
	used, l := b.Used(), lease(b, "b")
	had := none
	for _, n := range []int64{32 << 10, memory.Uncounted + 1} {
		next := stream.Gathered{Bytes: n, Of: -1}
		if ok, _ := l.TryAnswer(had, next); !ok || l.GrowAnswer(ctx, had, next) != nil {
			t.Errorf("an answer of %d bytes waits", n)
		}
		had = next
	}
	if ok, _ := l.TryAnswer(had, stream.Gathered{Bytes: memory.Uncounted + 2, Of: -1}); ok || b.Used() != used {
		t.Errorf("%d bytes, want %d", b.Used(), used)
	}
}

// A small body does not queue behind a large one for which there is no memory.
func TestSmallBodyDoesNotQueue(t *testing.T) {
	clock := fake.NewClock(time.Time{})
	b := &memory.Budget{Max: 32 * mib, Pause: clock}
	lease(b, "a").Acquire(ctx, memory.Body, host(24*mib))
	clock.Meanwhile = func() {
		clock.Meanwhile = nil
		if small := lease(b, "c"); small.Acquire(ctx, memory.Body, memory.Both(256<<10)) != nil || clock.Pauses() > 0 {
			t.Error("a small body waits")
		}
	}
	if lease(b, "b").Acquire(ctx, memory.Body, host(16*mib)) == nil {
		t.Error("the large body fits")
	}
	if clock.Pauses() == 0 {
		t.Error("the large body did not wait")
	}
}

// Whatever calls do, they never have more than the limit, and leave nothing.
func TestMixNeverExceedsLimit(t *testing.T) {
	rnd := rand.New(rand.NewSource(7))
	var grown int64
	b := &memory.Budget{Max: 84 * mib, Elsewhere: func() (int64, int64) { return grown, 0 }}
	leases := make([]*memory.Lease, 200)
	for i := range leases {
		leases[i] = lease(b, string(rune('a'+i%17)))
	}
	for range 100_000 {
		l, n := leases[rnd.Intn(len(leases))], rnd.Int63n(24*mib)
		switch rnd.Intn(5) {
		case 0:
			l.Release()
		case 1:
			l.Sent()
		case 2:
			l.TryAcquire(memory.Form, host(n))
		case 3:
			l.TryAcquire(memory.Body, memory.Both(n))
		case 4:
			l.TryAcquire(memory.Work, memory.Amount{Program: n})
		}
		used := b.Needs()
		if grown = max(grown, used.Program); grown+used.Host > 105*mib { // of the last quarter one call alone takes some
			t.Fatalf("%d bytes of the program, which has grown to %d, and %d of the host", used.Program, grown, used.Host)
		}
	}
	for _, l := range leases {
		l.Release()
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are left", b.Used())
	}
}

// A call that has waited gets what it asked for, and no more.
func TestWaitingAcquiresNoMore(t *testing.T) {
	clock := fake.NewClock(time.Time{})
	b := &memory.Budget{Pause: clock}
	first, second := lease(b, "a"), lease(b, "b")
	if err := first.Acquire(ctx, memory.Body, host(40*mib)); err != nil {
		t.Fatal(err)
	}
	clock.Meanwhile = first.Release
	if err := second.Acquire(ctx, memory.Body, host(40*mib)); err != nil || clock.Pauses() == 0 {
		t.Fatal(err, clock.Pauses())
	}
	if b.Used() != 40*mib {
		t.Errorf("%d MiB, want 40", b.Used()/mib)
	}
}

// reading is a call with a body of body bytes, whose answer of answer bytes has no
// declared length.
type reading struct {
	l       *memory.Lease
	had     stream.Gathered
	answer  int64
	waited  int
	refused bool
}

// read begins a call, or reads a step of its answer as a host does. It reports whether
// the call has ended.
func (r *reading) read() bool {
	if r.had.All() && r.had.Bytes > 0 || r.refused {
		return true
	}
	next := stream.Gathered{Bytes: min(r.had.Bytes+max(memory.Uncounted+1, r.had.Bytes/2), r.answer), Of: -1}
	if r.had.Bytes == r.answer {
		next.Of = r.answer // its end was seen
	}
	ok, refused := r.l.TryAnswer(r.had, next)
	switch {
	case ok:
		r.had = next
	case refused:
		r.refused = true
	default:
		r.waited++
		return false
	}
	if r.had.All() || r.refused {
		r.l.Release()
		return true
	}
	return false
}

// Answers of unknown length share the memory, and wait for each other only shortly.
func TestAnswersOfUnknownLengthDoNotStandStill(t *testing.T) {
	for _, c := range []struct {
		name         string
		body, answer int64
		calls        int
		refused      int // at most
		tenants      int
	}{
		{"two with bodies", 6, 4, 2, 0, 2},
		{"three with bodies", 6, 6, 3, 0, 3},
		{"8 of 23 MiB", 0, 23, 8, 0, 1},
		{"20 of 8 MiB", 0, 8, 20, 0, 4},
		{"3 of 24 MiB", 0, 24, 3, 0, 1},
		{"50 of 4 MiB", 0, 4, 50, 0, 4},
		{"10 with bodies and answers of 3 MiB", 3, 3, 10, 2, 4},
	} {
		b := &memory.Budget{Elsewhere: func() (int64, int64) { return 0, 0 }}
		var calls []*reading
		for i := range c.calls {
			l := lease(b, string(rune('a'+i%c.tenants)))
			if c.body > 0 && !l.TryAcquire(memory.Body, memory.Amount{Program: c.body * mib}) {
				continue // its client waits for the others
			}
			calls = append(calls, &reading{l: l, answer: c.answer * mib})
		}
		rounds, most := 0, int64(0)
		for left := len(calls); left > 0 && rounds < 600; rounds++ {
			left = 0
			for _, r := range calls {
				if !r.read() {
					left++
				}
				most = max(most, b.Used())
			}
		}
		refused := 0
		for _, r := range calls {
			if r.refused {
				refused++
			}
		}
		if rounds >= 600 || refused > c.refused || most > memory.DefaultMax || b.Used() != 0 {
			t.Errorf("%s: %d rounds, %d refused, at most %d MiB, %d left", c.name, rounds, refused, most/mib, b.Used())
		}
	}
}

// Calls of one tenant whose clients have left unseen do not take all places to wait.
func TestWaitingCallsAreBounded(t *testing.T) {
	b := &memory.Budget{Max: 32 * mib}
	full := lease(b, "z")
	full.TryAcquire(memory.Body, host(31*mib))
	waiting := func(who string) (n int) {
		for range 200 {
			if _, refused := lease(b, who).TryAnswer(none, stream.Gathered{Bytes: 2 * mib, Of: -1}); !refused {
				n++
			}
		}
		return n
	}
	if a, others := waiting("a"), waiting("b"); a != 96 || others != 32 {
		t.Errorf("%d and %d wait, want 96 and 32", a, others)
	}
	l := lease(b, "c")
	if _, refused := l.TryAnswer(none, stream.Gathered{Bytes: 2 * mib, Of: -1}); !refused {
		t.Error("all places are taken")
	}
	l.Release()
}

// The memory of a program that has grown comes back with its end alone: a call that it has
// no room for is refused at once, also one whose answer grows.
func TestCallThatCanNeverHaveMemoryIsRefusedAtOnce(t *testing.T) {
	clock := fake.NewClock(time.Time{})
	grown := int64(20 * mib)
	b := &memory.Budget{Max: 72 * mib, Pause: clock, Elsewhere: func() (int64, int64) { return grown, 13 * mib }}
	if err := lease(b, "a").Acquire(ctx, memory.Body, memory.Both(mib)); err != nil {
		t.Fatal(err)
	}
	grown = 98 * mib
	err := lease(b, "b").Acquire(ctx, memory.Body, memory.Both(mib))
	var e *apierr.Error
	if !errors.As(err, &e) || e.Status != 503 || e.RetryAfter == 0 || clock.Pauses() != 0 {
		t.Errorf("%v after %d pauses", err, clock.Pauses())
	}
	if ok, refused := lease(b, "c").TryAnswer(none, stream.Gathered{Bytes: mib, Of: mib}); ok || !refused {
		t.Error("an answer waits")
	}
}

// Streams with long lines once waited for each other for a minute, each with a part of its
// line, in a program that had grown too far for any of them.
func TestLinesDoNotWaitForEachOther(t *testing.T) {
	for _, tt := range []struct {
		grown int64 // MiB
		whole int   // at least
	}{{0, 40}, {60, 40}, {76, 1}, {99, 0}} {
		grown := tt.grown * mib
		b := &memory.Budget{Collect: func(used, n int64) { grown = max(grown, used+n) }}
		b.Elsewhere = func() (int64, int64) { return grown, 0 }
		type line struct {
			l *memory.Lease
			n int64
		}
		var lines []*line
		for i := range 40 {
			lines = append(lines, &line{l: lease(b, string(rune('a'+i%4)))})
		}
		whole, rounds := 0, 0
		for ; len(lines) > 0 && rounds < 100; rounds++ { // of a tenth of a second
			var rest []*line
			for _, x := range lines {
				ok, refused := true, false
				for ok && x.n < 3*mib { // it only waits without memory
					next := min(x.n+64<<10, 3*mib)
					a := memory.Amount{Program: next * 9 / 4}
					if next == 3*mib {
						a = memory.Amount{Program: 4 * next, Host: next}
					}
					if ok, refused = x.l.TryGrow(memory.Line, a); ok {
						x.n = next
					}
				}
				switch {
				case refused:
					x.l.Release()
				case x.n == 3*mib:
					x.l.Release()
					whole++
				default:
					rest = append(rest, x)
				}
			}
			lines = rest
		}
		if len(lines) > 0 || whole < tt.whole || b.Used() != 0 {
			t.Errorf("grown by %d MiB: %d lines wait after %d rounds, %d whole, %d bytes left", tt.grown, len(lines), rounds, whole, b.Used())
		}
	}
}

// Bodies of known length have all that they need before they are read, so calls side by
// side never wait with a part of it, whatever their answers are.
func TestAdmittedCallsEnd(t *testing.T) {
	for name, tenant := range map[string]func(i int) string{
		"one tenant": func(int) string { return "a" }, "three": func(i int) string { return string(rune('a' + i%3)) }, "many": func(i int) string { return string(rune('a' + i)) },
	} {
		t.Run(name, func(t *testing.T) {
			const n, size, answer = 24, 2 * mib, 3 * mib
			b := &memory.Budget{Max: 32 * mib}
			leases, stage := make([]*memory.Lease, n), make([]int, n)
			for i := range leases {
				leases[i] = lease(b, tenant(i))
			}
			for rounds, left := 0, n; left > 0; rounds++ {
				if rounds > 100 {
					t.Fatalf("%d calls stand still with %d bytes", left, b.Used())
				}
				for i, l := range leases {
					switch stage[i] {
					case 0:
						if !l.TryAcquire(memory.Body, memory.Amount{Program: size + memory.Translated(size), Host: size}) {
							continue
						}
					case 1:
						l.Sent()
					case 2:
						ok, refused := l.TryAnswer(none, stream.Gathered{Bytes: answer, Of: answer})
						if refused {
							t.Fatal("an answer is refused")
						}
						if !ok {
							continue
						}
					case 3:
						l.Release()
						left--
					}
					stage[i]++
				}
			}
			if b.Used() != 0 {
				t.Errorf("%d bytes are left", b.Used())
			}
		})
	}
}

// A call with an answer waits only shortly for another one, as one does whose answer is
// larger than what is kept for answers: others may wait for what it has.
func TestCallsThatOthersWaitForAreRefusedSoon(t *testing.T) {
	b := &memory.Budget{Max: 32 * mib}
	for _, who := range []string{"x", "y"} {
		if !lease(b, who).TryAcquire(memory.Body, host(12*mib)) {
			t.Fatal("no memory for a body")
		}
	}
	// waits returns how often an answer is asked for before it is refused.
	waits := func(l *memory.Lease, size int64) int {
		for n := range 200 {
			ok, refused := l.TryAnswer(none, stream.Gathered{Bytes: size, Of: size})
			if ok {
				t.Fatal("there is memory")
			}
			if refused {
				return n
			}
		}
		return 200
	}
	l := lease(b, "a")
	l.TryAcquire(memory.Body, host(mib/2))
	if n := waits(l, 5*mib); n != 100 {
		t.Errorf("a large answer beside a body: %d times", n)
	}
	if ok, _ := l.TryAnswer(none, stream.Gathered{Bytes: mib, Of: mib}); !ok {
		t.Fatal("an answer of 2 MiB has no memory")
	}
	if n := waits(l, 3*mib); n != 100 {
		t.Errorf("a second answer: %d times", n)
	}
	other := lease(b, "b")
	if n := waits(other, 3*mib); n != 200 {
		t.Errorf("an answer of a call that has nothing: %d times", n)
	}
	l.Release()
	if ok, _ := other.TryAnswer(none, stream.Gathered{Bytes: 3 * mib, Of: 3 * mib}); !ok {
		t.Error("the answer still waits")
	}
}

// A tenant that sends many bodies at once has few of them worked on, so that the calls of
// others need not wait behind all of them.
func TestFewBodiesOfATenantAreReadAtOnce(t *testing.T) {
	b := &memory.Budget{}
	var all []*memory.Lease
	for range 100 {
		if l := lease(b, "a"); l.TryAcquire(memory.Body, memory.Both(90<<10)) {
			all = append(all, l)
		}
	}
	if len(all) != 32 || !lease(b, "b").TryAcquire(memory.Body, memory.Both(90<<10)) {
		t.Errorf("%d bodies are read at once", len(all))
	}
	all[0].Sent()
	if next := lease(b, "a"); !next.TryAcquire(memory.Body, memory.Both(90<<10)) {
		t.Error("after one was sent")
	}
	all[1].Release()
	if l := lease(b, "a"); !l.TryAcquire(memory.Body, memory.Both(90<<10)) {
		t.Error("after one has ended")
	}
}

// Large calls of a tenant that has all that it may have do not keep those of others
// waiting behind them.
func TestQueueOfATenantDoesNotBlockOthers(t *testing.T) {
	clock := fake.NewClock(time.Time{})
	b := &memory.Budget{Pause: clock}
	for range 32 {
		if !lease(b, "a").TryAcquire(memory.Body, memory.Both(100<<10)) {
			t.Fatal("a small body has no memory")
		}
	}
	clock.Meanwhile = func() { // a large call of a waits
		clock.Meanwhile = nil
		if lease(b, "b").Acquire(ctx, memory.Body, memory.Both(2*mib)) != nil || clock.Pauses() > 0 {
			t.Error("a large call of another tenant waits")
		}
	}
	if lease(b, "a").Acquire(ctx, memory.Body, memory.Both(2*mib)) == nil {
		t.Error("the large call of the first tenant has memory")
	}
	if clock.Meanwhile != nil {
		t.Error("it did not wait")
	}
}
