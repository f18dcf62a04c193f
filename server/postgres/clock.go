package postgres

import (
	"context"
	"sync"
	"time"
)

// clock is the clock of the servers. It is that of the database, but a step of that one is followed
// by slewTick with each tick, so that servers which see it at different times differ by hardly more,
// and a wait that another server has begun does not end at once.
type clock struct {
	mu   sync.Mutex
	at   time.Time
	here time.Time // when it was so, by the monotonic clock
	// doubt is how far at may be wrong, half of the time that the answer took.
	doubt time.Duration
}

const (
	slewTick = tickEvery / 10
	maxStep  = 10 * time.Minute // a longer one corrects a clock that was of no use
)

// Now returns the time that all servers have alike. Until the database has answered that is the
// system's.
func (e *Engine) Now() time.Time {
	e.clock.mu.Lock()
	defer e.clock.mu.Unlock()
	if e.clock.here.IsZero() {
		return time.Now()
	}
	return e.clock.at.Add(time.Since(e.clock.here))
}

// set notes the time that the database has named between two moments, or moves towards it if other
// servers do. A slow answer tells less than an earlier quick one, which becomes less certain by a
// thousandth of its age.
func (c *clock) set(database time.Time, asked, answered time.Time, others bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	doubt := answered.Sub(asked) / 2
	if !c.here.IsZero() && doubt > c.doubt+answered.Sub(c.here)/1000 {
		return
	}
	here := asked.Add(doubt)
	if ahead := database.Sub(c.at.Add(here.Sub(c.here))); others && ahead.Abs() < maxStep {
		database = database.Add(min(max(ahead, -slewTick), slewTick) - ahead)
	}
	c.at, c.here, c.doubt = database, here, doubt
}

// measure sets the clock at the start: to that of the database, or of the other servers if they do
// not have that one. Those that note that they live do.
func (e *Engine) measure(ctx context.Context) error {
	for before := (time.Time{}); ; {
		asked := time.Now()
		var at, beat time.Time
		err := e.writes.QueryRow(ctx, `SELECT clock_timestamp(), coalesce((SELECT max(beat) FROM weir_replicas), clock_timestamp())`).
			Scan(&at, &beat)
		if err != nil {
			return err
		}
		apart := beat.Sub(at)
		if apart.Abs() < maxStep && (apart > time.Second || apart < -deadAfter) && !beat.Equal(before) {
			if before.IsZero() {
				before = beat
				select {
				case <-time.After((beatEvery + 1) * tickEvery):
					continue
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			at = beat
		}
		e.clock.set(at, asked, time.Now(), false)
		return nil
	}
}
