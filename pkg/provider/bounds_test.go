package provider

import (
	"strings"
	"testing"
)

func TestUsableIPv4(t *testing.T) {
	for host, want := range map[string]bool{
		"1.0.0.0": true, "0.1.2.3": false, "223.255.255.255": true, "224.0.0.1": false, "255.255.255.255": false,
		"127.0.0.1": true, "10.0.0.1": true, "192.168.0.1": true, "172.16.0.1": true,
		"169.254.169.254": false, "169.253.0.1": true, "168.254.0.1": true,
		"192.0.0.1": false, "192.0.1.1": true, "192.1.0.1": true, "191.0.0.1": true,
		"192.88.99.1": false, "192.88.98.1": true, "192.87.99.1": true, "191.88.99.1": true,
		"198.17.0.1": true, "198.18.0.1": false, "198.19.0.1": false, "198.20.0.1": true, "197.18.0.1": true,
		"100.100.100.200": false, "100.100.100.201": true, "100.100.101.200": true, "100.101.100.200": true, "101.100.100.200": true,
		"1.2.3": false, "1.2.3.4.5": false, "1.2.3.256": false, "1.2.3.255": true, "1.2.3.04": false, "1.2.3.-1": false, "1.2.3.x": false,
	} {
		if got := usableIPv4(strings.Split(host, ".")); got != want {
			t.Errorf("%s: got %v, want %v", host, got, want)
		}
	}
}

func TestUsableIPv6(t *testing.T) {
	for host, want := range map[string]bool{
		"::1": true, "::2": false, "::ffff:1.2.3.4": false, "1fff::1": false, "2000::1": true, "3ffe::1": true, "3fff::1": false, "4000::1": false,
		"fc00::1": true, "fd00::1": true, "fbff::1": false, "fe00::1": false, "fe80::1": false, "fd00:ec2::254": false, "fd00:ec2::253": true,
		"2001:1ff::1": false, "2001:200::1": true, "2001:db8::1": false, "2001:db9::1": true, "2001::1": false, "2002:a00::1": false, "2003::1": true,
		"2606:4700::6810:84e5": true, "2606:4700:::1": false, "2606:g::1": false, "2606:A::1": false, "2606:a::F": false, "": false,
	} {
		if got := usableIPv6(host); got != want {
			t.Errorf("%q: got %v, want %v", host, got, want)
		}
	}
}

func TestSplitHost(t *testing.T) {
	for authority, want := range map[string]string{
		"a.example": "a.example", "a.example:1": "a.example 1", "a.example:65535": "a.example 65535", "a.example:65536": "",
		"a.example:0": "", "a.example:": "", "a.example:099": "a.example 099", "a.example:000001": "", "a.example:9x": "", "a.example:/1": "", "a.example:1:": "",
		"[::1]": "::1 literal", "[::1]:9": "::1 9 literal", "[::1": "", "[]": "", ":80": "", "": "",
	} {
		host, port, literal, ok := splitHost(authority)
		got := strings.TrimSpace(host + " " + port)
		if literal {
			got += " literal"
		}
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: got %q %v, want %q", authority, got, ok, want)
		}
	}
}

func TestIsOwnHost(t *testing.T) {
	for _, tt := range []struct {
		own, host, port string
		want            bool
	}{
		{"weir.example", "weir.example", "", true},
		{"Weir.Example.", "weir.example", "8443", true},
		{"weir.example", "other.example", "", false},
		{"weir.example:8443", "weir.example", "8443", true},
		{"weir.example:8443", "weir.example", "9443", false},
		{"127.0.0.1:8787", "localhost", "8787", true},
		{"localhost:8787", "a.localhost", "8787", true},
		{"localhost:8787", "::1", "8787", true},
		{"localhost:8787", "127.9.9.9", "8787", true},
		{"localhost:8787", "127.9.9.9", "8788", false},
		{"localhost:8787", "127.example", "8787", false},
		{"localhost:8787", "10.0.0.1", "8787", false},
		{"10.0.0.1:8787", "localhost", "8787", false},
		{"", "", "", false},
		{"::1", "::1", "", true},
		{"::1", "::2", "", false},
		{"weir.example:x", "other.example", "", false},
	} {
		if got := isOwn(tt.own, tt.host, tt.port); got != tt.want {
			t.Errorf("%q is %q with port %q: got %v, want %v", tt.own, tt.host, tt.port, got, tt.want)
		}
	}
}

// The neighbours of each range of characters are refused.
func TestCharactersOfNames(t *testing.T) {
	const letters, digits = "az", "09"
	for _, tt := range []struct {
		name       string
		valid      func(string) bool
		good, evil string
	}{
		{"access key id", IsKeyID, letters + "AZ" + digits + "-._~", "`{@[/:!, +"},
		{"alias", func(s string) bool { return CheckAlias("x" + s) }, letters + digits + "-._", "`{/:AZ@!~ +"},
	} {
		for _, c := range tt.good {
			if !tt.valid(string(c)) {
				t.Errorf("%s: %q is refused", tt.name, c)
			}
		}
		for _, c := range tt.evil {
			if tt.valid(string(c)) {
				t.Errorf("%s: %q is accepted", tt.name, c)
			}
		}
	}
	if IsKeyID("") {
		t.Error("an empty access key id is accepted")
	}
	for alias, want := range map[string]bool{"": false, "a": true, ".a": false, "_a": false, "-a": false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false} {
		if CheckAlias(alias) != want {
			t.Errorf("alias %q: got %v", alias, !want)
		}
	}
}

