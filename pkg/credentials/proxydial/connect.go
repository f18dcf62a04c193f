// Package proxydial makes a call through an HTTP CONNECT proxy (RFC 9110 9.3.6)
// over the platform's TCP sockets: the tunnel, TLS inside it by the platform
// with the certificate checks of any call, and one HTTP/1.1 exchange.
//
// It is for calls of token endpoints: small bodies, held in memory.
//
// Cloudflare's network sends no server name in a TLS that begins within a
// connection (github.com/cloudflare/workerd/issues/6903): there an endpoint is
// reached only if the certificate that it shows to such callers is good for its
// name. Another one is a failure before anything is sent. workerd itself sends
// the name.
package proxydial

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Dialer opens TCP connections. The platform provides it.
type Dialer interface {
	// Dial opens a connection to "host:port" that StartTLS may be called on.
	// timeout limits all calls on the connection together: after it, every call
	// fails with an error that wraps upstream.ErrTimeout. Zero means no limit.
	Dial(ctx context.Context, address string, timeout time.Duration) (Conn, error)
}

// ErrHandshake reports that TLS was not established, so that nothing was sent
// by it. A connection may give it late, from the first Write or Read.
var ErrHandshake = errors.New("no TLS")

// Conn is a TCP connection.
type Conn interface {
	io.ReadWriteCloser
	// StartTLS goes on in TLS: the certificate must be valid for host. The
	// connection itself is not used afterwards; closing either closes both.
	StartTLS(host string) (io.ReadWriteCloser, error)
}

// ErrProxy reports that the proxy did not do its part: it cannot be reached,
// refuses, or does not speak HTTP. A *Failure says which.
var ErrProxy = errors.New("the proxy does not work")

// Failure is a call through a proxy that got no answer. It unwraps to ErrProxy
// where the proxy is to blame, and to upstream.ErrNetwork, ErrTimeout,
// ErrCanceled or stream.ErrTooLarge.
type Failure struct {
	What string // in words, fit to be shown: no address and no secret
	// Sent reports that the request may have reached the provider: what became of
	// it is not known. Otherwise nothing of it left the gateway.
	Sent  bool
	Proxy bool // the proxy is to blame
	Err   error
}

func (f *Failure) Error() string {
	s := f.What
	if f.Proxy {
		s = ErrProxy.Error() + ": " + s
	}
	if errors.Is(f.Err, upstream.ErrTimeout) {
		s += ", within the time that it has"
	}
	return s
}

// Unwrap returns what the failure is one of.
func (f *Failure) Unwrap() []error {
	if f.Proxy {
		return []error{ErrProxy, f.Err}
	}
	return []error{f.Err}
}

// Proxy is an upstream.Doer whose calls go through a CONNECT proxy. Only https
// addresses and bodies in memory are taken. Answers are held in memory:
// Request.MaxBody limits them, 64 KiB when it is zero.
type Proxy struct {
	Dialer  Dialer
	Address string        // of the proxy, "host:port"
	Auth    secret.Secret // "user:password", may be zero
	// Timeout limits a call whose request has none; zero means 20 s.
	Timeout time.Duration
}

const (
	defaultTimeout = 20 * time.Second
	defaultBody    = 64 << 10
)

// pending is a call that Wait sends.
type pending struct {
	p   *Proxy
	ctx context.Context
	req *upstream.Request
}

// Start returns the call. Wait sends it.
func (p *Proxy) Start(ctx context.Context, req *upstream.Request) upstream.Pending {
	return pending{p, ctx, req}
}

func (c pending) Wait() (*upstream.Response, error) { return c.p.call(c.ctx, c.req) }

