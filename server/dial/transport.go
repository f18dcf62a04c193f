package dial

import (
	"crypto/tls"
	"net/http"
	"time"

	_ "golang.org/x/crypto/x509roots/fallback" // certificate roots for a container without any
)

// Limits of connections to upstreams.
const (
	maxHeader       = 128 << 10 // bytes of an answer's head
	maxIdle         = 4096
	maxIdlePerHost  = 1024 // each stream over HTTP/1.1 has a connection of its own
	idleTimeout     = 90 * time.Second
	handshakeLimit  = 10 * time.Second
	continueTimeout = time.Second
	maxSessions     = 128       // of TLS, to be resumed
	maxBuffered     = 512 << 10 // bytes of a stream of HTTP/2 that waits to be read
)

// Fresh returns a transport that sends requests with Close set over a connection of
// their own. net/http takes an idle one for them too, which the upstream may just have
// closed.
func Fresh(t *http.Transport) http.RoundTripper {
	single := t.Clone()
	single.DisableKeepAlives = true
	return freshTransport{t, single}
}

type freshTransport struct{ pooled, single http.RoundTripper }

func (t freshTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Close {
		return t.single.RoundTrip(r)
	}
	return t.pooled.RoundTrip(r)
}

// Transport returns the transport of upstream calls, under the policy. Time limits of
// a call come with its context.
//
// It decodes no answer and sends no accept-encoding of its own: Decode does the
// former as the edge platform does. It follows no redirect, since it is called
// without an http.Client. It ignores HTTPS_PROXY and the like: the policy would
// judge the proxy's address only, and the proxy resolve the name; PROXY_URL is the
// setting for a proxy.
func Transport(p *Policy) *http.Transport {
	return &http.Transport{
		DialContext: p.dial,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12,
			ClientSessionCache: tls.NewLRUClientSessionCache(maxSessions)},
		TLSHandshakeTimeout:    handshakeLimit,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		ExpectContinueTimeout:  continueTimeout,
		MaxResponseHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: maxBuffered, SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second,
		},
	}
}
