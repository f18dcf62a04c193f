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
	queue []waiter
	last  uint32
	of    map[string]int64 // bytes by who took them, for Take
}

// waiter is a call that waits for room.
type waiter struct {
	n    uint32
	who  string
	want int64
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
	if err = r.take(ctx, "", want); err != nil {
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

// Take waits until there is room for want bytes that who holds in memory, with
// the errors of Hold. give must be called when they are not needed any more. A
// quarter of the room is always left to others: bodies that come slowly, or
// many, keep nobody else out.
func (r *Room) Take(ctx context.Context, who string, want int64) (give func(), err error) {
	if r == nil {
		return func() {}, nil
	}
	want = min(want, r.share())
	if err := r.take(ctx, who, want); err != nil {
		return nil, err
	}
	return func() {
		r.used -= want
		if r.of[who] -= want; r.of[who] <= 0 {
			delete(r.of, who)
		}
	}, nil
}

// take waits until there is room for want bytes, and takes it.
func (r *Room) take(ctx context.Context, who string, want int64) error {
	if r == nil || r.enter(r.queue, who, want) {
		return nil
	}
	if r.Pause != nil {
		r.last++
		mine := waiter{r.last, who, want}
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
			if r.enter(r.queue[:slices.Index(r.queue, mine)], who, want) {
				return nil
			}
		}
	}
	e := apierr.New(503, "overloaded", "there is no room for the body at the moment")
	e.RetryAfter = time.Second
	return e
}

// enter takes room behind those who wait already, unless these wait only for
// their own calls.
func (r *Room) enter(before []waiter, who string, want int64) bool {
	if r.over(who, want) {
		return false
	}
	for _, w := range before {
		if !r.over(w.who, w.want) {
			return false
		}
	}
	if !r.fits(want) {
		return false
	}
	if who != "" {
		if r.of == nil {
			r.of = map[string]int64{}
		}
		r.of[who] += want
	}
	return true
}

// over tells whether who has as much as it may have.
func (r *Room) over(who string, want int64) bool {
	return who != "" && r.of[who]+want > r.share()
}

// share is what one may have.
func (r *Room) share() int64 { return r.limit() / 4 * 3 }

func (r *Room) limit() int64 {
	if r.Max <= 0 {
		return 64 << 20
	}
	return r.Max
}

// fits takes room for want bytes where there is some. A body alone always fits.
func (r *Room) fits(want int64) bool {
	if r.used > 0 && r.used+want > r.limit() {
		return false
	}
	r.used += want
	return true
}

// Used is how many bytes are held at the moment.
func (r *Room) Used() int64 { return r.used }
