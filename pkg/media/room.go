package media

import (
	"context"
	"slices"
	"time"

	"weir/pkg/apierr"
	"weir/pkg/auth"
	"weir/pkg/stream"
	"weir/pkg/upstream"
)

// Room is how much the bodies held by the host may have together, so that
// uploads cannot use up the isolate's memory. The zero value has 64 MiB. One is
// shared by the endpoints of an isolate.
//
// A body that finds no room waits unread: its client is held back by its own
// connection. No call waits for another one, which the platform forbids; each
// looks again after pauses of its own, the earliest first.
type Room struct {
	Max   int64           // bytes
	Pause upstream.Pauser // nil: nobody waits

	used  int64
	queue []uint32 // who waits
	last  uint32
}

const (
	roomLook = 100 * time.Millisecond // between two looks
	roomWait = 15 * time.Second       // for room, then 503
)

// Hold gathers a body, of length bytes as far as the client said (-1 when not),
// and keeps it outside of Go. give must be called when it has been sent.
//
// The error is a 503 for a body that found no room in 15 s,
// upstream.ErrCanceled when the client left meanwhile, stream.ErrTooLarge for a
// body over max.
func (r *Room) Hold(ctx context.Context, c *auth.Call, max int64) (held stream.Held, give func(), err error) {
	want := c.Length
	if want > max {
		return nil, nil, stream.ErrTooLarge
	}
	if want < 0 {
		want = max
	}
	if err = r.take(ctx, want); err != nil {
		return nil, nil, err
	}
	free := func() {
		if r != nil {
			r.used -= want
		}
	}
	if held, err = stream.Hold(c.Body, max); err != nil {
		free()
		return nil, nil, uploadError(err)
	}
	if over := want - held.Size(); r != nil && over > 0 {
		r.used -= over
		want -= over
	}
	return held, func() {
		held.Release()
		free()
	}, nil
}

// Take waits until there is room for want bytes that are held in memory, with
// the errors of Hold. give must be called when they are not needed any more.
func (r *Room) Take(ctx context.Context, want int64) (give func(), err error) {
	if err := r.take(ctx, want); err != nil {
		return nil, err
	}
	return func() {
		if r != nil {
			r.used -= want
		}
	}, nil
}

// take waits until there is room for want bytes, and takes it.
func (r *Room) take(ctx context.Context, want int64) error {
	if r == nil || len(r.queue) == 0 && r.fits(want) {
		return nil
	}
	if r.Pause != nil {
		r.last++
		mine := r.last
		r.queue = append(r.queue, mine)
		defer func() {
			if i := slices.Index(r.queue, mine); i >= 0 {
				r.queue = slices.Delete(r.queue, i, i+1)
			}
		}()
		for waited := time.Duration(0); waited < roomWait; waited += roomLook {
			if r.Pause.Pause(ctx, roomLook) != nil {
				return upstream.ErrCanceled
			}
			if r.queue[0] == mine && r.fits(want) {
				return nil
			}
		}
	}
	e := apierr.New(503, "overloaded", "there is no room for the body at the moment")
	e.RetryAfter = time.Second
	return e
}

// fits takes room for want bytes where there is some. A body alone always fits.
func (r *Room) fits(want int64) bool {
	limit := r.Max
	if limit <= 0 {
		limit = 64 << 20
	}
	if r.used > 0 && r.used+want > limit {
		return false
	}
	r.used += want
	return true
}

// Used is how many bytes are held at the moment.
func (r *Room) Used() int64 { return r.used }
