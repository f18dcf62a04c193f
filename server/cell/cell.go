// Package cell runs one instance of the program by one goroutine at a time, as
// the edge platform does.
package cell

import (
	"context"
	"sync"
)

// Cell is the lock of one gateway.App. Goroutines hold it while they run code of
// pkg/; a port releases it while it waits.
type Cell struct{ mu sync.Mutex }

// Enter waits for the cell. The caller then runs code of the program.
func (c *Cell) Enter() { c.mu.Lock() }

// TryEnter enters the cell if no goroutine is inside, and reports whether it did.
func (c *Cell) TryEnter() bool { return c.mu.TryLock() }

// Exit leaves the cell.
func (c *Cell) Exit() { c.mu.Unlock() }

// Inside runs f in the cell, for a goroutine that is outside.
func (c *Cell) Inside(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// Outside runs wait without the cell, for a goroutine that is inside. It is
// inside again when Outside returns, also if wait panics.
func (c *Cell) Outside(_ context.Context, wait func()) {
	c.mu.Unlock()
	defer c.mu.Lock()
	wait()
}

// Leaver is what the ports of a program use to wait: a Cell, or the objects of
// machines, which release their turn as well.
type Leaver interface {
	Outside(ctx context.Context, wait func())
	// Inside runs f in the cell, for a goroutine that is outside of it.
	Inside(f func())
}
