package dial

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// names is a DNS server on a loopback port. Each look-up of a name gets the next of
// its answers, the last one from then on.
type names struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr // by name with a period at the end
	asked   map[string]int            // look-ups by name, of A records
}

// newNames starts a server. It returns the resolver that asks it.
func newNames(t testing.TB) (*names, *net.Resolver) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{answers: map[string][][]netip.Addr{}, asked: map[string]int{}}
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

// set sets the answers of a name, one list for each look-up.
func (n *names) set(name string, answers ...[]netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[name+"."] = answers
	n.asked[name+"."] = 0
}

func (n *names) lookups(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[name+"."]
}

func (n *names) serve(conn net.PacketConn) {
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

func (n *names) answer(m *dnsmessage.Message) {
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

func addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}
