package dial

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"weir/pkg/provider"
	"weir/pkg/wire/upstream"
)

// addresses are refused ("no"), allowed with ALLOW_PRIVATE_UPSTREAMS ("private") or
// public ("yes").
const addresses = `
1.1.1.1 yes
8.8.8.8 yes
9.255.255.255 yes
11.0.0.0 yes
100.63.255.255 yes
100.128.0.0 yes
126.255.255.255 yes
128.0.0.0 yes
169.253.255.255 yes
169.255.0.0 yes
172.15.255.255 yes
172.32.0.0 yes
192.0.1.0 yes
192.0.3.0 yes
192.167.255.255 yes
192.169.0.0 yes
198.17.255.255 yes
198.20.0.0 yes
223.255.255.255 yes
2001:200::1 yes
2001:4860:4860::8888 yes
2606:4700:4700::1111 yes
2a00:1450:4001:800::200e yes
64:ff9b::808:808 yes
::ffff:8.8.8.8 yes
10.0.0.0 private
10.255.255.255 private
100.64.0.0 private
100.127.255.255 private
127.0.0.1 private
127.255.255.255 private
172.16.0.0 private
172.31.255.255 private
192.168.0.0 private
192.168.255.255 private
192.0.2.1 private
198.51.100.1 private
203.0.113.255 private
::1 private
fc00::1 private
fd12:3456::1 private
fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff private
::ffff:10.0.0.1 private
::ffff:127.0.0.1 private
0.0.0.0 no
0.255.255.255 no
100.100.100.200 no
168.63.129.16 no
169.254.0.0 no
169.254.169.254 no
169.254.170.2 no
169.254.255.255 no
192.0.0.1 no
192.0.0.192 no
192.88.99.1 no
198.18.0.0 no
198.19.255.255 no
224.0.0.1 no
239.255.255.255 no
240.0.0.1 no
255.255.255.255 no
:: no
::2 no
::7f00:1 no
::ffff:169.254.169.254 no
::ffff:0.0.0.0 no
::ffff:0:127.0.0.1 no
64:ff9b::7f00:1 no
64:ff9b::a00:1 no
64:ff9b::a9fe:a9fe no
64:ff9b:1::7f00:1 no
64:ff9b::1:808:808 no
100::1 no
2001::1 no
2001:0:4136:e378:8000:63bf:3fff:fdd2 no
2001:2::1 no
2001:10::1 no
2001:20::1 no
2001:1ff:ffff::1 no
2001:db8::1 no
2002:7f00:1:: no
2002:808:808::1 no
3fff::1 no
3fff:fff:ffff::1 no
3fff:1000::1 no
4000::1 no
5f00::1 no
fd00:ec2::254 no
fd20:ce::254 no
fd00:42::42 no
fe80::1 no
fe80::1%eth0 no
febf::1 no
fec0::1 no
ff02::1 no
ff0e::1 no
`

func TestAddressesAreJudged(t *testing.T) {
	for line := range strings.Lines(strings.TrimSpace(addresses)) {
		text, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		to := netip.AddrPortFrom(netip.MustParseAddr(text), 443)
		public, private := (&Policy{}).Check(to), (&Policy{AllowPrivate: true}).Check(to)
		got := "no"
		switch {
		case public == nil && private == nil:
			got = "yes"
		case private == nil:
			got = "private"
		case public == nil:
			got = "public only"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
		for _, err := range []error{public, private} {
			var refused *Refused
			if err != nil && (!errors.Is(err, upstream.ErrNetwork) || !errors.As(err, &refused) || refused.Address != to) {
				t.Errorf("%s: %#v", text, err)
			}
		}
		if names := strings.Contains(errorText(public), "ALLOW_PRIVATE_UPSTREAMS"); names != (want == "private") {
			t.Errorf("%s: %v", text, public)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The rule for addresses in URLs, with private ones allowed, is never looser than the
// one for addresses of names. NAT64 is an exception: an address in a URL is not
// called through it, a name may have no other.
func TestPolicyIsAsStrictAsTheOneForURLs(t *testing.T) {
	allow := &Policy{AllowPrivate: true}
	check := func(a netip.Addr) {
		host := a.String()
		if a.Is6() {
			host = "[" + host + "]"
		}
		inURL := provider.CheckBaseURL("http://"+host+"/", true)
		if err := allow.Check(netip.AddrPortFrom(a, 80)); err == nil && inURL != nil && !nat64.Contains(a) {
			t.Errorf("%s is allowed, but not in a URL: %v", a, inURL)
		}
		if err := (&Policy{}).Check(netip.AddrPortFrom(a, 80)); err == nil && allow.Check(netip.AddrPortFrom(a, 80)) != nil {
			t.Errorf("%s is allowed only without private addresses", a)
		}
	}
	// Addresses of every IPv4 network of 16 bits, and of IPv6 networks of 32 bits.
	for i := range 1 << 16 {
		for _, last := range []byte{0, 200} {
			check(netip.AddrFrom4([4]byte{byte(i >> 8), byte(i), last, last}))
		}
	}
	first := []int{0x64, 0x100, 0x2001, 0x2002, 0x2620, 0x3ffe, 0x3fff, 0xfc00, 0xfd00, 0xfd20, 0xfe80, 0xfec0, 0xff02, 0xffff}
	for i := 0; i < 1<<16; i += 64 {
		first = append(first, i)
	}
	for _, i := range first {
		for _, second := range [][2]byte{{0, 0}, {0, 1}, {1, 0xff}, {2, 0}, {0x0d, 0xb8}, {0x0f, 0xff}, {0x10, 0}, {0xff, 0x9b}, {0x0e, 0xc2}, {0, 0xce}, {0xff, 0xff}} {
			b := [16]byte{byte(i >> 8), byte(i), second[0], second[1]}
			check(netip.AddrFrom16(b))
			b[14], b[15] = 2, 0x54
			check(netip.AddrFrom16(b))
		}
	}
}
