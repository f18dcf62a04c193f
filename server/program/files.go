package program

import (
	"net"
	"net/http"
	"sync"
)

// capacity is what a server takes on, so that its open files suffice. A call has one for
// its client and up to two for its upstream, while an address of IPv6 and one of IPv4 are
// dialed (RFC 8305).
type capacity struct {
	calls   int // at once
	clients int // connections of clients: with a call, idle, or with one that is refused
	idle    int // connections to upstreams without a call
}

func capacityOf(files uint64) capacity {
	n := int(min(files, maxFiles))
	return capacity{calls: max(n/4, 1), clients: max(n*5/16, 2), idle: max(n/8, 1)}
}

const (
	minFiles = 4096    // fewer are worth a warning
	maxFiles = 1 << 20 // more make no difference
)

// boundedListener accepts a connection only if there are fewer than its bound.
type boundedListener struct {
	net.Listener
	open   chan struct{} // has an element for each connection
	closed chan struct{}
	close  func() error
}

func newBoundedListener(l net.Listener, most int) *boundedListener {
	b := &boundedListener{Listener: l, open: make(chan struct{}, most), closed: make(chan struct{})}
	b.close = sync.OnceValue(func() error {
		close(b.closed)
		return l.Close()
	})
	return b
}

// Accept waits until there may be another connection, and returns the next one.
func (b *boundedListener) Accept() (net.Conn, error) {
	select {
	case b.open <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.open
		return nil, err
	}
	return &boundedConn{Conn: c, leave: sync.OnceFunc(func() { <-b.open })}, nil
}

func (b *boundedListener) Close() error { return b.close() }

// sparing closes connections behind their answers while most of those that may be open
// are, since idle ones would keep others out.
func (b *boundedListener) sparing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(b.open) > cap(b.open)*3/4 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

type boundedConn struct {
	net.Conn
	leave func()
}

func (c *boundedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite shuts down the writing side, which net/http does after some errors.
func (c *boundedConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}
