package provider

import "testing"

func TestOwnPortIsRefusedInEverySpelling(t *testing.T) {
	for _, tt := range []struct {
		target, own string
		refused     bool
	}{
		{"http://localhost:8787/", "127.0.0.1:8787", true},
		{"http://127.0.0.1:8787/", "localhost:8787", true},
		{"http://127.9.9.9:8787/v1", "127.0.0.1:8787", true},
		{"http://[::1]:8787/", "127.0.0.1:8787", true},
		{"http://127.0.0.1:8787/", "[::1]:8787", true},
		{"http://a.localhost:8787/", "127.0.0.1:8787", true},
		{"http://127.0.0.1:8787/", "weir.localhost:8787", true},
		{"http://127.0.0.1/", "localhost", true},
		{"http://weir.lan:8787/", "weir.lan:8787", true},
		{"http://weir.lan:8787/", "weir.lan", true},
		{"http://localhost:11434/v1", "127.0.0.1:8787", false},
		{"http://localhost:11434/v1", "127.0.0.1", false},
		{"http://192.168.1.2:8787/", "127.0.0.1:8787", false},
		{"http://127.0.0.1.example.com:8787/", "127.0.0.1:8787", false},
		{"http://localhost:8787/", "weir.example.com", false},
	} {
		if err := CheckBaseURL(tt.target, true, tt.own); (err != nil) != tt.refused {
			t.Errorf("%s of %s: got %v", tt.target, tt.own, err)
		}
	}
	if _, _, err := ParseProxy("http://localhost:8787", true, "127.0.0.1:8787"); err == nil {
		t.Error("the gateway is taken for a proxy")
	}
}

func TestPlatformPathsAreRefused(t *testing.T) {
	for _, path := range []string{
		"/cdn-cgi", "/cdn-cgi/", "/cdn-cgi/explorer/api/storage", "/CDN-CGI/x", "//cdn-cgi/x", "/%63dn-cgi/x", "/cdn%2dcgi/x", "/cdn-cgi%2fx",
		"/%2563dn-cgi/x", "/cdn-cgi?x", "/cdn-cgi;a/x",
	} {
		if !PlatformPath(path) {
			t.Errorf("%s is let through", path)
		}
	}
	for _, path := range []string{"", "/", "/v1", "/cdn-cgis/x", "/v1/cdn-cgi/", "/?/cdn-cgi/"} {
		if PlatformPath(path) {
			t.Errorf("%s is refused", path)
		}
	}
	if CheckBaseURL("https://example.com/cdn-cgi/explorer", false) == nil {
		t.Error("a base address of the platform's pages is taken")
	}
}

func TestProxyPorts(t *testing.T) {
	for port, ok := range map[string]bool{"22": false, "25": false, "1023": false, "80": true, "443": true, "1024": true, "3128": true, "65535": true} {
		if _, _, err := ParseProxy("http://proxy.example.com:"+port, false); (err == nil) != ok {
			t.Errorf("port %s: %v", port, err)
		}
		if _, _, err := ParseProxy("http://proxy.example.com:"+port, true); err != nil {
			t.Errorf("port %s where private addresses are allowed: %v", port, err)
		}
	}
}
