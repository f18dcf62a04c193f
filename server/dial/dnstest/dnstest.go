// Package dnstest is a DNS server for tests, on a loopback address.
package dnstest

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Server answers the look-ups of one resolver. Each look-up of a name gets the next
// of its answers, the last one from then on.
type Server struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr // by name with a period at the end
	asked   map[string]int            // look-ups by name, of A records
}

// New starts a server, which ends with the test, and returns it with the resolver that
// asks it.
func New(t testing.TB) (*Server, *net.Resolver) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &Server{answers: map[string][][]netip.Addr{}, asked: map[string]int{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.serve(conn)
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return n, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// Set sets the answers of a name: one for each look-up, with addresses separated by
// spaces.
func (n *Server) Set(name string, answers ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var lists [][]netip.Addr
	for _, text := range answers {
		var list []netip.Addr
		for _, a := range strings.Fields(text) {
			list = append(list, netip.MustParseAddr(a))
		}
		lists = append(lists, list)
	}
	n.answers[name+"."] = lists
	for _, key := range []string{"", "TypeA", "TypeAAAA"} {
		n.asked[name+"."+key] = 0
	}
}

// Lookups returns how often a name was looked up.
func (n *Server) Lookups(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[name+"."]
}

func (n *Server) serve(conn net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		size, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(buf[:size]); err != nil || len(m.Questions) != 1 {
			continue
		}
		n.answer(&m)
		if packed, err := m.Pack(); err == nil {
			conn.WriteTo(packed, from)
		}
	}
}

func (n *Server) answer(m *dnsmessage.Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := m.Questions[0]
	m.Response, m.Authoritative, m.RecursionAvailable, m.Additionals = true, true, true, nil
	answers, ok := n.answers[q.Name.String()]
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
		return
	}
	// A look-up asks for both kinds of records; A and AAAA are answered from one list.
	at := n.asked[q.Name.String()+q.Type.String()]
	n.asked[q.Name.String()+q.Type.String()]++
	if q.Type == dnsmessage.TypeA {
		n.asked[q.Name.String()]++
	}
	head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}
	for _, a := range answers[min(at, len(answers)-1)] {
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
}
