package media_test

import (
	"context"
	"testing"
	"time"

	"weir/pkg/media"
)

// looks runs a step at each pause.
type looks []func()

func (l *looks) Pause(context.Context, time.Duration) error {
	if len(*l) > 0 {
		step := (*l)[0]
		*l = (*l)[1:]
		step()
	}
	return nil
}

const mib = 1 << 20

func TestATenantLeavesRoomToOthers(t *testing.T) {
	r := &media.Room{Max: 32 * mib}
	var gives []func()
	take := func(who string, want int64) bool {
		give, err := r.Take(context.Background(), who, want)
		if err == nil {
			gives = append(gives, give)
		}
		return err == nil
	}
	for i, step := range []struct {
		who  string
		want int64
		ok   bool
	}{
		{"a", 20 * mib, true}, {"a", 8 * mib, false}, {"a", 4 * mib, true}, {"a", 1, false},
		{"b", 8 * mib, true}, {"b", 1, false}, {"c", 1, false},
	} {
		if got := take(step.who, step.want); got != step.ok {
			t.Errorf("step %d: %s takes %d: %v", i, step.who, step.want, got)
		}
	}
	for _, give := range gives {
		give()
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

// The first of a queue waits for its own calls: those behind it do not.
func TestAQueueIsNotHeldUpByOneTenant(t *testing.T) {
	var order []string
	pause := &looks{}
	r := &media.Room{Max: 32 * mib, Pause: pause}
	first, _ := r.Take(context.Background(), "a", 24*mib)
	*pause = looks{
		func() { // a waits; b comes
			give, err := r.Take(context.Background(), "b", 2*mib)
			if err != nil {
				t.Errorf("b: %v", err)
				return
			}
			order = append(order, "b")
			give()
		},
		func() { first() },
	}
	give, err := r.Take(context.Background(), "a", 8*mib)
	if err != nil {
		t.Fatal(err)
	}
	order = append(order, "a")
	give()
	if len(order) != 2 || order[0] != "b" || r.Used() != 0 {
		t.Errorf("%v, %d bytes left", order, r.Used())
	}
}
