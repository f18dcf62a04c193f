package dial

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/pkg/endpoint/download"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
	"weir/server/dial/dnstest"
)

// errAllowed ends an attempt to connect that the policy allows: no packet is sent.
var errAllowed = errors.New("allowed")

// attempts notes the addresses that a dialer would connect to.
type attempts struct {
	mu   sync.Mutex
	list []string
}

func (a *attempts) add(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, address)
}

func (a *attempts) sorted() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.list)
	return a.list
}

// judged returns the dialer of a policy that stops where it would connect.
func judged(p *Policy) (*net.Dialer, *attempts) {
	d, a := p.dialer(), &attempts{}
	control := d.ControlContext
	d.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
		if err := control(ctx, network, address, c); err != nil {
			return err
		}
		a.add(address)
		return errAllowed
	}
	return d, a
}

// unreachable starts an HTTP server on a loopback address, which fails the test if it
// is called, and returns its port.
func unreachable(t *testing.T) (port string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a private server was called") }))
	t.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(s.Listener.Addr().String())
	return port
}

func TestNamesThatResolveToForbiddenAddressesAreNotDialed(t *testing.T) {
	dns, resolver := dnstest.New(t)
	for line := range strings.Lines(strings.TrimSpace(addresses)) {
		text, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		a := netip.MustParseAddr(text)
		if a.Zone() != "" {
			continue // not in DNS
		}
		dns.Set("upstream.example", text)
		for _, allow := range []bool{false, true} {
			d, tried := judged(&Policy{AllowPrivate: allow, Resolver: resolver})
			_, err := d.DialContext(t.Context(), "tcp", "upstream.example:443")
			allowed := want == "yes" || want == "private" && allow
			var refused *Refused
			switch {
			case allowed && (!errors.Is(err, errAllowed) || len(tried.list) != 1):
				t.Errorf("%s, private %v: %v", text, allow, err)
			case !allowed && (!errors.As(err, &refused) || !errors.Is(err, upstream.ErrNetwork) || len(tried.list) != 0):
				t.Errorf("%s, private %v: %v, tried %v", text, allow, err, tried.list)
			}
		}
	}
}

func TestNameThatMovesToAPrivateAddressIsRefused(t *testing.T) {
	dns, resolver := dnstest.New(t)
	dns.Set("rebinding.example", "8.8.8.8", "127.0.0.1", "169.254.169.254", "::1")
	d, tried := judged(&Policy{Resolver: resolver})
	for i, want := range []error{errAllowed, upstream.ErrNetwork, upstream.ErrNetwork, upstream.ErrNetwork} {
		if _, err := d.DialContext(t.Context(), "tcp", "rebinding.example:80"); !errors.Is(err, want) {
			t.Errorf("look-up %d: %v", i+1, err)
		}
	}
	if got := tried.sorted(); !slices.Equal(got, []string{"8.8.8.8:80"}) {
		t.Errorf("dialed %v", got)
	}
	if n := dns.Lookups("rebinding.example"); n != 4 {
		t.Errorf("%d look-ups for 4 connections: the address judged is not the one dialed", n)
	}
}

// The server closes the first connection, so that the second call looks the name up again.
func TestTransportJudgesEachConnection(t *testing.T) {
	served := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served++
		w.Header().Set("connection", "close")
	}))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	dns, resolver := dnstest.New(t)
	dns.Set("rebinding.example", "127.0.0.1", "169.254.169.254")
	tr := Transport(&Policy{AllowPrivate: true, Resolver: resolver})
	defer tr.CloseIdleConnections()
	get := func() error {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://rebinding.example:"+port+"/", nil)
		resp, err := tr.RoundTrip(r)
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return err
	}
	if err := get(); err != nil || served != 1 {
		t.Fatalf("%v, %d calls", err, served)
	}
	var refused *Refused
	if err := get(); !errors.As(err, &refused) || refused.Address.Addr().String() != "169.254.169.254" || served != 1 {
		t.Errorf("%v, %d calls", err, served)
	}
}

func TestTransportRefusesPrivateAddressesWithoutTheSetting(t *testing.T) {
	port := unreachable(t)
	dns, resolver := dnstest.New(t)
	dns.Set("private.example", "127.0.0.1 ::1")
	tr := Transport(&Policy{Resolver: resolver})
	for _, host := range []string{"private.example", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost"} {
		for _, scheme := range []string{"http", "https"} {
			r, _ := http.NewRequestWithContext(t.Context(), "GET", scheme+"://"+host+":"+port+"/", nil)
			_, err := tr.RoundTrip(r)
			var refused *Refused
			if !errors.As(err, &refused) || !refused.Private || !strings.Contains(err.Error(), "ALLOW_PRIVATE_UPSTREAMS") {
				t.Errorf("%s://%s: %v", scheme, host, err)
			}
		}
	}
}