func TestUnescapeDecodesOnce(t *testing.T) {
	for s, want := range map[string]string{
		"%2f%2F%41": "//A", "%252f": "%2f", "%": "%", "%4": "%4", "a%41": "aA", "%4g": "%4g", "%g4": "%g4",
		"%00%ff%FF": "\x00\xff\xff", "%/0": "%/0", "%:0": "%:0", "%@0": "%@0", "%`0": "%`0", "%G0": "%G0", "%9a": "\x9a", "%a9": "\xa9",
	} {
		if got := unescape(s); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
}

func TestNamesOfHeadersAndHosts(t *testing.T) {
	for name, want := range map[string]bool{
		"": false, "a": true, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false,
		"az09!#$%&'*+-.^_`|~": true, "{": false, "/": false, ":": false, "A": false, "a b": false,
	} {
		if got := SafeName(name); got != want {
			t.Errorf("header %q: got %v, want %v", name, got, want)
		}
	}
	for label, want := range map[string]bool{
		"": false, "a": true, "azAZ09-x": true, strings.Repeat("a", 63): true, strings.Repeat("a", 64): false,
		"-a": false, "a-": false, "a`": false, "a{": false, "a@": false, "a[": false, "a/": false, "a:": false, "a_b": false,
	} {
		if got := IsLabel(label); got != want {
			t.Errorf("label %q: got %v, want %v", label, got, want)
		}
	}
	for host, want := range map[string]bool{
		strings.Repeat("a.", 126) + "a":  true,  // 253 bytes
		strings.Repeat("a.", 126) + "ab": false, // 254 bytes
	} {
		if got := CheckBaseURL("https://"+host, false) == nil; got != want {
			t.Errorf("host of %d bytes: got %v, want %v", len(host), got, want)
		}
	}
}

func TestCharactersOfBaseURL(t *testing.T) {
	for path, want := range map[string]bool{
		"v1": true, "v~1": true, "v!1": true, "v 1": false, "v\x7f1": false, "v\x1f1": false, "v\\1": false, "v{1": false, "v}1": false,
		"v?1": false, "v#1": false, "v%2e%2e/x": true, "%2e%2e/x": false,
	} {
		if got := CheckBaseURL("https://api.example.com/"+path, false) == nil; got != want {
			t.Errorf("path %q: got %v, want %v", path, got, want)
		}
	}
}

func TestOrigin(t *testing.T) {
	for url, want := range map[string]string{
		"https://a.example/v1": "https://a.example", "https://a.example?x": "https://a.example", "https://a.example#x": "https://a.example",
		"https://a.example": "https://a.example", "a.example/v1": "a.example/v1", "://a/b": "://a", "https:///x": "https://",
	} {
		if got := Origin(url); got != want {
			t.Errorf("%q: got %q, want %q", url, got, want)
		}
	}
}

func TestLengthOfAddresses(t *testing.T) {
	base := "https://api.example.com/"
	user := "http://user:" + strings.Repeat("%41", 600) // decoded: 605 bytes
	for extra, want := range []bool{true, false} {
		if got := CheckBaseURL(base+strings.Repeat("a", maxURLBytes+extra-len(base)), false) == nil; got != want {
			t.Errorf("base URL of %d bytes: got %v", maxURLBytes+extra, got)
		}
		pad := maxURLBytes + extra - len(user) - len("@proxy.example.com:3128/")
		_, _, err := ParseProxy(user+strings.Repeat("a", pad)+"@proxy.example.com:3128", false)
		if got := err == nil; got != want {
			t.Errorf("proxy URL of %d bytes: %v", maxURLBytes+extra, err)
		}
	}
	for n, want := range map[int]bool{minProxyAuth - 1: false, minProxyAuth: true, maxProxyAuth: true, maxProxyAuth + 1: false} {
		if got := CheckProxyAuth("u:"+strings.Repeat("p", n-2)) == nil; got != want {
			t.Errorf("user and password of %d bytes: got %v", n, got)
		}
	}
}

func TestProxyURLThatCannotBeParsed(t *testing.T) {
	for _, url := range []string{`http:\\proxy.example.com:3128/`, "http://proxy.example.com:x/", "http://[::1:3128/", "http://"} {
		if address, _, err := ParseProxy(url, true); err == nil {
			t.Errorf("%s: accepted as %s", url, address)
		}
	}
}

func TestProxyURLWithEmptyUser(t *testing.T) {
	if _, _, err := ParseProxy("http://:password@proxy.example.com/", false); err == nil || !strings.Contains(err.Error(), "user:password") {
		t.Errorf("a password without a user: got %v", err)
	}
	for _, url := range []string{"http://@proxy.example.com/", "http://:@proxy.example.com/"} {
		if address, auth, err := ParseProxy(url, false); address != "proxy.example.com:80" || !auth.IsZero() || err != nil {
			t.Errorf("%s: got %q %q %v", url, address, auth.Reveal(), err)
		}
	}
}
