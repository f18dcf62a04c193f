package snapshot

import (
	"fmt"
	"testing"
	"time"

	"weir/pkg/store"
)

func TestSpeedIsAMovingAverage(t *testing.T) {
	m := New(&store.Machine{ID: mid})
	now := int64(1_800_000_000_000)
	speed := func() float64 { return m.Speed("c", "m", false, now) }
	if speed() != 0 {
		t.Error("an account that was not measured has a speed")
	}
	m.Took("c", "m", false, 400*time.Millisecond, now)
	m.Took("c", "m", false, 800*time.Millisecond, now)
	if got := speed(); got != 500 {
		t.Errorf("got %v ms, want 500", got)
	}
	if m.Speed("c", "m", true, now) != 0 || m.Speed("c", "other", false, now) != 0 {
		t.Error("a stream or another model has the same speed")
	}
	if m.Speed("c", "m", false, now-1) != 0 {
		t.Error("a measurement from the future counts after the clock was set back")
	}
	if now += speedFor.Milliseconds() + 1; speed() != 0 {
		t.Error("an old measurement counts")
	}
	m.Took("c", "m", false, 100*time.Millisecond, now)
	if got := speed(); got != 100 {
		t.Errorf("got %v ms, want the old average to be replaced", got)
	}
}

func TestBusyIsBounded(t *testing.T) {
	m := New(&store.Machine{ID: mid})
	now := int64(1_800_000_000_000)
	for i := range 3 {
		m.Begin("c", "m", now+int64(i))
	}
	m.End("c", "m", now)
	m.End("c", "other", now)
	for range 5 {
		m.End("never", "m", now)
	}
	if a, b, c := m.Busy("c", "m", now), m.Busy("c", "", now), m.Busy("never", "m", now); a != 2 || b != 1 || c != 0 {
		t.Errorf("%d, %d and %d calls under way", a, b, c)
	}
	later := now + 2*busyEpoch.Milliseconds()
	if n := m.Busy("c", "m", later); n != 0 {
		t.Errorf("%d calls under way after half an hour", n)
	}
	m.Begin("c", "m", later)
	m.End("c", "m", now) // of a call that is forgotten
	if n := m.Busy("c", "m", later); n != 1 {
		t.Errorf("%d calls under way, want 1", n)
	}
	for i := range 5 * maxLoads {
		m.Begin("c", fmt.Sprint(i), later)
	}
	if n := len(m.Local.loads); n > maxLoads {
		t.Errorf("%d entries, at most %d", n, maxLoads)
	}
}
