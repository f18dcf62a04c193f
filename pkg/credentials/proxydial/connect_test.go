package proxydial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// platform is a fake of the sockets: what the proxy says, then what comes
// through the tunnel.
type platform struct {
	dialErr, tlsErr, readErr error
	lateErr                  error  // of TLS, when the answer is read
	proxy, server            string // answers
	oneByOne                 bool

	address string
	timeout time.Duration
	tlsHost string
	sent    bytes.Buffer // to the proxy
	inside  bytes.Buffer // through the tunnel
	closed  int
}

type side struct {
	io.Reader
	w *bytes.Buffer
	p *platform
}

func (s *side) Write(b []byte) (int, error) { return s.w.Write(b) }
func (s *side) Close() error                { s.p.closed++; return nil }

func (s *side) StartTLS(host string) (io.ReadWriteCloser, error) {
	s.p.tlsHost = host
	if s.p.tlsErr != nil {
		return nil, s.p.tlsErr
	}
	r := s.p.reader(s.p.server)
	if s.p.lateErr != nil {
		r = iotest.ErrReader(s.p.lateErr)
	}
	return &side{r, &s.p.inside, s.p}, nil
}

func (p *platform) reader(text string) io.Reader {
	var r io.Reader = strings.NewReader(text)
	if p.readErr != nil {
		r = io.MultiReader(r, iotest.ErrReader(p.readErr))
	}
	if p.oneByOne {
		r = iotest.OneByteReader(r)
	}
	return r
}

func (p *platform) Dial(_ context.Context, address string, timeout time.Duration) (Conn, error) {
	p.address, p.timeout = address, timeout
	if p.dialErr != nil {
		return nil, p.dialErr
	}
	return &side{p.reader(p.proxy), &p.sent, p}, nil
}

const established = "HTTP/1.1 200 Connection established\r\nproxy-agent: x\r\ncontent-length: 10\r\n\r\n"

func call(p *platform, auth string) (*upstream.Response, error) {
	proxy := &Proxy{Dialer: p, Address: "proxy.test:3128", Auth: secret.New(auth)}
	return upstream.Do(context.Background(), proxy, &upstream.Request{
		Method: "POST", URL: "https://ID.test/token?x=1",
		Header:  httpmsg.Header{{Name: "content-type", Value: "application/x-www-form-urlencoded"}, {Name: "host", Value: "evil.test"}, {Name: "content-length", Value: "1"}},
		Body:    stream.FromString("a=1&b=2"),
		Timeout: 10 * time.Second, MaxBody: 1000,
	})
}

