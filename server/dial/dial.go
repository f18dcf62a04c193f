// Package dial opens the connections of the server: upstream calls and calls
// through a proxy. It judges the address of every connection after DNS, when it is
// about to be dialed, so a name cannot change its address between check and use.
package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"weir/pkg/provider"
	"weir/pkg/wire/upstream"
)

// Policy decides which addresses may be connected to. It is read-only while it is
// in use.
type Policy struct {
	// AllowPrivate allows loopback and private addresses (ALLOW_PRIVATE_UPSTREAMS).
	// Metadata services, link-local, multicast and reserved addresses stay refused.
	AllowPrivate bool
	// Own are the addresses that the server itself listens at. They are always
	// refused: a call that reaches the gateway again is a loop. An unspecified
	// address means every address of this host.
	Own []netip.AddrPort
	// Resolver resolves names. nil means the system's.
	Resolver *net.Resolver
}

// Refused is the error for an address that the policy refuses. It wraps
// upstream.ErrName.
type Refused struct {
	Address netip.AddrPort
	Why     string // such as "a private address"
	Private bool   // ALLOW_PRIVATE_UPSTREAMS would allow it
}

// Error names the address and, if that helps, the setting. It is for logs: a client
// must not learn the address.
func (r *Refused) Error() string {
	s := fmt.Sprintf("address policy: %s is %s", r.Address, r.Why)
	if r.Private {
		s += "; ALLOW_PRIVATE_UPSTREAMS=true allows it"
	}
	return s
}

// Unwrap returns upstream.ErrName: a client reads the same of a private name as of one that does
// not exist.
func (r *Refused) Unwrap() error { return upstream.ErrName }

// Check returns a *Refused error for an address that may not be connected to, or nil.
func (p *Policy) Check(to netip.AddrPort) error {
	if !to.IsValid() {
		return &Refused{Address: to, Why: "not an address"}
	}
	if why, private := reason(to.Addr()); why != "" && !(private && p.AllowPrivate) {
		return &Refused{Address: to, Why: why, Private: private && !p.AllowPrivate}
	}
	if p.isOwn(to) {
		return &Refused{Address: to, Why: "the gateway itself"}
	}
	return nil
}

// isOwn reports whether the server listens at an address. One that listens at a
// loopback address may be reached at all of them.
func (p *Policy) isOwn(to netip.AddrPort) bool {
	a := to.Addr().WithZone("").Unmap()
	for _, own := range p.Own {
		if own.Port() != to.Port() {
			continue
		}
		o := own.Addr().WithZone("").Unmap()
		if o == a || a.IsLoopback() && (o.IsLoopback() || o.IsUnspecified()) || o.IsUnspecified() && isLocal(a) {
			return true
		}
	}
	return false
}

// isLocal reports whether an interface of this host has an address.
func isLocal(a netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, i := range addrs {
		if n, ok := i.(*net.IPNet); ok {
			if l, ok := netip.AddrFromSlice(n.IP); ok && l.Unmap() == a {
				return true
			}
		}
	}
	return false
}

// dialTimeout limits a connection attempt; the time limits of a call are shorter or
// end it.
const dialTimeout = 30 * time.Second

// dialer returns a dialer that applies the policy to each address that it is about
// to connect to: all that a name resolves to, and both of a race between IPv4 and
// IPv6.
func (p *Policy) dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:        dialTimeout,
		KeepAlive:      30 * time.Second,
		Resolver:       p.Resolver,
		ControlContext: p.control,
	}
}

// dial connects to an address of net/http. Its error is an upstream.ErrPrivate where no more than
// the host of the URL is known to need AllowPrivate, whether it was refused or not resolved:
// a client cannot find out which names exist.
func (p *Policy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := p.dialer().DialContext(ctx, network, address)
	if err == nil || p.AllowPrivate {
		return c, err
	}
	var refused *Refused
	var unknown *net.DNSError
	host, _, _ := net.SplitHostPort(address)
	if (errors.As(err, &refused) || errors.As(err, &unknown)) && needsPrivate(host) {
		err = fmt.Errorf("%w: %w", upstream.ErrPrivate, err)
	}
	return nil, err
}

// needsPrivate reports whether the policy of base URLs admits a host with AllowPrivate alone.
func needsPrivate(host string) bool {
	url := "https://" + strings.TrimSuffix(net.JoinHostPort(host, ""), ":") + "/"
	return provider.CheckBaseURL(url, false) != nil && provider.CheckBaseURL(url, true) == nil
}

func (p *Policy) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: no %s connections", upstream.ErrNetwork, network)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q is not an address", upstream.ErrNetwork, address)
	}
	return p.Check(to)
}
