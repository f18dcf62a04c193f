package snapshot

import (
	"context"
	"sync"
	"time"

	"weir/pkg/catalog"
	"weir/pkg/machine/rpc"
)

// How often the refreshed prices are read again, and after a failure.
const (
	pricesEvery = 10 * time.Minute
	pricesRetry = time.Minute
)

// prices are what the last refresh has stored. All machines have the same.
type prices struct {
	mu     sync.Mutex
	update *catalog.Update // is replaced, never changed; nil until it was read
	at     time.Time       // when it was last read
}

// current returns the newest prices; nil without any.
func (p *prices) current() *catalog.Update {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.update
}

// begin reports whether prices are due to be read, at most to one caller.
func (p *prices) begin(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if within(now, p.at, pricesEvery) {
		return false
	}
	p.at = now // the others do not wait for it
	return true
}

// read notes prices that were read, nil for a failure.
func (p *prices) read(update *catalog.Update, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if update == nil || update.FetchedAt == 0 { // or before the first refresh has ended
		p.at = now.Add(pricesRetry - pricesEvery)
	}
	if update != nil {
		p.update = update
	}
}

// unread reports whether prices were never read.
func (p *prices) unread() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at.IsZero()
}

// loadPrices reads what a refresh has stored if that is due.
func (c *Cache) loadPrices(ctx context.Context) {
	now := c.Now()
	if c.PriceSource == nil || !c.prices.begin(now) {
		return
	}
	p, err := rpc.Prices(ctx, c.KV, c.Object)
	switch {
	case err != nil:
		c.prices.read(nil, now)
	case !c.PriceSource.Issued(&p):
		c.prices.read(&catalog.Update{}, now)
	default:
		c.prices.read(&p, now)
	}
}
