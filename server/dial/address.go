package dial

import "net/netip"

// reason returns why connections to an address are refused, or "". private reports
// that ALLOW_PRIVATE_UPSTREAMS lifts the refusal.
//
// The ranges are those of IANA's registries of special-purpose addresses (RFC 6890).
// With allowPrivate the rule is at least as strict as that of
// provider.CheckBaseURL for an address in a URL.
func reason(a netip.Addr) (why string, private bool) {
	a = a.WithZone("").Unmap()
	for i := range metadata {
		if metadata[i].Contains(a) {
			return "a metadata service", false
		}
	}
	if a.Is4() {
		return reason4(a)
	}
	return reason6(a)
}

func reason4(a netip.Addr) (why string, private bool) {
	for i := range special4 {
		if r := &special4[i]; r.prefix.Contains(a) {
			return r.why, r.private
		}
	}
	return "", false
}

func reason6(a netip.Addr) (why string, private bool) {
	if nat64.Contains(a) {
		b := a.As16()
		if why, _ := reason(netip.AddrFrom4([4]byte(b[12:]))); why != "" {
			return why + " behind NAT64", false
		}
		return "", false
	}
	for i := range special6 {
		if r := &special6[i]; r.prefix.Contains(a) {
			return r.why, r.private
		}
	}
	if !unicast6.Contains(a) {
		return "a reserved address", false
	}
	return "", false
}

// special is a range of addresses that are not public.
type special struct {
	prefix  netip.Prefix
	why     string
	private bool // ALLOW_PRIVATE_UPSTREAMS allows it
}

// metadata are the services from which a cloud's machine reads its credentials, at
// addresses that are not refused anyway or that private addresses include.
var metadata = [...]netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),     // AWS, Azure, Google and most others
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure's WireServer, a public address
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd20:ce::/32"),       // Google
	netip.MustParsePrefix("fd00:42::42/128"),    // Scaleway
}

var special4 = [...]special{
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address", false},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address", true},
	{netip.MustParsePrefix("100.64.0.0/10"), "an address of a carrier's network", true},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address", true},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address", true},
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved address", false},
	{netip.MustParsePrefix("192.0.2.0/24"), "an address for documentation", true},
	{netip.MustParsePrefix("192.88.99.0/24"), "a reserved address", false}, // 6to4 relays
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address", true},
	{netip.MustParsePrefix("198.18.0.0/15"), "an address for benchmarks", false},
	{netip.MustParsePrefix("198.51.100.0/24"), "an address for documentation", true},
	{netip.MustParsePrefix("203.0.113.0/24"), "an address for documentation", true},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address", false},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address", false}, // and broadcast
}

// nat64 embeds an IPv4 address in its last 32 bits (RFC 6052). A network without
// IPv4 reaches all of IPv4 through it.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// unicast6 is all of IPv6 that is in use beside special6.
var unicast6 = netip.MustParsePrefix("2000::/3")

var special6 = [...]special{
	{netip.MustParsePrefix("::1/128"), "a loopback address", true},
	{netip.MustParsePrefix("::/128"), "an unspecified address", false},
	{netip.MustParsePrefix("fc00::/7"), "a private address", true},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address", false},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address", false},
	{netip.MustParsePrefix("2001::/23"), "a reserved address", false}, // Teredo, benchmarks, ORCHID
	{netip.MustParsePrefix("2001:db8::/32"), "an address for documentation", false},
	{netip.MustParsePrefix("2002::/16"), "a 6to4 address", false},
	{netip.MustParsePrefix("3fff::/16"), "an address for documentation", false},
}
