// Package memory bounds the memory that the bodies of concurrent calls take.
package memory

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"weir/pkg/auth"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Budget bounds how many bytes the bodies of an isolate have in memory together.
// The zero value has 64 MiB. Memory is acquired as bytes arrive, so a declared
// length alone blocks no one, and one tenant has at most three quarters of it.
//
// A body without room waits unread, which slows its client down. A call may not
// wait for another one, which the platform forbids; each retries after a pause.
//
// Bodies that grow at the same time must not deadlock. So memory is granted only
// while every lease could still get all that it may need, one after the other (the
// banker's algorithm).
type Budget struct {
	Max   int64           // bytes
	Pause upstream.Pauser // nil: Acquire fails at once

	used   int64
	of     map[string]int64 // bytes by tenant
	leases []*Lease         // those with memory
	queue  []*waiter
	moves  uint64 // counts changes: without one a retry is pointless
}

// Lease is the memory of one call.
type Lease struct {
	room *Budget
	who  string
	most int64 // upper bound of have
	have int64
}

// waiter is a lease that waits until it may have total bytes.
type waiter struct {
	lease *Lease
	total int64
}

const (
	roomLook = 100 * time.Millisecond // between two attempts
	roomWait = 15 * time.Second       // for room, then 503
	// uncounted is the length up to which a body is not counted.
	uncounted = 64 << 10
)

// Lease returns a lease of who, a machine, for a body of at most most bytes, -1 if
// not known. It has no memory yet. Leases of a nil Room are unlimited.
func (r *Budget) Lease(who string, most int64) *Lease {
	if r != nil {
		most = min(most, r.share())
	}
	return &Lease{room: r, who: who, most: most}
}

// Acquire waits until the lease may have total bytes altogether. If it has more,
// the rest is released. With last it needs no more.
//
// The error is a 503 if there was no room for 15 s, upstream.ErrCanceled if the
// client disconnected.
func (l *Lease) Acquire(ctx context.Context, total int64, last bool) error {
	r := l.room
	if r == nil {
		return nil
	}
	if total = min(total, r.share()); total <= uncounted {
		total = 0
	}
	l.most = max(l.most, total)
	if total > l.have && !r.enter(l, total, len(r.queue)) {
		if err := r.wait(ctx, l, total); err != nil {
			return err
		}
	}
	if total < l.have {
		r.set(l, total)
	}
	if last {
		l.most = l.have
	}
	return nil
}

// Release releases all memory of the lease.
func (l *Lease) Release() {
	if l.room != nil {
		l.room.set(l, 0)
	}
}

// Hold reads a body and keeps it outside of Go. release must be called when it is no
// longer needed.
//
// The error is that of Acquire, stream.ErrTooLarge for a body over max, or one for
// a client that sent the body too slowly or not completely.
func (r *Budget) Hold(ctx context.Context, c *auth.Call, max int64) (held stream.Held, release func(), err error) {
	if c.Length > max {
		return nil, nil, stream.ErrTooLarge
	}
	lease := r.Lease(c.MachineID, c.Length)
	held, err = stream.Hold(&stream.Metered{ReadCloser: c.Body, Length: c.Length, Grow: func(total int64, last bool) error {
		return lease.Acquire(ctx, total, last)
	}}, max)
	if err != nil {
		lease.Release()
		return nil, nil, BodyError(err)
	}
	return held, func() {
		held.Release()
		lease.Release()
	}, nil
}

// Acquire waits until there is room for want bytes of who, with the errors of
// Acquire. release must be called when they are no longer needed.
func (r *Budget) Acquire(ctx context.Context, who string, want int64) (release func(), err error) {
	lease := r.Lease(who, want)
	if err := lease.Acquire(ctx, want, true); err != nil {
		return nil, err
	}
	return lease.Release, nil
}