func (p *Proxy) call(ctx context.Context, req *upstream.Request) (*upstream.Response, error) {
	host, port, target, err := address(req.URL)
	if err != nil {
		return nil, err
	}
	head, body, err := request(req, host, port, target)
	if err != nil {
		return nil, err
	}
	timeout := req.Timeout
	if timeout <= 0 {
		timeout = p.Timeout
	}
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	if p.Dialer == nil {
		return nil, broken("this platform has no sockets to reach it by", nil)
	}
	conn, err := p.Dialer.Dial(ctx, p.Address, timeout)
	if err != nil {
		return nil, broken("it cannot be reached", err)
	}
	defer conn.Close()
	if err := p.tunnel(conn, host+":"+port); err != nil {
		return nil, err
	}
	secure, err := conn.StartTLS(host)
	if err != nil {
		return nil, failed(tlsFailed, err, false)
	}
	defer secure.Close()
	// In one piece: head and body are small, and few writes cross to the host.
	if _, err := secure.Write(append(head, body...)); err != nil {
		return nil, failed("the connection through the proxy broke off while the request was sent", err, true)
	}
	limit := req.MaxBody
	if limit <= 0 {
		limit = defaultBody
	}
	resp, err := ReadResponse(secure, limit)
	if err != nil {
		return nil, failed("no usable answer came through the proxy", err, true)
	}
	return resp, nil
}

const tlsFailed = "no TLS through the proxy: the other end does not speak it, or its certificate is not good for the provider's name"

// tunnel asks the proxy for a tunnel to "host:port".
func (p *Proxy) tunnel(conn io.ReadWriter, to string) error {
	head := "CONNECT " + to + " HTTP/1.1\r\nhost: " + to + "\r\n"
	if !p.Auth.IsZero() {
		head += "proxy-authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(p.Auth.Reveal())) + "\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
		return broken("it closed the connection", err)
	}
	r := newReader(conn)
	status, _, err := r.head()
	switch {
	case errors.Is(err, errCut):
		return broken("it closed the connection before it answered CONNECT", err)
	case errors.Is(err, errMalformed):
		return broken("its answer to CONNECT is not HTTP", err)
	case err != nil:
		return broken("it did not answer CONNECT", err)
	case status == 407 && p.Auth.IsZero():
		return broken("it asks for user and password (status 407)", nil)
	case status == 407:
		return broken("it refuses user and password (status 407)", nil)
	case status < 200 || status > 299:
		return broken("it answered CONNECT with status "+strconv.Itoa(status), nil)
	case r.buffered() > 0:
		// TLS begins with us: nothing may come from behind the tunnel yet.
		return broken("it sent bytes before the tunnel was used", nil)
	}
	return nil
}

// broken is a failure of the proxy itself.
func broken(what string, err error) error {
	f := failed(what, err, false)
	f.Proxy = true
	return f
}

// failed returns a failure. The platform's own text may contain addresses and is
// omitted.
func failed(what string, err error, sent bool) *Failure {
	for _, known := range [...]error{upstream.ErrTimeout, upstream.ErrCanceled, stream.ErrTooLarge} {
		if errors.Is(err, known) {
			return &Failure{What: what, Sent: sent, Err: known}
		}
	}
	if sent && errors.Is(err, errMalformed) {
		what += ": " + err.Error()
	}
	if sent && errors.Is(err, ErrHandshake) {
		what, sent = tlsFailed, false
	}
	return &Failure{What: what, Sent: sent, Err: upstream.ErrNetwork}
}

var errAddress = &Failure{What: "only plain https addresses are called through a proxy", Err: upstream.ErrNetwork}

// address takes an https address apart.
func address(url string) (host, port, target string, err error) {
	rest, ok := strings.CutPrefix(url, "https://")
	if !ok {
		return "", "", "", errAddress
	}
	rest, _, _ = strings.Cut(rest, "#")
	host, target = rest, "/"
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		host, target = rest[:i], rest[i:]
		if target[0] == '?' {
			target = "/" + target
		}
	}
	host, port, ok = strings.Cut(host, ":")
	if !ok {
		port = "443"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || port[0] == '+' || host == "" {
		return "", "", "", errAddress
	}
	for i := 0; i < len(host); i++ {
		if c := host[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-') {
			return "", "", "", errAddress
		}
	}
	for i := 0; i < len(target); i++ {
		if target[i] <= ' ' || target[i] >= 0x7f {
			return "", "", "", errAddress
		}
	}
	return strings.ToLower(host), port, target, nil
}
