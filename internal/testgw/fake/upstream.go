// Package fake has the ports of a platform in memory, for native tests: a
// clock, a scripted upstream, a key-value store.
package fake

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Seen is a call as the upstream saw it. The body of Request is read.
type Seen struct {
	Context     context.Context
	Request     *upstream.Request
	Method, URL string
	Header      httpmsg.Header
	Body        string
	BodyErr     error
	Length      int64  // promised for the body, -1 if it is unknown
	Account     string // the id in the credential of Secret, "" without one
	Timeout     time.Duration
	MaxBody     int64
	Outlive     bool
}

// Secret returns the credential by which an upstream recognizes an account.
func Secret(id string) string { return "key-" + id + "-0123456789abcdef" }

// Answer is the upstream's answer. Status 0 is 200. A streamed body has a read
// for each of Pieces, or Body at once, and ends with End, or with a network
// error if it is Cut. Err is a missing answer; Takes is the time from the start
// of the call to its answer by the clock. Late, if set, returns the answer once
// the call is waited for. Taken, if set, counts the bytes of a streamed body that were
// read.
type Answer struct {
	Status int
	Header httpmsg.Header
	Body   string
	Pieces []string
	End    error
	Cut    bool
	Err    error
	Takes  time.Duration
	Late   func() Answer
	Taken  *int
}

// OK returns a 200 with a body of a content type.
func OK(contentType, body string) Answer {
	return Answer{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: contentType}}, Body: body}
}

// JSON returns a 200 with JSON.
func JSON(body string) Answer { return OK("application/json", body) }

// Reply returns JSON with a status and further header fields.
func Reply(status int, body string, header ...httpmsg.Field) Answer {
	return Answer{Status: status, Header: append(httpmsg.Header{{Name: "content-type", Value: "application/json"}},
		header...), Body: body}
}

// Upstream is a scripted upstream, and every other server that a call may go
// to. It is an upstream.Doer. Without Answer it answers {}.
type Upstream struct {
	Clock  *Clock
	Answer func(s *Seen) Answer
	Seen   []*Seen
	Open   int // streamed bodies that are neither read to their end nor closed
	// Waiting is the number of calls that have started and have no answer yet,
	// Most its maximum.
	Waiting, Most int

	mu sync.Mutex
}

// Start records the call and scripts its answer.
func (u *Upstream) Start(ctx context.Context, req *upstream.Request) upstream.Pending {
	s := &Seen{Context: ctx, Request: req, Method: req.Method, URL: req.URL, Header: copied(req.Header), Length: -1,
		Timeout: req.Timeout, MaxBody: req.MaxBody, Outlive: req.Outlive}
	switch b := req.Body.(type) {
	case nil:
	case *stream.Bytes:
		s.Length = int64(len(b.All()))
	case *stream.Through:
		s.Length = b.T.Length()
	}
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		s.Body, s.BodyErr = string(b), err
	}
	for _, f := range s.Header {
		if _, rest, ok := strings.Cut(f.Value, "key-"); ok {
			if id, _, ok := strings.Cut(rest, "-"); ok {
				s.Account = id
			}
		}
	}
	u.mu.Lock()
	u.Seen = append(u.Seen, s)
	u.Waiting++
	u.Most = max(u.Most, u.Waiting)
	u.mu.Unlock()
	p := pending{u: u, req: req, a: JSON("{}")}
	if u.Answer != nil {
		p.a = u.Answer(s)
	}
	if u.Clock != nil {
		p.begun = u.Clock.Now()
	}
	return p
}

// copied returns a header with values of its own: the gateway overwrites credentials
// after a call.
func copied(h httpmsg.Header) httpmsg.Header {
	h = slices.Clone(h)
	for i := range h {
		h[i].Value = strings.Clone(h[i].Value)
	}
	return h
}

// Accounts returns the accounts of the calls in order, "aab".
func (u *Upstream) Accounts() string {
	var b strings.Builder
	for _, s := range u.Seen {
		b.WriteString(s.Account)
	}
	return b.String()
}

// opened counts streamed bodies.
func (u *Upstream) opened(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.Open += n
}

type pending struct {
	u     *Upstream
	req   *upstream.Request
	begun time.Time
	a     Answer
}

// Wait keeps the limits of the request as the platform does: a body that is
// read into memory is whole or an error.
func (p pending) Wait() (*upstream.Response, error) {
	p.u.mu.Lock()
	p.u.Waiting--
	p.u.mu.Unlock()
	a := p.a
	if a.Late != nil {
		a = a.Late()
	}
	if p.req.Timeout > 0 && a.Takes > p.req.Timeout {
		p.u.Clock.reach(p.begun.Add(p.req.Timeout))
		return nil, upstream.ErrTimeout
	}
	if a.Takes > 0 {
		p.u.Clock.reach(p.begun.Add(a.Takes))
	}
	if a.Err != nil {
		return nil, a.Err
	}
	resp := &upstream.Response{Status: cmp.Or(a.Status, 200), Header: a.Header}
	end, streamed := a.End, a.Pieces != nil || a.End != nil || a.Cut
	if a.Cut {
		end = upstream.ErrNetwork
	}
	if a.Pieces == nil {
		a.Pieces = []string{a.Body}
	}
	whole := strings.Join(a.Pieces, "")
	switch {
	case p.req.MaxBody > 0 && int64(len(whole)) > p.req.MaxBody:
		return nil, stream.ErrTooLarge
	case p.req.MaxBody > 0 && end != nil:
		return nil, upstream.ErrCut
	case p.req.MaxBody > 0 || !streamed:
		resp.Body = stream.FromString(whole)
	default:
		p.u.opened(1)
		resp.Body = &body{u: p.u, pieces: a.Pieces, end: cmp.Or(end, io.EOF), taken: a.Taken}
	}
	return resp, nil
}

// body returns one piece for each read.
type body struct {
	u      *Upstream
	pieces []string
	end    error
	closed bool
	taken  *int
}

func (b *body) Read(d []byte) (int, error) {
	for len(b.pieces) > 0 && b.pieces[0] == "" {
		b.pieces = b.pieces[1:]
	}
	if len(b.pieces) == 0 {
		b.Close()
		return 0, b.end
	}
	n := copy(d, b.pieces[0])
	b.pieces[0] = b.pieces[0][n:]
	if b.taken != nil {
		*b.taken += n
	}
	return n, nil
}

func (b *body) Close() error {
	if !b.closed {
		b.closed = true
		b.u.opened(-1)
	}
	return nil
}
