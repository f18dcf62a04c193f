package memory

import (
	"context"
	"errors"
	"io"
	"time"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Read returns body so that the call is admitted before it is read. length is the
// declared one, -1 if unknown: the body is then read in steps, each of which has memory
// first. translates reports that it may be translated, which its memory is for too.
func (l *Lease) Read(ctx context.Context, body io.ReadCloser, length int64, translates bool) io.ReadCloser {
	if l.budget == nil {
		return body
	}
	if length < 0 {
		return &stream.Metered{ReadCloser: body, Length: length, Grow: l.steps(ctx, Body, false)}
	}
	kept := int64(0)
	if translates {
		kept = max(0, min(Translated(length), l.budget.limit()-2*length))
	}
	return &stream.Metered{ReadCloser: body, Length: length, Grow: func(total int64, last bool) error {
		switch {
		case total <= length && !last:
			return l.enter(ctx, Body, Amount{Host: length}, length+kept)
		case last && total <= Uncounted:
			return l.Acquire(ctx, Body, Amount{})
		}
		return l.Acquire(ctx, Body, Both(min(total, length))) // the program gets it next
	}}
}

// steps returns a function for stream.Metered that acquires memory for a body of unknown
// length. The host gathers it; the program has it in the end, or as it comes if program is
// true. A call that has nothing yet waits for its first step.
func (l *Lease) steps(ctx context.Context, p Part, program bool) func(total int64, last bool) error {
	return func(total int64, last bool) error {
		a := Amount{Host: total}
		switch {
		case total <= Uncounted:
			a = Amount{}
		case last || program:
			a = Both(total)
		}
		return l.growOpen(ctx, p, a, last)
	}
}

// growOpen sets a part of unknown length to a in all. last states that it is complete.
func (l *Lease) growOpen(ctx context.Context, p Part, a Amount, last bool) error {
	b := l.budget
	err := b.acquire(ctx, l, p, a, 0, func() verdict {
		if l.have == (Amount{}) && !a.within(l.have) {
			return b.admit(l, p, a, 0)
		}
		return b.grow(l, p, a, true)
	}, true)
	if last || err != nil {
		b.mu.Lock()
		b.settle(l)
		b.mu.Unlock()
	}
	return err
}

// ReadWhole reads a body of at most max bytes, whose length is not known, into memory of
// the part Form.
func (l *Lease) ReadWhole(ctx context.Context, body io.ReadCloser, max int64) ([]byte, error) {
	if l.budget == nil {
		return stream.ReadAll(body, max)
	}
	m := stream.Metered{ReadCloser: body, Length: -1, Grow: l.steps(ctx, Form, true)}
	all, err := m.ReadAll(max)
	if err != nil {
		l.Drop(Form)
	}
	return all, err
}

// Hold reads a body of at most max bytes and keeps it outside of the program.
// release must be called when it is no longer needed.
//
// The error is that of Acquire, stream.ErrTooLarge for a body over max, or one for
// a client that sent the body too slowly or not completely.
func (l *Lease) Hold(ctx context.Context, body io.ReadCloser,
	length, max int64) (held stream.Held, release func(), err error) {
	if length > max {
		return nil, nil, stream.ErrTooLarge
	}
	if l.budget != nil {
		m := &stream.Metered{ReadCloser: body, Length: length, Grow: l.steps(ctx, Form, false)}
		if length >= 0 {
			m.Grow = func(total int64, _ bool) error { return l.Acquire(ctx, Form, Amount{Host: min(total, length)}) }
		}
		body = m
	}
	if held, err = stream.Hold(body, max); err != nil {
		l.Drop(Form)
		return nil, nil, BodyError(err)
	}
	return held, func() {
		held.Release()
		l.Drop(Form)
	}, nil
}

// GrowAnswer implements stream.Memory: an answer is gathered by the host, and passed
// to the program whole. One of known length acquires all of it at once.
func (l *Lease) GrowAnswer(ctx context.Context, had, next stream.Gathered) error {
	b := l.budget
	if b == nil {
		return nil
	}
	a := gathered(stream.Gathered{Bytes: max(next.Bytes, next.Of), Of: max(next.Bytes, next.Of)})
	return b.acquire(ctx, l, Answer, a, 0, func() verdict { return b.answer(l, had, next) }, true)
}

// TryAnswer implements stream.Memory.
func (l *Lease) TryAnswer(had, next stream.Gathered) (ok, refused bool) {
	b := l.budget
	if b == nil {
		return true, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.waitsOutside(l, b.answer(l, had, next))
	return v == granted, v == never
}

// answer asks for the memory of an answer. A call may have several.
func (b *Budget) answer(l *Lease, had, next stream.Gathered) verdict {
	others := l.part[Answer].minus(gathered(had))
	a := others.plus(gathered(next))
	if next.Of < 0 || had.Of < 0 && had.Bytes > 0 {
		v := b.grow(l, Answer, a, true)
		if next.All() && l.open > 0 && v == granted {
			b.settle(l)
		}
		return v
	}
	total := l.with(Answer, a)
	if next.All() || counted(had) || total.within(l.have) {
		return l.patientWith(others, a, b.grow(l, Answer, a, false))
	}
	kept := l.kept + next.Of // for the program, which gets the answer once it is whole
	v := later
	if l.Translates {
		v = b.granted(l, Answer, a, kept+Translated(next.Of), b.fits(l,
			total.plus(Amount{Program: kept + Translated(next.Of)}), forAnswer))
	}
	if v != granted { // what the translation takes may be less
		v = b.granted(l, Answer, a, kept, b.fits(l, total.plus(Amount{Program: kept}), forAnswer))
	}
	return l.patientWith(others, a, v)
}

// patientWith is patient for a call whose body, or other answer, others may wait for.
func (l *Lease) patientWith(others, a Amount, v verdict) verdict {
	if l.have != (Amount{}) && (others != (Amount{}) || 2*a.Host > l.budget.limit()/16*(forAnswer-forLarge)) {
		return l.patient(v)
	}
	return v
}

// gathered returns the memory of an answer: with the host, which has memory for all of a
// known length, and once it is whole with the program too.
func gathered(g stream.Gathered) Amount {
	switch {
	case !counted(g):
		return Amount{}
	case g.All():
		return Both(g.Bytes)
	}
	return Amount{Host: max(g.Bytes, g.Of)}
}

// counted reports whether an answer is so long that it is counted. One byte more than it
// has shows its end.
func counted(g stream.Gathered) bool { return g.Bytes > Uncounted+1 }

// Refusal returns the error of a client whose call got no memory, for the error that it
// ended with.
func Refusal(err error) *apierr.Error {
	var e *apierr.Error
	if errors.As(err, &e) && (e.Code == "upstream_too_large" || e.Code == "request_too_large") {
		return e
	}
	return Full()
}

// Full returns the error for a call that got no memory.
func Full() *apierr.Error {
	e := apierr.New(503, "overloaded", "The gateway has no memory for this call at the moment. Try again in a moment.")
	e.RetryAfter, e.Err = time.Second, stream.ErrMemory
	return e
}

// tooLarge returns the error for a call that needs more than there is.
func tooLarge(p Part, total Amount, limit int64) error {
	const mib = 1 << 20
	need := (total.sum() + mib - 1) / mib
	e := apierr.New(413, "request_too_large", "The request needs %d MiB of memory; the gateway has %d MiB.", need,
		limit/mib)
	if p == Answer || p == Reply {
		e = apierr.New(502, "upstream_too_large", "The provider's answer needs %d MiB of memory; the gateway has %d MiB.",
			need, limit/mib)
	}
	e.Err = stream.ErrMemory
	return e
}

// BodyError returns the error that a client gets for a body that could not be read.
func BodyError(err error) error {
	if errors.Is(err, stream.ErrIdle) || errors.Is(err, upstream.ErrTimeout) {
		e := apierr.New(408, "timeout", "The request body did not arrive in time.")
		e.Err = err
		return e
	}
	if errors.Is(err, stream.ErrReset) || errors.Is(err, upstream.ErrNetwork) || errors.Is(err, io.ErrUnexpectedEOF) {
		e := apierr.Invalid("", "The connection closed before the whole request body had arrived. Send the request again.")
		e.Err = err
		return e
	}
	return err
}