func TestCallThroughProxy(t *testing.T) {
	for _, oneByOne := range []bool{false, true} {
		p := &platform{proxy: established, oneByOne: oneByOne, server: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"}
		resp, err := call(p, "user:päss")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := stream.ReadAll(resp.Body, 100)
		if resp.Status != 200 || resp.Header.Get("content-type") != "application/json" || string(body) != "{}" {
			t.Errorf("%+v %s", resp, body)
		}
		if got, want := p.sent.String(), "CONNECT id.test:443 HTTP/1.1\r\nhost: id.test:443\r\nproxy-authorization: Basic dXNlcjpww6Rzcw==\r\n\r\n"; got != want {
			t.Errorf("to the proxy:\n%q\nwant\n%q", got, want)
		}
		if got, want := p.inside.String(), "POST /token?x=1 HTTP/1.1\r\nhost: id.test\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 7\r\naccept-encoding: identity\r\nconnection: close\r\n\r\na=1&b=2"; got != want {
			t.Errorf("through the tunnel:\n%q\nwant\n%q", got, want)
		}
		if p.address != "proxy.test:3128" || p.timeout != 10*time.Second || p.tlsHost != "id.test" || p.closed == 0 {
			t.Errorf("%+v", p)
		}
	}
}

func TestProxyFailuresAreDistinguished(t *testing.T) {
	timeout := fmt.Errorf("socket: %w", upstream.ErrTimeout)
	tests := []struct {
		name  string
		p     platform
		auth  string
		proxy bool // the proxy is to blame
		sent  bool // the request may have arrived
		late  bool // it was written to a connection that never had TLS
		want  error
		text  string
	}{
		{name: "unreachable", p: platform{dialErr: errors.New("connect 10.0.0.1 refused")}, proxy: true, want: upstream.ErrNetwork, text: "reached"},
		{name: "dial_timeout", p: platform{dialErr: timeout}, proxy: true, want: upstream.ErrTimeout},
		{name: "says_nothing", p: platform{readErr: timeout}, proxy: true, want: upstream.ErrTimeout},
		{name: "closes", proxy: true, want: upstream.ErrNetwork, text: "closed the connection"},
		{name: "no_http", p: platform{proxy: "SSH-2.0-x\r\n"}, proxy: true, want: upstream.ErrNetwork, text: "not HTTP"},
		{name: "cut_head", p: platform{proxy: "HTTP/1.1 200 OK\r\n"}, proxy: true, want: upstream.ErrNetwork},
		{name: "wants_a_password", p: platform{proxy: "HTTP/1.1 407 P\r\n\r\n"}, proxy: true, want: upstream.ErrNetwork, text: "asks for user"},
		{name: "wrong_password", p: platform{proxy: "HTTP/1.1 407 P\r\n\r\n"}, auth: "u:p", proxy: true, want: upstream.ErrNetwork, text: "refuses user"},
		{name: "refuses", p: platform{proxy: "HTTP/1.0 403 Forbidden\r\n\r\n<html>"}, proxy: true, want: upstream.ErrNetwork, text: "403"},
		{name: "redirects", p: platform{proxy: "HTTP/1.1 302 F\r\nlocation: https://evil.test\r\n\r\n"}, proxy: true, want: upstream.ErrNetwork, text: "302"},
		{name: "speaks_first", p: platform{proxy: established + "x"}, proxy: true, want: upstream.ErrNetwork, text: "before the tunnel"},
		{name: "wrong_certificate", p: platform{proxy: established, tlsErr: errors.New("cert of 10.0.0.1")}, want: upstream.ErrNetwork, text: "TLS"},
		{name: "wrong_certificate_told_late", p: platform{proxy: established, lateErr: fmt.Errorf("read: %w", ErrHandshake)}, late: true, want: upstream.ErrNetwork, text: "no TLS"},
		{name: "tunnel_closes", p: platform{proxy: established}, sent: true, want: upstream.ErrNetwork, text: "cut"},
		{name: "tunnel_stalls", p: platform{proxy: established, server: "HTTP/1.1 200 OK\r\n"}, sent: true, want: upstream.ErrNetwork},
		{name: "answer_over_the_limit", p: platform{proxy: established, server: "HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n"}, sent: true, want: stream.ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, err := call(&tt.p, tt.auth)
			if resp != nil || !errors.Is(err, tt.want) || errors.Is(err, ErrProxy) != tt.proxy || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v", err)
			}
			var f *Failure
			if !errors.As(err, &f) || f.Sent != tt.sent || (tt.sent || tt.late) != (tt.p.inside.Len() > 0) {
				t.Errorf("%#v, %d bytes went out", f, tt.p.inside.Len())
			}
			if err != nil && strings.Contains(err.Error(), "10.0.0.1") {
				t.Errorf("text of the platform: %v", err)
			}
			if tt.proxy && tt.p.inside.Len() > 0 {
				t.Error("the body went out without a tunnel")
			}
			if tt.p.dialErr == nil && tt.p.closed == 0 {
				t.Error("the connection stays open")
			}
		})
	}
}

func TestOnlyPlainHTTPSAddresses(t *testing.T) {
	for _, url := range []string{"http://id.test/", "https://u@id.test/", "https://id.test:0/", "https://id.test:99999/", "https:///x", "https://id.test/a b", "https://id.test/\r\nx", "https://[::1]/", "https://id.test\\@evil.test/"} {
		p := &platform{proxy: established}
		if _, err := (&Proxy{Dialer: p}).call(context.Background(), &upstream.Request{Method: "POST", URL: url}); err == nil || p.address != "" {
			t.Errorf("%s: %v, dialled %q", url, err, p.address)
		}
	}
	for url, want := range map[string]string{"https://id.test": "id.test 443 /", "https://id.test?a": "id.test 443 /?a", "https://Id.test:8443/a#f": "id.test 8443 /a"} {
		if host, port, target, err := address(url); err != nil || host+" "+port+" "+target != want {
			t.Errorf("%s: %s %s %s %v", url, host, port, target, err)
		}
	}
}

func TestInvalidRequestsAreNotSent(t *testing.T) {
	for name, req := range map[string]upstream.Request{
		"stream":     {Method: "POST", Body: io.NopCloser(strings.NewReader("x"))},
		"method":     {Method: "PO ST"},
		"field_name": {Method: "POST", Header: httpmsg.Header{{Name: "a b", Value: "x"}}},
		"line_break": {Method: "POST", Header: httpmsg.Header{{Name: "authorization", Value: "x\r\ny: 1"}}},
	} {
		req.URL = "https://id.test/"
		p := &platform{proxy: established}
		var f *Failure
		if _, err := (&Proxy{Dialer: p}).call(context.Background(), &req); !errors.As(err, &f) || f.Sent || p.address != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