// wait retries until the lease may have total bytes.
func (r *Budget) wait(ctx context.Context, l *Lease, total int64) error {
	if r.Pause != nil {
		mine := &waiter{l, total}
		r.queue = append(r.queue, mine)
		defer func() {
			if i := slices.Index(r.queue, mine); i >= 0 {
				r.queue = slices.Delete(r.queue, i, i+1)
			}
		}()
		seen := r.moves
		for waited := time.Duration(0); waited < roomWait; waited += roomLook {
			if r.Pause.Pause(ctx, roomLook) != nil {
				return upstream.ErrCanceled
			}
			if r.moves == seen {
				continue
			}
			seen = r.moves
			if r.enter(l, total, slices.Index(r.queue, mine)) {
				return nil
			}
		}
	}
	e := apierr.New(503, "overloaded", "There is no room for the body at the moment.")
	e.RetryAfter = time.Second
	return e
}

// enter grants the lease total bytes if it may have them. A lease without memory
// queues behind the first before waiters without memory, except those whose
// own tenant has reached its share.
func (r *Budget) enter(l *Lease, total int64, before int) bool {
	if !r.safe(l, total) {
		return false
	}
	if l.have == 0 {
		for _, w := range r.queue[:before] {
			if w.lease.have == 0 && r.of[w.lease.who]+w.total <= r.share() {
				return false
			}
		}
	}
	r.set(l, total)
	return true
}

// set changes the memory of the lease to total bytes.
func (r *Budget) set(l *Lease, total int64) {
	if total == l.have {
		return
	}
	r.moves++
	if l.have == 0 {
		r.leases = append(r.leases, l)
	}
	r.used += total - l.have
	if r.of == nil {
		r.of = map[string]int64{}
	}
	if r.of[l.who] += total - l.have; r.of[l.who] <= 0 {
		delete(r.of, l.who)
	}
	if l.have = total; total == 0 {
		i := slices.Index(r.leases, l)
		r.leases = slices.Delete(r.leases, i, i+1)
	}
}

// safe reports whether all leases could still complete, one after the other, if
// this lease had total bytes.
func (r *Budget) safe(l *Lease, total int64) bool {
	more, free, own := total-l.have, r.limit()-r.used, r.share()-r.of[l.who]
	if more > free || more > own {
		return false
	}
	if need := l.most - l.have; need <= free && need <= own {
		return true // it can complete, and then releases all it has
	}
	free -= more
	of := map[string]int64{l.who: more}
	for who, n := range r.of {
		of[who] += n
	}
	rest := slices.Clone(r.leases)
	if l.have == 0 {
		rest = append(rest, l)
	}
	has := func(x *Lease) int64 {
		if x == l {
			return total
		}
		return x.have
	}
	slices.SortFunc(rest, func(a, b *Lease) int { return int(a.most - has(a) - b.most + has(b)) })
	for progress := true; progress && len(rest) > 0; {
		progress = false
		left := rest[:0]
		for _, x := range rest {
			if need := x.most - has(x); need <= free && need <= r.share()-of[x.who] {
				free += has(x)
				of[x.who] -= has(x)
				progress = true
			} else {
				left = append(left, x)
			}
		}
		rest = left
	}
	return len(rest) == 0
}

// share is the limit of one tenant.
func (r *Budget) share() int64 { return r.limit() / 4 * 3 }

func (r *Budget) limit() int64 {
	if r.Max <= 0 {
		return 64 << 20
	}
	return r.Max
}

// Used is how many bytes are held at the moment.
func (r *Budget) Used() int64 { return r.used }

// BodyError returns the error that a client gets for a body that could not be read.
func BodyError(err error) error {
	if errors.Is(err, stream.ErrIdle) || errors.Is(err, upstream.ErrTimeout) {
		e := apierr.New(408, "timeout", "The request body did not arrive in time.")
		e.Err = err
		return e
	}
	if errors.Is(err, stream.ErrReset) || errors.Is(err, upstream.ErrNetwork) || errors.Is(err, io.ErrUnexpectedEOF) {
		e := apierr.Invalid("", "The request body broke off.")
		e.Err = err
		return e
	}
	return err
}
