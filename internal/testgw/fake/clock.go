package fake

import (
	"context"
	"sync"
	"time"
)

// Clock is a clock that tests move. A pause lets its time pass at once.
type Clock struct {
	// Canceled makes pauses fail as those of a call whose client has left.
	Canceled bool
	// Meanwhile, if set, runs in each pause, before its time has passed.
	Meanwhile func()

	mu     sync.Mutex
	now    time.Time
	paused time.Duration
	pauses int
}

// NewClock returns a clock that stands at a time.
func NewClock(at time.Time) *Clock { return &Clock{now: at} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves the time.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// reach moves the time to at, never back.
func (c *Clock) reach(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.After(c.now) {
		c.now = at
	}
}

// Pause moves the time by the length of the pause.
func (c *Clock) Pause(_ context.Context, d time.Duration) error {
	if c.Meanwhile != nil {
		c.Meanwhile()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Canceled {
		return context.Canceled
	}
	c.now, c.paused, c.pauses = c.now.Add(d), c.paused+d, c.pauses+1
	return nil
}

// Paused returns the length of all pauses.
func (c *Clock) Paused() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused
}

// Pauses returns the number of pauses.
func (c *Clock) Pauses() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pauses
}
