package provider

import (
	"errors"
	"strings"
	"testing"
)

func TestParseProxy(t *testing.T) {
	tests := []struct {
		name, url     string
		private       bool
		address, auth string // "" for refused
	}{
		{"name_and_port", "http://proxy.example.com:3128/", false, "proxy.example.com:3128", ""},
		{"port_80_is_dropped_by_the_parser", "http://proxy.example.com/", false, "proxy.example.com:80", ""},
		{"user_and_password", "http://user:pass-word@proxy.example.com:3128/", false, "proxy.example.com:3128", "user:pass-word"},
		{"escaped_password", "http://user:p%40ss%3Aword@proxy.example.com:3128/", false, "proxy.example.com:3128", "user:p@ss:word"},
		{"user_alone", "http://long-user@proxy.example.com:3128/", false, "proxy.example.com:3128", "long-user:"},
		{"loopback_when_private", "http://127.0.0.1:3128/", true, "127.0.0.1:3128", ""},
		{"ipv6_when_private", "http://[::1]:3128/", true, "[::1]:3128", ""},
		{"loopback", "http://127.0.0.1:3128/", false, "", ""},
		{"ipv6", "http://[2606:4700::1]:3128/", false, "", ""},
		{"single_label", "http://proxy:3128/", false, "", ""},
		{"internal_name", "http://proxy.corp:3128/", false, "", ""},
		{"metadata", "http://metadata.google.internal/", true, "", ""},
		{"itself", "http://gateway.example.com/", false, "", ""},
		{"tls_to_the_proxy", "https://proxy.example.com/", true, "", ""},
		{"socks", "socks5://proxy.example.com:1080", true, "", ""},
		{"no_scheme", "proxy.example.com:3128", true, "", ""},
		{"path", "http://proxy.example.com:3128/a", false, "", ""},
		{"query", "http://proxy.example.com:3128/?a", false, "", ""},
		{"fragment", "http://proxy.example.com:3128/#a", false, "", ""},
		{"short_password", "http://u:p@proxy.example.com:3128/", false, "", ""},
		{"line_break_in_the_password", "http://user:pass%0d%0ax@proxy.example.com:3128/", false, "", ""},
		{"no_user", "http://:password@proxy.example.com:3128/", false, "", ""},
		{"not_an_address", "", true, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			address, auth, err := ParseProxy(tt.url, tt.private, "gateway.example.com")
			if address != tt.address || auth.Reveal() != tt.auth || errors.Is(err, ErrProxyURL) != (tt.address == "") {
				t.Errorf("got %q %q %v, want %q %q", address, auth.Reveal(), err, tt.address, tt.auth)
			}
			if err != nil && (strings.Contains(err.Error(), "example") || strings.Contains(err.Error(), "pass-")) {
				t.Errorf("the reason quotes the address: %v", err)
			}
		})
	}
}

// A host that is no upstream is no proxy either, however it is spelled.
func TestParseProxyOverEverySpellingOfAHost(t *testing.T) {
	n := 0
	for _, r := range spellings(t) {
		rest, ok := strings.CutPrefix(r.canonical, "https://")
		host, _, _ := strings.Cut(rest, "/")
		if !ok || r.public != "no" || strings.Contains(host, "@") || !strings.HasSuffix(host, "]") && strings.Contains(host, ":") {
			continue
		}
		n++
		if address, _, err := ParseProxy("http://"+rest, false); err == nil {
			t.Errorf("%q is taken as %s", r.typed, address)
		}
	}
	if n < 30 {
		t.Errorf("%d spellings, want at least 30", n)
	}
}
