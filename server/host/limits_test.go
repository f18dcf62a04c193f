package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

func newLimits(t *testing.T) (*limits, context.Context) {
	ctx, cancel := context.WithCancelCause(t.Context())
	l := &limits{cancel: cancel}
	t.Cleanup(l.end)
	return l, ctx
}

// rung reports whether the timer has expired without a limit to enforce.
func (l *limits) rung() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rings.IsZero()
}

func TestLimitSetAgainCountsFromTheLastTime(t *testing.T) {
	l, ctx := newLimits(t)
	l.within(time.Millisecond, upstream.ErrTimeout, stream.ErrTimeout)
	l.within(40*time.Millisecond, stream.ErrIdle, stream.ErrTimeout)
	earliest := l.until
	<-ctx.Done()
	if time.Now().Before(earliest) {
		t.Error("expired before the limit that was set last")
	}
	if err := context.Cause(ctx); !errors.Is(err, stream.ErrIdle) {
		t.Errorf("cause %v, want that of the limit set last", err)
	}
}

func TestShorterLimitIsNotDelayedByTheTimer(t *testing.T) {
	l, ctx := newLimits(t)
	l.within(time.Hour, upstream.ErrTimeout, stream.ErrTimeout)
	l.within(time.Millisecond, stream.ErrIdle, stream.ErrTimeout)
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, stream.ErrIdle) {
		t.Errorf("cause %v, want that of the shorter limit", err)
	}
}

func TestRemovedLimitDoesNotExpire(t *testing.T) {
	l, ctx := newLimits(t)
	l.within(time.Millisecond, upstream.ErrTimeout, stream.ErrTimeout)
	l.within(0, nil, stream.ErrTimeout)
	for !l.rung() {
		if ctx.Err() != nil {
			t.Fatal("a removed limit has expired")
		}
		time.Sleep(time.Millisecond)
	}
	l.within(time.Millisecond, stream.ErrIdle, stream.ErrTimeout)
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, stream.ErrIdle) {
		t.Errorf("cause %v, want that of the limit set afterwards", err)
	}
}

func TestTotalLimitIsNotProlonged(t *testing.T) {
	l, ctx := newLimits(t)
	l.total = time.Now().Add(20 * time.Millisecond)
	for ctx.Err() == nil {
		l.within(time.Hour, stream.ErrIdle, stream.ErrTimeout)
	}
	if err := context.Cause(ctx); !errors.Is(err, stream.ErrTimeout) {
		t.Errorf("cause %v, want that of the whole exchange", err)
	}
}
