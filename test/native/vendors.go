package main

import (
	"io"
	"net/http"
	"net/url"
	"sync"

	"weir/server/dial"
)

// transport counts the upstream calls that are open and sends those of real hosts
// to the test upstream.
func (t *tester) transport(next http.RoundTripper) http.RoundTripper {
	if t.vendors != "" {
		to, err := url.Parse(t.vendors)
		if err != nil {
			panic(err)
		}
		next = vendors{to, next, dial.Transport(&dial.Policy{AllowPrivate: true})}
	}
	return counted{t, next}
}

// vendors sends calls of hosts that are not loopback to a test upstream, which finds
// the host in x-vendor-host.
type vendors struct {
	to              *url.URL
	loopback, other http.RoundTripper
}

func (v vendors) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Hostname() == "127.0.0.1" {
		return v.loopback.RoundTrip(r)
	}
	sent := r.Clone(r.Context())
	sent.Header.Set("X-Vendor-Host", r.URL.Host)
	sent.URL.Scheme, sent.URL.Host, sent.Host = v.to.Scheme, v.to.Host, ""
	return v.other.RoundTrip(sent)
}

// counted counts the calls that are open, to the end of their bodies.
type counted struct {
	*tester
	next http.RoundTripper
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.open.Add(1)
	res, err := c.next.RoundTrip(r)
	if err != nil {
		c.open.Add(-1)
		return nil, err
	}
	if res.StatusCode == http.StatusSwitchingProtocols { // the body is the connection, which is written too
		c.open.Add(-1)
		return res, nil
	}
	res.Body = &countedBody{ReadCloser: res.Body, end: sync.OnceFunc(func() { c.open.Add(-1) })}
	return res, nil
}

type countedBody struct {
	io.ReadCloser
	end func()
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *countedBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
