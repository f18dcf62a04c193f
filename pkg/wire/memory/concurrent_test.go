package memory_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
)

// Calls at the same time never have more than there is, and return all of it.
func TestConcurrentCallsStayWithinTheLimit(t *testing.T) {
	const limit = 16 * mib
	var collected atomic.Int64
	b := &memory.Budget{Max: limit, Pause: fake.NewClock(time.Unix(0, 0)), Collect: func(_, n int64) { collected.Add(n) }}
	var held, served atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			ctx := context.Background()
			for n := range 100 {
				var l memory.Lease
				if !b.Start(&l, fmt.Sprint(i%3), 100) {
					t.Error("there is no room for a small body")
				}
				size := memory.Both(int64(n%4+1) * mib / 2)
				if l.Acquire(ctx, memory.Body, size) == nil {
					served.Add(1)
					if sum := held.Add(size.Program + size.Host); sum > limit*5/4 {
						t.Errorf("calls have %d bytes", sum)
					}
					if b.Used() == 0 || b.Needs() == (memory.Amount{}) {
						t.Error("nothing is in use")
					}
					l.Spare(mib)
					l.TryGrow(memory.Line, memory.Both(1000))
					l.TryAnswer(stream.Gathered{Of: -1}, stream.Gathered{Bytes: mib / 4, Of: -1})
					l.GrowAnswer(ctx, stream.Gathered{}, stream.Gathered{Bytes: 1000, Of: 1000})
					l.TryAcquire(memory.Work, memory.Amount{Program: 1000})
					held.Add(-size.Program - size.Host)
					l.Sent()
					l.Drop(memory.Line)
					l.Passed(1000)
				}
				l.Release()
			}
		})
	}
	all.Wait()
	if b.Used() != 0 || served.Load() == 0 || collected.Load() == 0 {
		t.Errorf("%d bytes are left of %d calls", b.Used(), served.Load())
	}
}
