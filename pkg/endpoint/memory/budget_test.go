package memory_test

import (
	"context"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/endpoint/memory"
)

const mib = 1 << 20

func TestTenantLeavesMemoryToOthers(t *testing.T) {
	r := &memory.Budget{Max: 32 * mib}
	var gives []func()
	take := func(who string, want int64) bool {
		release, err := r.Acquire(context.Background(), who, want)
		if err == nil {
			gives = append(gives, release)
		}
		return err == nil
	}
	for i, step := range []struct {
		who  string
		want int64
		ok   bool
	}{
		{"a", 20 * mib, true}, {"a", 8 * mib, false}, {"a", 4 * mib, true}, {"a", mib, false},
		{"b", 8 * mib, true}, {"b", mib, false}, {"c", mib, false}, {"c", 64 << 10, true}, // what is small is not counted
	} {
		if got := take(step.who, step.want); got != step.ok {
			t.Errorf("step %d: %s takes %d: %v", i, step.who, step.want, got)
		}
	}
	for _, release := range gives {
		release()
	}
	if r.Used() != 0 {
		t.Errorf("%d bytes are left", r.Used())
	}
	gives = nil
	if !take("a", 32*mib) || r.Used() != 24*mib { // all that one may have
		t.Errorf("the largest body: %d bytes", r.Used())
	}
	if !take("b", 8*mib) {
		t.Error("b finds no room beside the largest body of a")
	}
}

// A declared length takes no room: only bytes that have arrived do.
func TestDeclaredLengthAcquiresNoMemory(t *testing.T) {
	r := &memory.Budget{Max: 32 * mib}
	ctx := context.Background()
	for _, who := range []string{"a", "b", "d", "e"} {
		if err := r.Lease(who, 24*mib).Acquire(ctx, mib, false); err != nil {
			t.Fatal(err)
		}
	}
	other := r.Lease("c", 20*mib)
	for total := int64(mib); total <= 20*mib; total += mib {
		if err := other.Acquire(ctx, total, false); err != nil {
			t.Fatalf("at %d bytes: %v", total, err)
		}
	}
	other.Release()
	if r.Used() != 4*mib {
		t.Errorf("%d bytes are held, want 4 MiB", r.Used())
	}
}

func TestLeaseReleasesUnusedMemory(t *testing.T) {
	r := &memory.Budget{Max: 32 * mib}
	l := r.Lease("a", 24*mib)
	l.Acquire(context.Background(), 3*mib, false)
	if l.Acquire(context.Background(), 2*mib, true); r.Used() != 2*mib {
		t.Errorf("%d bytes are held after the end of the body, want 2 MiB", r.Used())
	}
	l.Release()
	if l.Release(); r.Used() != 0 {
		t.Errorf("%d bytes are held after the release", r.Used())
	}
	var none *memory.Budget
	if err := none.Lease("a", 100*mib).Acquire(context.Background(), 100*mib, true); err != nil {
		t.Error(err)
	}
}

// Bodies that grow side by side would each hold a part and wait for the rest.
func TestGrowingBodiesDoNotDeadlock(t *testing.T) {
	for name, tenant := range map[string]func(i int) string{
		"one tenant": func(int) string { return "a" }, "three": func(i int) string { return string(rune('a' + i%3)) }, "many": func(i int) string { return string(rune('a' + i)) },
	} {
		t.Run(name, func(t *testing.T) {
			const n, size = 12, 8 * mib
			r := &memory.Budget{Max: 32 * mib} // no waiting: a refused call is retried in the next round
			leases, have := make([]*memory.Lease, n), make([]int64, n)
			for i := range leases {
				leases[i] = r.Lease(tenant(i), size)
			}
			for rounds, left := 0, n; left > 0; rounds++ {
				if rounds > 1000 {
					t.Fatalf("%d bodies stand still with %d bytes", left, r.Used())
				}
				for i, l := range leases {
					if have[i] == size {
						continue
					}
					if l.Acquire(context.Background(), have[i]+mib/2, false) != nil {
						continue
					}
					if have[i] += mib / 2; have[i] == size {
						l.Release()
						left--
					}
				}
			}
			if r.Used() != 0 {
				t.Errorf("%d bytes are left", r.Used())
			}
		})
	}
}

// The first of a queue waits for its own calls: those behind it do not.
func TestOneTenantDoesNotBlockQueue(t *testing.T) {
	var order []string
	clock := fake.NewClock(time.Time{})
	r := &memory.Budget{Max: 32 * mib, Pause: clock}
	first, _ := r.Acquire(context.Background(), "a", 24*mib)
	clock.Meanwhile = func() {
		switch clock.Pauses() {
		case 0: // a waits; b comes
			release, err := r.Acquire(context.Background(), "b", 2*mib)
			if err != nil {
				t.Errorf("b: %v", err)
				return
			}
			order = append(order, "b")
			release()
		case 1:
			first()
		}
	}
	release, err := r.Acquire(context.Background(), "a", 8*mib)
	if err != nil {
		t.Fatal(err)
	}
	order = append(order, "a")
	release()
	if len(order) != 2 || order[0] != "b" || r.Used() != 0 {
		t.Errorf("%v, %d bytes left", order, r.Used())
	}
}