// A base URL that only ALLOW_PRIVATE_UPSTREAMS admits was admitted before: what its error says
// follows from the URL alone, so that it tells nothing of what the network resolves.
func TestPrivateURLIsToldByTheURLAlone(t *testing.T) {
	dns, resolver := dnstest.New(t)
	for _, name := range []string{"private.example", "private.lan", "single"} {
		dns.Set(name, "127.0.0.1")
	}
	for _, tt := range []struct {
		host           string
		setting        bool
		private, named bool // the errors of package upstream
	}{
		{"127.0.0.1", false, true, true},
		{"[::1]", false, true, true},
		{"localhost", false, true, true},
		{"private.lan", false, true, true},
		{"unknown.lan", false, true, false},
		{"single", false, true, true},
		{"private.example", false, false, true},
		{"169.254.169.254", false, false, true},
		{"unknown.lan", true, false, false},
	} {
		tr := Transport(&Policy{AllowPrivate: tt.setting, Resolver: resolver})
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+tt.host+":1/", nil)
		_, err := tr.RoundTrip(r)
		if err == nil || errors.Is(err, upstream.ErrPrivate) != tt.private || errors.Is(err, upstream.ErrName) != tt.named {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// The dialer tries both sides of the race between IPv4 and IPv6, and every address in turn.
func TestOfSeveralAddressesOnlyPublicOnesAreDialed(t *testing.T) {
	dns, resolver := dnstest.New(t)
	for _, tt := range []struct {
		addresses string
		want      []string
	}{
		{"10.0.0.1 8.8.8.8 127.0.0.1 1.1.1.1", []string{"1.1.1.1:443", "8.8.8.8:443"}},
		{"::1 8.8.8.8", []string{"8.8.8.8:443"}},
		{"127.0.0.1 2606:4700:4700::1111", []string{"[2606:4700:4700::1111]:443"}},
		{"fe80::1 fd00::1 10.0.0.1 169.254.169.254", nil},
	} {
		dns.Set("mixed.example", tt.addresses)
		d, tried := judged(&Policy{Resolver: resolver})
		d.FallbackDelay = time.Nanosecond // both sides at once
		_, err := d.DialContext(t.Context(), "tcp", "mixed.example:443")
		if got := tried.sorted(); !slices.Equal(got, tt.want) || err == nil {
			t.Errorf("%v: dialed %v, want %v (%v)", tt.addresses, got, tt.want, err)
		}
	}
}

// Each side of the race is judged, also if the other one is slow: IPv6 does not answer
// before IPv4 was tried.
func TestSlowSideOfTheRaceDoesNotOpenTheOther(t *testing.T) {
	dns, resolver := dnstest.New(t)
	for _, tt := range []struct {
		addresses string
		private   bool
		want      []string
	}{
		{"2606:4700:4700::1111 8.8.8.8", false, []string{"8.8.8.8:443", "[2606:4700:4700::1111]:443"}},
		{"2606:4700:4700::1111 10.0.0.1 8.8.8.8", false, []string{"8.8.8.8:443", "[2606:4700:4700::1111]:443"}},
		{"2606:4700:4700::1111 127.0.0.1 169.254.169.254", false, []string{"[2606:4700:4700::1111]:443"}},
		{"2606:4700:4700::1111 169.254.169.254", true, []string{"[2606:4700:4700::1111]:443"}},
	} {
		dns.Set("slow.example", tt.addresses)
		d, tried := judged(&Policy{AllowPrivate: tt.private, Resolver: resolver})
		d.FallbackDelay = time.Millisecond
		other, once := make(chan struct{}), sync.Once{}
		control := d.ControlContext
		d.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
			if network == "tcp6" {
				<-other
			} else {
				defer once.Do(func() { close(other) })
			}
			return control(ctx, network, address, c)
		}
		if _, err := d.DialContext(t.Context(), "tcp", "slow.example:443"); err == nil {
			t.Fatal("a connection was opened")
		}
		if got := tried.sorted(); !slices.Equal(got, tt.want) {
			t.Errorf("%v: dialed %v, want %v", tt.addresses, got, tt.want)
		}
	}
}

func TestServerNeverCallsItself(t *testing.T) {
	const port = 8787
	at := func(a string) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(a), port) }
	for _, tt := range []struct {
		own, to string
		port    uint16
		refused bool
	}{
		{"127.0.0.1", "127.0.0.1", port, true},
		{"127.0.0.1", "127.9.9.9", port, true},
		{"127.0.0.1", "::1", port, true},
		{"127.0.0.1", "::ffff:127.0.0.1", port, true},
		{"127.0.0.1", "127.0.0.1", port + 1, false},
		{"0.0.0.0", "127.0.0.1", port, true},
		{"::", "127.0.0.1", port, true},
		{"::", "::1", port, true},
		{"8.8.8.8", "8.8.8.8", port, true},
		{"8.8.8.8", "8.8.4.4", port, false},
		{"0.0.0.0", "8.8.8.8", port, false},
		{"10.1.2.3", "10.1.2.3", port, true},
		{"10.1.2.3", "127.0.0.1", port, false},
	} {
		p := &Policy{AllowPrivate: true, Own: []netip.AddrPort{at(tt.own)}}
		err := p.Check(netip.AddrPortFrom(netip.MustParseAddr(tt.to), tt.port))
		if (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), "the gateway itself") {
			t.Errorf("listening at %s, %s: %v", tt.own, tt.to, err)
		}
	}
	// An unspecified address is every address of this host.
	local, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	p := &Policy{AllowPrivate: true, Own: []netip.AddrPort{at("0.0.0.0")}}
	for _, i := range local {
		n, ok := i.(*net.IPNet)
		if !ok {
			continue
		}
		a, _ := netip.AddrFromSlice(n.IP)
		if err := p.Check(netip.AddrPortFrom(a.Unmap(), port)); err == nil {
			t.Errorf("%s may be called", a)
		}
	}
}

