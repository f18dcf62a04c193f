//go:build unix

package postgrestest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy passes connections on to a server, and disturbs them.
type Proxy struct {
	listener net.Listener
	target   atomic.Value // of server addresses
	delay    atomic.Int64 // of each piece, nanoseconds
	lose     atomic.Int32 // Requests, Answers or 0
	refuse   atomic.Bool

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// Directions that Lose loses.
const (
	Requests = 1 + iota
	Answers
)

// NewProxy returns a proxy of a server's address.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, conns: map[net.Conn]bool{}}
	p.Lead(target)
	go p.serve()
	t.Cleanup(func() { l.Close(); p.Cut() })
	return p
}

// Port is where the proxy listens.
func (p *Proxy) Port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// Cut ends all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// Lead makes new connections lead to another server.
func (p *Proxy) Lead(target string) { p.target.Store(target) }

// Delay delays each piece of bytes.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Lose discards one direction: Requests or Answers; 0 for neither. Its connections are cut at
// the next change, since bytes are missing.
func (p *Proxy) Lose(direction int32) {
	if p.lose.Swap(direction) != 0 {
		p.Cut()
	}
}

// Refuse makes new connections end at once.
func (p *Proxy) Refuse(refuse bool) { p.refuse.Store(refuse) }

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.refuse.Load() {
			client.Close()
			continue
		}
		server, err := net.Dial("tcp", p.target.Load().(string))
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		go p.pass(client, server, Requests)
		go p.pass(server, client, Answers)
	}
}

func (p *Proxy) pass(from, to net.Conn, direction int32) {
	defer func() {
		from.Close()
		to.Close()
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
	}()
	for b := make([]byte, 32<<10); ; {
		n, err := from.Read(b)
		time.Sleep(time.Duration(p.delay.Load()))
		if n > 0 && p.lose.Load() != direction {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err == io.EOF || err != nil {
			return
		}
	}
}
