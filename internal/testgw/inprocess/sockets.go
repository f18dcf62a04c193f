package inprocess

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"weir/pkg/credentials/proxydial"
)

// Sockets is a proxy whose tunnel ends at a token endpoint: what each says.
type Sockets struct {
	Proxy, Endpoint string
	Dialled         []string
	Sent            bytes.Buffer
}

type socket struct {
	io.Reader
	of *Sockets
}

// Dial connects to the proxy.
func (s *Sockets) Dial(_ context.Context, address string, _ time.Duration) (proxydial.Conn, error) {
	s.Dialled = append(s.Dialled, address)
	if s.Proxy == "" {
		return nil, errors.New("refused")
	}
	return socket{strings.NewReader(s.Proxy), s}, nil
}

func (c socket) Write(p []byte) (int, error) { return c.of.Sent.Write(p) }
func (socket) Close() error                  { return nil }
func (c socket) StartTLS(string) (io.ReadWriteCloser, error) {
	return socket{strings.NewReader(c.of.Endpoint), c.of}, nil
}

// Tunnel is the answer of a proxy that has opened one.
const Tunnel = "HTTP/1.1 200 OK\r\n\r\n"
