package host

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"weir/pkg/provider"
	"weir/pkg/wire/weburl"
)

// urls are spellings of URLs, and what workerd makes of them.
const urls = "../../../pkg/wire/weburl/testdata/urls.jsonl"

// refusedByPolicy reports whether no caller accepts a canonical URL, whatever the
// settings: neither the whole of it as a base URL, nor its host alone.
func refusedByPolicy(canonical string) bool {
	scheme, rest, ok := strings.Cut(canonical, "://")
	if !ok || scheme != "https" && scheme != "http" {
		return true
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return provider.CheckBaseURL(canonical, true) != nil && provider.CheckBaseURL("http://"+rest+"/", true) != nil
}

// called returns the address that net/http dials for a URL, and the target and Host
// field that it sends. The call does not leave the process.
func called(t testing.TB, u *url.URL) (address, target, host string) {
	t.Helper()
	plain := *u
	plain.Scheme = "http" // the request is the same in TLS
	client, server := net.Pipe()
	defer client.Close()
	type head struct{ line, host string }
	heard := make(chan head, 1)
	go func() {
		defer server.Close()
		r := textproto.NewReader(bufio.NewReader(server)) // http.ReadRequest refuses some targets
		line, _ := r.ReadLine()
		fields, _ := r.ReadMIMEHeader()
		heard <- head{line, fields.Get("Host")}
	}()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(_ context.Context, _, to string) (net.Conn, error) {
		address = to
		return client, nil
	}}
	resp, err := transport.RoundTrip((&http.Request{Method: "GET", URL: &plain, Header: http.Header{}}).WithContext(t.Context()))
	if err == nil {
		resp.Body.Close()
	}
	client.Close()
	h := <-heard
	target, ok := strings.CutPrefix(strings.TrimSuffix(h.line, " HTTP/1.1"), "GET ")
	if !ok {
		t.Fatalf("%s: %+v", u, h)
	}
	return address, target, h.host
}

// checkHost fails if net/http calls another host than the one in a canonical URL, or
// sends another target.
func checkHost(t testing.TB, canonical string) {
	t.Helper()
	u, err := requestURL(canonical)
	if err != nil {
		return // refused
	}
	if again, ok := weburl.Canonical(canonical); !ok || again != canonical {
		t.Fatalf("%q is not canonical: %q %v", canonical, again, ok)
	}
	_, rest, _ := strings.Cut(canonical, "://")
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	host, target := rest[:end], rest[end:]
	address, sent, field := called(t, u)
	want := host
	if !strings.Contains(host[strings.LastIndexByte(host, ']')+1:], ":") {
		want += ":80"
	}
	if address != want || field != host || sent != target {
		t.Errorf("%s: dials %s, Host %s, target %s", canonical, address, field, sent)
	}
}

func TestNetHTTPCallsTheHostThatWasJudged(t *testing.T) {
	n, refused := 0, 0
	seen := map[string]bool{}
	golden(t, urls, func(row []json.RawMessage) {
		canonical, ok := weburl.Canonical(text(t, row[0]))
		if !ok || refusedByPolicy(canonical) || seen[canonical] {
			return
		}
		seen[canonical] = true
		if _, err := requestURL(canonical); err != nil {
			if refused++; !strings.Contains(canonical[len("https://"):], "//") {
				t.Errorf("%s: %v", canonical, err)
			}
			return
		}
		n++
		checkHost(t, canonical)
	})
	if n < 500 || refused > n/20 {
		t.Errorf("%d URLs, %d refused", n, refused)
	}
	t.Logf("%d URLs, %d refused", n, refused)
}

func TestRequestURLRefusesWhatCannotBeCalled(t *testing.T) {
	for _, raw := range []string{
		"", "a.example/", "ftp://a.example/", "https://u@a.example/", "https://u:p@a.example/", "https://@u@a.example/", "https://?a", "https://[::1/", "https://::1/",
		"https://a.example:x/", "https://[fe80::1%25eth0]/", "https://a.example//%zz", "https://a.example//a|b", "https://a<b.example/", "https:///",
	} {
		if u, err := requestURL(raw); err == nil {
			t.Errorf("%q is accepted as %+v", raw, u)
		}
	}
}

