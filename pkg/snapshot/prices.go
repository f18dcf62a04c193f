package snapshot

import (
	"context"
	"time"

	"weir/pkg/catalog"
	"weir/pkg/machine/rpc"
)

// How often the refreshed prices are read again, and after a failure.
const (
	pricesEvery = 10 * time.Minute
	pricesRetry = time.Minute
)

// loadPrices reads what a refresh has stored if that is due. All machines have the same,
// which is replaced between events.
func (c *Cache) loadPrices(ctx context.Context) {
	now := c.Now()
	if c.PriceSource == nil || within(now, c.pricesAt, pricesEvery) {
		return
	}
	c.pricesAt = now // the others do not wait for it
	p, err := rpc.Prices(ctx, c.KV, c.Object)
	if err != nil {
		c.pricesAt = now.Add(pricesRetry - pricesEvery)
		return
	}
	if !c.PriceSource.Issued(&p) {
		p = catalog.Update{}
	}
	if p.FetchedAt == 0 { // before the first refresh has ended
		c.pricesAt = now.Add(pricesRetry - pricesEvery)
	}
	if p.FetchedAt != c.prices.FetchedAt {
		for _, e := range c.entries {
			if e.machine != nil {
				e.machine.derived = nil // kinds of models may have changed
			}
		}
	}
	c.prices = p
}
