package objects

import (
	"context"
	"time"

	"weir/pkg/machine/rpc"
)

// refresh is a refresh under way, which identical ones wait for.
type refresh struct {
	done chan struct{}
	late time.Time // callers wait no longer
	result
}

// callRefresh runs a refresh. Identical refreshes that overlap are one: a token
// endpoint that rotates tokens must not be called twice.
func (r *Runner) callRefresh(ctx context.Context, machineID string, body []byte) (int, []byte, error) {
	key := machineID + "\n" + string(body)
	r.mu.Lock()
	f := r.refreshes[key]
	if f == nil {
		f = &refresh{done: make(chan struct{}), late: time.Now().Add(rpc.RefreshLimit)}
		r.refreshes[key] = f
		r.mu.Unlock()
		m, ok := r.begin(machineID)
		if !ok {
			r.endRefresh(key, f)
			return 0, nil, errStopped
		}
		go func() {
			m.turn <- struct{}{}
			f.result = r.run(ctx, m, "refresh", body)
			r.end(m)
			r.endRefresh(key, f)
		}()
	} else {
		r.mu.Unlock()
	}
	late := time.NewTimer(time.Until(f.late))
	defer late.Stop()
	select {
	case <-f.done:
		if f.status == 0 {
			return 0, nil, errStopped
		}
		return f.status, f.answer, nil
	case <-late.C:
		return 503, []byte(rpc.StillRefreshing), nil
	}
}

func (r *Runner) endRefresh(key string, f *refresh) {
	r.mu.Lock()
	delete(r.refreshes, key)
	r.mu.Unlock()
	close(f.done)
}
