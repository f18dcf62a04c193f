package program

import (
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"testing"
)

func proxiesOf(t *testing.T, list, public string) proxies {
	t.Helper()
	p, err := parseProxies(list)
	if err != nil {
		t.Fatal(err)
	}
	p.public = public
	_, p.host, _ = strings.Cut(public, "://")
	return p
}

// from returns a request of a connection, with fields as name and value in turn.
func from(remote string, fields ...string) *http.Request {
	r := &http.Request{RemoteAddr: remote, Host: "weir.example", Header: http.Header{}}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

func TestClientAddressIsBelievedOfTrustedProxiesOnly(t *testing.T) {
	const f = "X-Forwarded-For"
	for _, tt := range []struct {
		trusted string
		r       *http.Request
		want    string
	}{
		{"", from("192.0.2.1:5"), "192.0.2.1"},
		{"", from("192.0.2.1:5", f, "198.51.100.9"), "192.0.2.1"},
		{"", from("127.0.0.1:5", f, "198.51.100.9"), "127.0.0.1"},
		{"", from("192.0.2.1:5", "Cf-Connecting-Ip", "198.51.100.9", "X-Real-Ip", "198.51.100.9"), "192.0.2.1"},
		{"", from("[2001:db8::1%eth0]:5"), "2001:db8::1"},
		{"", from("[::ffff:192.0.2.1]:5"), "192.0.2.1"},
		{"10.0.0.0/8", from("10.1.2.3:5"), "10.1.2.3"},
		{"10.0.0.0/8", from("192.0.2.1:5", f, "198.51.100.9"), "192.0.2.1"},
		{"10.0.0.0/8", from("10.1.2.3:5", f, "198.51.100.9"), "198.51.100.9"},
		{"10.0.0.0/8", from("[::ffff:10.1.2.3]:5", f, "198.51.100.9"), "198.51.100.9"},
		{"::ffff:10.0.0.0/104", from("10.1.2.3:5", f, "198.51.100.9"), "198.51.100.9"},
		// The client sent the first item itself.
		{"10.0.0.0/8", from("10.1.2.3:5", f, "127.0.0.1, 198.51.100.9"), "198.51.100.9"},
		{"10.0.0.0/8", from("10.1.2.3:5", f, "127.0.0.1", f, "198.51.100.9, 10.9.9.9"), "198.51.100.9"},
		{"10.0.0.0/8", from("10.1.2.3:5", f, "10.7.7.7, 10.8.8.8"), "10.7.7.7"},
		{"10.0.0.0/8", from("10.1.2.3:5", f, "198.51.100.9, unknown"), "10.1.2.3"},
		{"10.0.0.0/8", from("10.1.2.3:5", f, "198.51.100.9, , 10.8.8.8"), "10.8.8.8"},
		{"10.0.0.0/8", from("10.1.2.3:5", f, ""), "10.1.2.3"},
		{"10.1.2.3", from("10.1.2.3:5", f, "198.51.100.9:4711"), "198.51.100.9"},
		{"10.1.2.3", from("10.1.2.3:5", f, "[2001:db8::7]:4711"), "2001:db8::7"},
		{"10.1.2.3", from("10.1.2.3:5", f, "[2001:db8::7]"), "2001:db8::7"},
		{"loopback", from("127.0.0.9:5", f, "198.51.100.9"), "198.51.100.9"},
		{"loopback", from("10.1.2.3:5", f, "198.51.100.9"), "10.1.2.3"},
		{"private", from("172.18.0.2:5", f, "198.51.100.9"), "198.51.100.9"},
		{"private", from("[fd00::2]:5", f, "198.51.100.9"), "198.51.100.9"},
		{"private", from("172.32.0.2:5", f, "198.51.100.9"), "172.32.0.2"},
		{"", from("@", f, "198.51.100.9"), ""},
	} {
		p := proxiesOf(t, tt.trusted, "")
		if got := p.clientAddress(tt.r); got != tt.want {
			t.Errorf("trusted %q, from %s, %v: %q, want %q", tt.trusted, tt.r.RemoteAddr, tt.r.Header, got, tt.want)
		}
	}
	p := proxiesOf(t, "", "")
	p.unix = true
	if got := p.clientAddress(from("@", f, "127.0.0.1, 198.51.100.9")); got != "198.51.100.9" {
		t.Errorf("behind a unix socket: %q", got)
	}
}

func TestOriginIsTheOneTheBrowserSees(t *testing.T) {
	const proto, host = "X-Forwarded-Proto", "X-Forwarded-Host"
	over := func(r *http.Request, name string) *http.Request {
		r.TLS, r.Host = &tls.ConnectionState{}, name
		return r
	}
	for _, tt := range []struct {
		trusted, public string
		r               *http.Request
		want            string
	}{
		{"", "", from("192.0.2.1:5"), "http://weir.example"},
		{"", "", over(from("192.0.2.1:5"), "Weir.Example:443"), "https://weir.example"},
		{"", "", over(from("192.0.2.1:5"), "weir.example:8443"), "https://weir.example:8443"},
		{"", "", over(from("192.0.2.1:5"), "[::1]:443"), "https://[::1]"},
		{"", "", from("192.0.2.1:5", proto, "https", host, "evil.example"), "http://weir.example"},
		{"192.0.2.1", "", from("192.0.2.1:5", proto, "HTTPS", host, "a.example"), "https://a.example"},
		{"192.0.2.1", "", from("192.0.2.1:5", proto, "https, http", host, "evil.example, a.example:80"), "http://a.example"},
		{"192.0.2.1", "", from("192.0.2.1:5", proto, "javascript"), "http://weir.example"},
		{"", "https://weir.example", from("192.0.2.1:5"), "https://weir.example"},
		{"", "https://weir.example", from("192.0.2.1:5", host, "weir.example"), "https://weir.example"},
		{"", "https://other.example", from("192.0.2.1:5"), "http://weir.example"},
		{"192.0.2.1", "https://other.example", from("192.0.2.1:5", host, "Other.example"), "https://other.example"},
	} {
		p := proxiesOf(t, tt.trusted, tt.public)
		if got := p.origin(tt.r); got != tt.want {
			t.Errorf("trusted %q, public %q, from %s, %v: %q, want %q", tt.trusted, tt.public, tt.r.RemoteAddr, tt.r.Header, got, tt.want)
		}
	}
}

func TestProxyListIsChecked(t *testing.T) {
	for _, list := range []string{"10.0.0.0/33", "example.com", "10.0.0", "fe80::1%eth0", "loopback private", "*"} {
		if _, err := parseProxies(list); !errors.As(err, new(*usageError)) {
			t.Errorf("%q: %v", list, err)
		}
	}
	if p, err := parseProxies(" , "); err != nil || p.any() {
		t.Errorf("an empty list: %v, %v", p, err)
	}
}
