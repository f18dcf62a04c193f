package program

import (
	"context"
	"sync/atomic"
	"time"

	"weir/server/upgrade"
)

// updates looks for a newer release, with CHECK_UPDATES.
type updates struct {
	from   upgrade.Source
	own    string // version of this program
	log    func(level int, line string)
	latest atomic.Pointer[string]
}

// everyUpdate is the time between two looks.
const everyUpdate = 24 * time.Hour

// newer returns the version of a newer release, "" if none is known.
func (u *updates) newer() string {
	if v := u.latest.Load(); v != nil {
		return *v
	}
	return ""
}

// watch looks at once and then every day, until the context ends.
func (u *updates) watch(ctx context.Context) {
	t := time.NewTicker(everyUpdate)
	defer t.Stop()
	for {
		switch r, err := u.from.Find(ctx, ""); {
		case err != nil && ctx.Err() == nil:
			u.log(1, "CHECK_UPDATES: "+oneLine(err))
		case err == nil && upgrade.IsRelease(u.own) && upgrade.Newer(r.Version, u.own):
			u.latest.Store(&r.Version)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}
