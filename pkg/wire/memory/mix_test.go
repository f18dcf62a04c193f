package memory_test

import (
	"math"
	"math/rand"
	"testing"

	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
)

// simulated is a call of TestMixEnds, which goes through its stages one after the other.
type simulated struct {
	l       *memory.Lease
	stages  []stage
	waited  int // rounds, for the present step
	leaves  int // the round in which its client leaves, 0 if it does not
	refused bool
}

// stage makes the next step of a call. It reports whether there was memory, whether there
// never will be, and whether the step was the last.
type stage func() (granted, refused, done bool)

// steps returns the sizes in which size bytes are gathered.
func steps(size int64) (all []int64) {
	for n := int64(0); n < size; {
		n = min(n+min(max(64<<10, n/2), 4*mib), size)
		all = append(all, n)
	}
	return all
}

// body is admitted with all that it takes.
func (c *simulated) body(size int64, program, translates bool) stage {
	a, p := memory.Both(size), memory.Body
	if !program {
		a, p = host(size), memory.Form
	}
	if translates {
		a.Program += memory.Translated(size)
	}
	return func() (granted, refused, done bool) {
		if !c.l.TryAcquire(p, a) {
			return false, false, false
		}
		return true, false, true
	}
}

func (c *simulated) sent() stage {
	rounds := 0
	return func() (granted, refused, done bool) {
		if rounds++; rounds == 3 {
			c.l.Sent()
		}
		return true, false, rounds == 3
	}
}

func (c *simulated) answer(size, of int64) stage {
	sizes, had := steps(size), none
	return func() (granted, refused, done bool) {
		next := stream.Gathered{Bytes: size, Of: size}
		if len(sizes) > 0 {
			next = stream.Gathered{Bytes: sizes[0], Of: of}
		}
		ok, refused := c.l.TryAnswer(had, next)
		if !ok {
			return false, refused, false
		}
		had = next
		if len(sizes) > 0 {
			sizes = sizes[1:]
		}
		return true, false, had.All()
	}
}

func (c *simulated) line(size int64) stage {
	n := int64(0)
	return func() (granted, refused, done bool) {
		next := min(n+512<<10, size)
		a := memory.Amount{Program: next * 9 / 4}
		if next == size {
			a = memory.Amount{Program: 4 * next, Host: next}
		}
		if ok, refused := c.l.TryGrow(memory.Line, a); !ok {
			return false, refused, false
		}
		if n = next; n == size {
			c.l.Drop(memory.Line)
		}
		return true, false, n == size
	}
}

// Of 200 large calls at a time, a third of whose clients leave soon, few are refused, and
// none waits for the others for ever.
func TestMixEnds(t *testing.T) {
	refused := 0
	for seed := range int64(20) {
		rnd := rand.New(rand.NewSource(seed))
		var grown int64
		b := &memory.Budget{Elsewhere: func() (int64, int64) { return grown, 0 }}
		calls := make([]*simulated, 200)
		for i := range calls {
			calls[i] = newSimulated(b, rnd, string(rune('a'+i%4)))
		}
		for round := 1; len(calls) > 0; round++ {
			if round > 5000 {
				t.Fatalf("seed %d: %d calls stand still with %d bytes", seed, len(calls), b.Used())
			}
			var next []*simulated
			steps := 20 // that the isolate makes in a round
			for _, i := range rnd.Perm(len(calls)) {
				c := calls[i]
				switch {
				case c.leaves > 0 && round >= c.leaves:
					c.l.Release()
					continue
				case steps == 0:
				default:
					granted, done := c.step()
					if granted {
						steps--
					}
					if c.refused {
						refused++
					}
					if done {
						continue
					}
				}
				next = append(next, c)
				needs := b.Needs()
				if grown = max(grown, needs.Program); grown+needs.Host > memory.DefaultMax/4*5 {
					t.Fatalf("seed %d: %d bytes of the program, which has grown to %d, and %d of the host", seed, needs.Program, grown, needs.Host)
				}
			}
			calls = next
		}
		if b.Used() != 0 {
			t.Errorf("seed %d: %d bytes are left", seed, b.Used())
		}
	}
	if refused > 20*10 {
		t.Errorf("%d of 4000 calls are refused", refused)
	}
}

// newSimulated returns a call with a body or an answer of ⅛ to 16 MiB.
func newSimulated(b *memory.Budget, rnd *rand.Rand, who string) *simulated {
	c := &simulated{l: lease(b, who)}
	size := int64(math.Exp2(rnd.Float64()*7-3) * mib)
	switch rnd.Intn(6) {
	case 0: // a conversation
		c.stages = []stage{c.body(size, true, false), c.sent()}
	case 1: // one that is translated
		c.stages = []stage{c.body(size, true, true), c.sent()}
	case 2: // a form
		c.stages = []stage{c.body(size, false, false), c.sent()}
	case 3: // an answer
		c.stages = []stage{c.sent(), c.answer(size, -1)}
	case 4: // one of known length
		c.stages = []stage{c.sent(), c.answer(size, size)}
	case 5: // a stream with a long line
		c.stages = []stage{c.sent(), c.line(min(size, 4*mib))}
	}
	if rnd.Intn(3) == 0 {
		c.leaves = 1 + rnd.Intn(30)
	}
	return c
}

// step makes the next step, and reports whether the call got memory and whether it is
// over.
func (c *simulated) step() (granted, done bool) {
	granted, refused, last := c.stages[0]()
	if !granted {
		c.waited++
		if c.refused = refused || c.waited > 600; c.refused {
			c.l.Release()
		}
		return false, c.refused
	}
	if c.waited = 0; last {
		c.stages = c.stages[1:]
	}
	if len(c.stages) == 0 {
		c.l.Release()
	}
	return true, len(c.stages) == 0
}