func TestInvalidAddressesAreRefused(t *testing.T) {
	p := &Policy{AllowPrivate: true}
	for _, tt := range []struct{ network, address string }{
		{"tcp4", "localhost:80"}, {"tcp4", ""}, {"tcp6", "::1"}, {"udp4", "8.8.8.8:53"}, {"unix", "/run/docker.sock"}, {"tcp", "8.8.8.8:80"},
	} {
		if err := p.control(t.Context(), tt.network, tt.address, nil); !errors.Is(err, upstream.ErrNetwork) {
			t.Errorf("%s %q: %v", tt.network, tt.address, err)
		}
	}
	if err := p.Check(netip.AddrPort{}); err == nil {
		t.Error("no address is accepted")
	}
}

// doer calls a transport, in the calling goroutine.
type doer struct{ tr http.RoundTripper }

func (d doer) Start(ctx context.Context, req *upstream.Request) upstream.Pending {
	return pending(func() (*upstream.Response, error) {
		r, err := http.NewRequestWithContext(ctx, req.Method, req.URL, nil)
		if err != nil {
			return nil, err
		}
		resp, err := d.tr.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		h := httpmsg.Header{}
		for k, v := range resp.Header {
			h = append(h, httpmsg.Field{Name: strings.ToLower(k), Value: v[0]})
		}
		return &upstream.Response{Status: resp.StatusCode, Header: h, Body: stream.FromBytes(body)}, err
	})
}

type pending func() (*upstream.Response, error)

func (p pending) Wait() (*upstream.Response, error) { return p() }

// The URL policy sees names only; the redirect's name has a private address.
func TestTargetOfARedirectIsJudged(t *testing.T) {
	port := unreachable(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("location", "http://inside.example:"+port+"/secret")
		w.WriteHeader(http.StatusFound)
	}))
	defer s.Close()
	_, first, _ := net.SplitHostPort(s.Listener.Addr().String())
	dns, resolver := dnstest.New(t)
	dns.Set("outside.example", "127.0.0.1")
	dns.Set("inside.example", "192.0.0.8 fe80::1")
	tr := Transport(&Policy{AllowPrivate: true, Resolver: resolver})
	defer tr.CloseIdleConnections()
	d := &download.Downloads{Do: doer{tr}, AllowPrivate: true}
	_, err := d.Get(t.Context(), &httpmsg.Request{Origin: "http://gateway.example"}, "http://outside.example:"+first+"/", nil, 1000)
	var refused *Refused
	if !errors.As(err, &refused) || dns.Lookups("inside.example") != 1 {
		t.Errorf("%v, %d look-ups", err, dns.Lookups("inside.example"))
	}
}

// http.Client follows redirects, the transport alone does not.
func TestTransportFollowsNoRedirect(t *testing.T) {
	s := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect))
	defer s.Close()
	tr := Transport(&Policy{AllowPrivate: true})
	defer tr.CloseIdleConnections()
	r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 307 || resp.Header.Get("location") != "/elsewhere" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

func TestTransportIgnoresProxiesOfTheEnvironment(t *testing.T) {
	port := unreachable(t)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:"+port)
	}
	_, resolver := dnstest.New(t)
	tr := Transport(&Policy{AllowPrivate: true, Resolver: resolver})
	if tr.Proxy != nil {
		t.Error("a proxy is used")
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://unknown.example/", nil)
	var dnsError *net.DNSError
	if _, err := tr.RoundTrip(r); !errors.As(err, &dnsError) {
		t.Errorf("%v", err)
	}
}

func TestTransportSpeaksHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	tr := Transport(&Policy{AllowPrivate: true})
	defer tr.CloseIdleConnections()
	r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
	if _, err := tr.RoundTrip(r); err == nil {
		t.Fatal("a certificate of an unknown authority is accepted")
	}
	tr = Transport(&Policy{AllowPrivate: true})
	defer tr.CloseIdleConnections()
	tr.TLSClientConfig.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	resp, err := tr.RoundTrip(r.Clone(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "HTTP/2.0" {
		t.Errorf("%s", body)
	}
}

func TestLargeHeadOfAnAnswerIsAnError(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-large", strings.Repeat("a", 200<<10))
	}))
	defer s.Close()
	tr := Transport(&Policy{AllowPrivate: true})
	defer tr.CloseIdleConnections()
	r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
	if resp, err := tr.RoundTrip(r); err == nil {
		resp.Body.Close()
		t.Error("a head of 200 KiB is accepted")
	}
}
