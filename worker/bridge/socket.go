//go:build js && wasm

package bridge

import (
	"context"
	"io"
	"time"

	"weir/pkg/credentials/proxydial"
)

// Dialer opens TCP connections by the platform's sockets.
//
// github.com/syumai/workers/cloudflare/sockets is not used: its StartTLS cannot
// name the server that the certificate must be good for, its reads and writes
// start goroutines and wait on timers that do not fire here, and it makes the
// program 160 KB larger (40 KB gzipped).
type Dialer struct{}

// Dial opens a connection to "host:port".
func (Dialer) Dial(ctx context.Context, address string, timeout time.Duration) (proxydial.Conn, error) {
	c := callOf(ctx)
	if c == nil {
		return nil, errNoCall
	}
	op, ch := begin()
	hostDial(op, c.id, sptr(address), int32(len(address)), ms(timeout))
	e := <-ch
	if e.kind != opOK {
		return nil, failure(e.kind)
	}
	return &socket{id: e.status}, nil
}

// socket is one connection of the host; rest is what was read and not yet
// given out.
type socket struct {
	id   int32
	rest []byte
}

// Read gives what has arrived, or waits for it.
func (s *socket) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		op, ch := begin()
		hostSocketRead(op, s.id)
		switch e := <-ch; e.kind {
		case opOK:
			s.rest = e.body
		case opEnd:
			return 0, io.EOF
		default:
			return 0, failure(e.kind)
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Write sends all of p.
func (s *socket) Write(p []byte) (int, error) {
	op, ch := begin()
	hostSocketWrite(op, s.id, ptr(p), int32(len(p)))
	if e := <-ch; e.kind != opOK {
		return 0, failure(e.kind)
	}
	return len(p), nil
}

// StartTLS goes on in TLS on the same connection.
func (s *socket) StartTLS(host string) (io.ReadWriteCloser, error) {
	op, ch := begin()
	hostSocketTLS(op, s.id, sptr(host), int32(len(host)))
	if e := <-ch; e.kind != opOK {
		return nil, failure(e.kind)
	}
	return &socket{id: s.id}, nil
}

// Close ends the connection, once or more often.
func (s *socket) Close() error {
	hostSocketClose(s.id)
	return nil
}
