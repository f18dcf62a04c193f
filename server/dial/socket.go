package dial

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"weir/pkg/credentials/proxydial"
	"weir/pkg/wire/upstream"
)

// Sockets opens TCP connections for calls through a proxy. It is a proxydial.Dialer.
type Sockets struct {
	outside func(ctx context.Context, wait func())
	dialer  *net.Dialer
	tls     *tls.Config
}

// NewSockets returns a dialer. Every call that blocks runs as the function of outside.
func NewSockets(p *Policy, outside func(ctx context.Context, wait func())) *Sockets {
	return &Sockets{outside: outside, dialer: p.dialer(), tls: &tls.Config{MinVersion: tls.VersionTLS12}}
}

// Dial opens a connection to "host:port". The connection does not end when ctx does:
// a call that may have rotated a token must not be aborted when its caller leaves.
func (s *Sockets) Dial(ctx context.Context, address string, timeout time.Duration) (proxydial.Conn, error) {
	dialer := *s.dialer
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
		dialer.Deadline = deadline
	}
	var conn net.Conn
	var err error
	s.outside(ctx, func() {
		if conn, err = dialer.DialContext(context.WithoutCancel(ctx), "tcp", address); err == nil {
			err = conn.SetDeadline(deadline)
		}
	})
	if err != nil {
		return nil, failure("dial", err)
	}
	return &socket{ctx: ctx, sockets: s, conn: conn}, nil
}

// socket is a connection in plain text or, after StartTLS, in TLS.
type socket struct {
	ctx     context.Context
	sockets *Sockets
	conn    net.Conn
}

// Read reads some bytes.
func (s *socket) Read(p []byte) (n int, err error) {
	s.sockets.outside(s.ctx, func() { n, err = s.conn.Read(p) })
	if err != nil && !errors.Is(err, io.EOF) {
		err = failure("read", err)
	}
	return n, err
}

// Write sends all of p.
func (s *socket) Write(p []byte) (n int, err error) {
	s.sockets.outside(s.ctx, func() { n, err = s.conn.Write(p) })
	if err != nil {
		err = failure("write", err)
	}
	return n, err
}

// StartTLS continues in TLS on the same connection.
func (s *socket) StartTLS(host string) (io.ReadWriteCloser, error) {
	config := s.sockets.tls.Clone()
	config.ServerName = host
	secure := tls.Client(s.conn, config)
	var err error
	s.sockets.outside(s.ctx, func() { err = secure.HandshakeContext(context.WithoutCancel(s.ctx)) })
	if err != nil {
		if failed := failure("handshake", err); errors.Is(failed, upstream.ErrTimeout) {
			return nil, failed
		}
		return nil, fmt.Errorf("%w: %w", proxydial.ErrHandshake, err)
	}
	return &socket{ctx: s.ctx, sockets: s.sockets, conn: secure}, nil
}

// Close closes the connection. It may be called more than once.
func (s *socket) Close() error {
	s.sockets.outside(s.ctx, func() { s.conn.Close() })
	return nil
}

// failure returns an error of a connection as one of package upstream.
func failure(what string, err error) error {
	var refused *Refused
	if errors.As(err, &refused) {
		return refused
	}
	kind := upstream.ErrNetwork
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		kind = upstream.ErrTimeout
	} else if t := net.Error(nil); errors.As(err, &t) && t.Timeout() {
		kind = upstream.ErrTimeout
	}
	return fmt.Errorf("%s: %w: %w", what, kind, err)
}
