package dial

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/pkg/credentials/proxydial"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
	"weir/server/dial/dnstest"
)

// connectProxy is a CONNECT proxy on a loopback address. Every tunnel leads to
// target.
func connectProxy(t *testing.T, target string, handle func(conn net.Conn, r *http.Request) bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil || handle != nil && !handle(conn, r) {
					return
				}
				to, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer to.Close()
				io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
				go func() {
					io.Copy(to, conn)
					to.(*net.TCPConn).CloseWrite()
				}()
				io.Copy(conn, to)
			}()
		}
	}()
	return l.Addr().String()
}

// direct waits without a turn.
func direct(_ context.Context, wait func()) { wait() }

// sockets returns a dialer that trusts a test server.
func sockets(p *Policy, s *httptest.Server) *Sockets {
	d := NewSockets(p, direct)
	if s != nil {
		d.tls.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	}
	return d
}

// call makes a call through a proxy.
func call(d proxydial.Dialer, proxy, url string, timeout time.Duration) (*upstream.Response, error) {
	return upstream.Do(context.Background(), &proxydial.Proxy{Dialer: d, Address: proxy}, &upstream.Request{
		Method: "POST", URL: url, Header: httpmsg.Header{{Name: "content-type", Value: "text/plain"}},
		Body: stream.FromString("grant"), Timeout: timeout, MaxBody: 1 << 20,
	})
}

func TestCallThroughAProxy(t *testing.T) {
	large := strings.Repeat("x", 300<<10)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, r.Host+" "+string(body)+" "+large)
	}))
	defer s.Close()
	proxy := connectProxy(t, s.Listener.Addr().String(), nil)
	resp, err := call(sockets(&Policy{AllowPrivate: true}, s), proxy, "https://example.com/token", 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := stream.ReadAll(resp.Body, 1<<20); resp.Status != 200 || string(body) != "example.com grant "+large {
		t.Errorf("%d, %d bytes", resp.Status, len(body))
	}
}

func TestProxyOnAPrivateAddressNeedsTheSetting(t *testing.T) {
	var called atomic.Int32
	proxy := connectProxy(t, "127.0.0.1:1", func(net.Conn, *http.Request) bool { called.Add(1); return false })
	_, port, _ := net.SplitHostPort(proxy)
	dns, resolver := dnstest.New(t)
	dns.Set("proxy.example", "127.0.0.1")
	_, err := call(NewSockets(&Policy{Resolver: resolver}, direct), "proxy.example:"+port, "https://example.com/token", time.Minute)
	if !errors.Is(err, proxydial.ErrProxy) || !errors.Is(err, upstream.ErrNetwork) || called.Load() != 0 {
		t.Errorf("%v, %d calls", err, called.Load())
	}
	_, err = NewSockets(&Policy{Resolver: resolver}, direct).Dial(t.Context(), "proxy.example:"+port, time.Minute)
	var refused *Refused
	if !errors.As(err, &refused) || !refused.Private {
		t.Errorf("%v", err)
	}
	if _, err = call(NewSockets(&Policy{AllowPrivate: true, Resolver: resolver}, direct), "proxy.example:"+port, "https://example.com/token", time.Minute); err == nil || called.Load() != 1 {
		t.Errorf("%v, %d calls", err, called.Load())
	}
}

func TestFailuresOfSockets(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer plain.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	silent := func(conn net.Conn, _ *http.Request) bool { io.Copy(io.Discard, conn); return false }
	mute := func(conn net.Conn, _ *http.Request) bool {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		io.Copy(io.Discard, conn)
		return false
	}
	old := httptest.NewUnstartedServer(nil)
	old.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	old.StartTLS()
	defer old.Close()
	for _, tt := range []struct {
		name, proxy, url string
		timeout          time.Duration
		want             error
		proxys           bool // to blame
		text             string
	}{
		{"nothing listens", closed.Addr().String(), "https://example.com/", time.Minute, upstream.ErrNetwork, true, "reached"},
		{"unknown name", "unknown.invalid:80", "https://example.com/", time.Minute, upstream.ErrNetwork, true, "reached"},
		{"silent proxy", connectProxy(t, "", silent), "https://example.com/", 50 * time.Millisecond, upstream.ErrTimeout, true, "CONNECT"},
		{"silent server", connectProxy(t, "", mute), "https://example.com/", 50 * time.Millisecond, upstream.ErrTimeout, false, "TLS"},
		{"no TLS", connectProxy(t, plain.Listener.Addr().String(), nil), "https://example.com/", time.Minute, upstream.ErrNetwork, false, "no TLS"},
		{"old TLS", connectProxy(t, old.Listener.Addr().String(), nil), "https://example.com/", time.Minute, upstream.ErrNetwork, false, "no TLS"},
		{"another name", connectProxy(t, s.Listener.Addr().String(), nil), "https://another.example/", time.Minute, upstream.ErrNetwork, false, "no TLS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, resolver := dnstest.New(t)
			_, err := call(sockets(&Policy{AllowPrivate: true, Resolver: resolver}, s), tt.proxy, tt.url, tt.timeout)
			var f *proxydial.Failure
			if !errors.Is(err, tt.want) || errors.Is(err, proxydial.ErrProxy) != tt.proxys || !errors.As(err, &f) || f.Sent || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestHandshakeErrorIsDistinguished(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	conn, err := NewSockets(&Policy{AllowPrivate: true}, direct).Dial(t.Context(), s.Listener.Addr().String(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.StartTLS("example.com"); !errors.Is(err, proxydial.ErrHandshake) {
		t.Errorf("%v", err) // its authority is unknown
	}
}

// Each step of a connection that may block runs as a wait, without the turn.
func TestTurnIsFreeWhileASocketWaits(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	entered := make(chan struct{})
	var turn sync.Mutex
	outside := func(_ context.Context, wait func()) {
		turn.Unlock()
		defer turn.Lock()
		wait()
	}
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for range 2 {
			turn.Lock() // only while the client waits for a byte, or has not begun to
			conn.Write([]byte("x"))
			turn.Unlock()
		}
		turn.Lock()
		close(entered)
		turn.Unlock()
		io.Copy(io.Discard, conn)
	}()
	turn.Lock()
	conn, err := NewSockets(&Policy{AllowPrivate: true}, outside).Dial(t.Context(), l.Addr().String(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	for range 2 {
		if _, err := io.ReadFull(conn, b); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := conn.Write(bytes.Repeat([]byte("y"), 4<<20)); n != 4<<20 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Errorf("%v from the second Close", err)
	}
	if _, err := conn.Read(b); !errors.Is(err, upstream.ErrNetwork) {
		t.Errorf("%v from a closed connection", err)
	}
	if turn.TryLock() {
		t.Error("the goroutine has no turn after its calls")
	}
	turn.Unlock()
	<-entered
}

// A refresh that may have rotated a token must come to its end.
func TestConnectionOutlivesItsCaller(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer s.Close()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	conn, err := sockets(&Policy{AllowPrivate: true}, s).Dial(ctx, s.Listener.Addr().String(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.StartTLS("example.com"); err != nil {
		t.Error(err)
	}
}