// An address that was put together is called as the edge platform calls it.
func TestRequestURLIsCanonical(t *testing.T) {
	n := 0
	check := func(raw, want string) {
		u, err := requestURL(raw)
		if err != nil {
			return
		}
		n++
		target := u.RequestURI()
		if want, _, _ = strings.Cut(want, "#"); u.Scheme+"://"+u.Host+target != want {
			t.Errorf("%q: got %s://%s%s, want %s", raw, u.Scheme, u.Host, target, want)
		}
	}
	golden(t, urls, func(row []json.RawMessage) {
		if raw := text(t, row[0]); !isNull(row[1]) {
			check(raw, text(t, row[1]))
		} else if u, err := requestURL(raw); err == nil {
			t.Errorf("%q is accepted as %+v", raw, u)
		}
	})
	if n < 1800 {
		t.Errorf("%d URLs", n)
	}
	for raw, want := range map[string]string{
		"https://scrape.example":              "https://scrape.example/",
		"https://a.example/v1/../x?a=/../b":   "https://a.example/x?a=/../b",
		"https://a.example/v1/%2e%2E/x":       "https://a.example/x",
		"https://a.example:443/v1":            "https://a.example/v1",
		"http://a.example:080/v1":             "http://a.example/v1",
		"https://a.example/models/a:b@c/d%2F": "https://a.example/models/a:b@c/d%2F",
	} {
		check(raw, want)
	}
	for _, raw := range []string{"https://api.example.com/v1/chat/completions", "http://127.0.0.1:8080/v1?a=b%20c&d=e"} {
		if n := testing.AllocsPerRun(100, func() { requestURL(raw) }); n > 1 {
			t.Errorf("%s: %v allocations", raw, n)
		}
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A parser that copies what it has read again and again allocates much, on any machine.
func TestLongURLsDoNotTakeQuadraticTime(t *testing.T) {
	for _, p := range [][2]string{
		{"https://a.example", "/a"}, {"https://a.example/", "%2e%2e/"}, {"https://", "@"}, {"https://", "a@"}, {"https:", "@/"}, {"x://", "@"}, {"x://a\\", "@"}, {"x:/", "@"}, {"@:@", "@"}, {"ftp:\\", "@"},
		{"https://", "%41"}, {"https://", "ü"}, {"https://", "ü."}, {"https://", "xn--a."}, {"https://", "1."}, {"https://", "a."}, {"x://", "%"}, {"x://", "a"}, {"x:", " "}, {"x:", "%"},
		{"https://a/?", "ü"}, {"https://a/#", "%"}, {"https://[", "1:"}, {"https:", "/"}, {"https:", "\\"}, {"https://a/", "\t"}, {"\t", "\n"}, {"https://a:", "0"}, {"https://a", "\u0323\u0301"}, {"https://a/", "\xff"},
	} {
		for _, size := range []int{16 << 10, 1 << 20} {
			raw := p[0] + strings.Repeat(p[1], size/len(p[1]))
			if n := allocated(func() { weburl.Canonical(raw) }); n > 32<<20 {
				t.Errorf("%q repeated to %d bytes: %d MB are allocated", p, size, n>>20)
			}
			if n := allocated(func() { requestPath(raw); requestURL(raw) }); n > 32<<20 {
				t.Errorf("%q repeated to %d bytes, as a target: %d MB are allocated", p, size, n>>20)
			}
		}
	}
}

func FuzzRequestURL(f *testing.F) {
	n := 0
	golden(f, urls, func(row []json.RawMessage) {
		if n++; n%7 == 0 {
			f.Add(text(f, row[0]))
		}
	})
	f.Fuzz(func(t *testing.T, raw string) {
		canonical, ok := weburl.Canonical(raw)
		if u, err := requestURL(raw); err == nil && (!ok || !strings.HasPrefix(canonical, u.Scheme+"://"+u.Host+u.RequestURI())) {
			t.Fatalf("%q is called at %+v, not at %q", raw, u, canonical)
		}
		if !ok || refusedByPolicy(canonical) {
			return
		}
		checkHost(t, canonical)
	})
}
