package program

import (
	"net"
	"sync"
	"time"
)

// maxWrite is how many bytes are written under one deadline.
const maxWrite = 64 << 10

// stallListener returns connections whose writes fail when the client has read
// nothing for the limit. net/http has a limit for whole answers only, which a
// stream would exceed.
type stallListener struct {
	net.Listener
	limit time.Duration
}

// Accept returns the next connection.
func (l stallListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &stallConn{Conn: c, limit: l.limit}, nil
}

type stallConn struct {
	net.Conn
	limit time.Duration

	mu    sync.Mutex
	until time.Time // the deadline that the server has set; zero if none
	renew time.Time // when a write must move the deadline
}

// Write writes p in pieces, each of which has the limit, or an eighth less: the
// deadline is moved that often and not with each write.
func (c *stallConn) Write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(len(p), n+maxWrite)]
		if err := c.extend(); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(piece)
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

func (c *stallConn) extend() error {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.renew) {
		return nil
	}
	c.renew = now.Add(c.limit / 8)
	return c.Conn.SetWriteDeadline(c.earlier(now))
}

// earlier returns the limit from now on, or the server's deadline if that is earlier.
func (c *stallConn) earlier(now time.Time) time.Time {
	at := now.Add(c.limit)
	if !c.until.IsZero() && c.until.Before(at) {
		return c.until
	}
	return at
}

// SetWriteDeadline sets the server's deadline.
func (c *stallConn) SetWriteDeadline(t time.Time) error {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until, c.renew = t, now.Add(c.limit/8)
	return c.Conn.SetWriteDeadline(c.earlier(now))
}

// SetDeadline sets the server's deadline for reads and writes.
func (c *stallConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// CloseWrite shuts down the writing side, which net/http does after some errors.
func (c *stallConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}
