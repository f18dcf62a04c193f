// Package download fetches the files that a provider's answer points to.
package download

import (
	"context"
	"strings"
	"time"

	"weir/pkg/endpoint"
	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
	"weir/pkg/wire/weburl"
)

// Downloads gets files that a provider's answer points to. No credential goes
// with the call (docs/reference/reliability.md, T19), and the address must be
// one that a connection could have.
type Downloads struct {
	Do upstream.Doer
	// AllowPrivate and OwnHosts are those of provider.CheckBaseURL.
	AllowPrivate bool
	OwnHosts     []string
}

// maxAddress is the longest address fetched, in bytes.
const maxAddress = 16 << 10

// maxMoves is how many redirects of a download are followed.
const maxMoves = 3

// Get returns a 2xx answer to GET on behalf of the client's request r. It sends
// r's hop count, and never calls r's own host. With maxBody the body is in memory,
// else it is a stream. first is sent to the address itself, never to one that it
// redirects to; it contains a credential, so the caller must have checked whose
// address it is.
//
// The error is an *apierr.Error.
func (d *Downloads) Get(ctx context.Context, r *httpmsg.Request, address string, first httpmsg.Header,
	maxBody int64) (*upstream.Response, error) {
	hop, err := provider.Hop(r.Header)
	if err != nil {
		return nil, apierr.New(508, "loop_detected", "The call has passed too many gateways. Remove this gateway's own address from its accounts.")
	}
	header := append(httpmsg.Header{hop}, first...)
	for moves := 0; ; moves++ {
		target, err := d.check(r, address)
		if err != nil {
			return nil, err
		}
		req := &upstream.Request{Method: "GET", URL: target, Header: header, HeaderTimeout: 30 * time.Second,
			Timeout: time.Hour, MaxBody: maxBody}
		if maxBody > 0 {
			req.Timeout = 2 * time.Minute
		}
		resp, err := upstream.Do(ctx, d.Do, req)
		if err != nil {
			e := apierr.New(502, "upstream_unreachable", "The provider's file could not be downloaded. Try again.")
			e.Err = err
			return nil, e
		}
		page := endpoint.IsPage(resp.Header.Get("content-type")) // a page is no file
		if resp.Status >= 200 && resp.Status <= 299 && !page {
			return resp, nil
		}
		resp.Body.Close()
		if page && resp.Status < 300 {
			return nil, endpoint.BadBody(endpoint.ErrNoAnswer)
		}
		next := resp.Header.Get("location")
		if resp.Status < 300 || resp.Status > 399 || next == "" || moves == maxMoves {
			status := 502
			if resp.Status == 404 || resp.Status == 410 || resp.Status == 403 {
				status = 404 // the address has a limited life
			}
			return nil, apierr.New(status, "file_unavailable", "The file is no longer available from the provider.")
		}
		address, header = join(target, next), httpmsg.Header{hop}
	}
}

// check returns the canonical form of an address that may be called.
func (d *Downloads) check(r *httpmsg.Request, address string) (string, error) {
	canonical, ok := "", false
	if len(address) <= maxAddress {
		canonical, ok = weburl.Canonical(address)
	}
	if ok {
		at := strings.Index(canonical, "://") + 3
		end := strings.IndexAny(canonical[at:], "/?#")
		if end < 0 {
			end = len(canonical) - at
		}
		_, host, _ := strings.Cut(r.Origin, "://")
		own := append([]string{host}, d.OwnHosts...)
		ok = provider.CheckBaseURL(canonical[:at+end]+"/", d.AllowPrivate, own...) == nil &&
			(!d.AllowPrivate || !provider.PlatformPath(canonical[at+end:]))
	}
	if !ok {
		return "", apierr.New(502, "bad_upstream_body", "The provider gave an address that cannot be fetched.")
	}
	return canonical, nil
}

// join makes a Location absolute.
func join(base, location string) string {
	at := strings.Index(base, "://")
	switch {
	case strings.Contains(location, "://"):
		return location
	case strings.HasPrefix(location, "//"):
		return base[:at+1] + location
	case strings.HasPrefix(location, "/"):
		return Origin(base) + location
	}
	path, _, _ := strings.Cut(base, "?")
	return path[:strings.LastIndexByte(path, '/')+1] + location
}

// Origin returns scheme and host of an address.
func Origin(address string) string {
	at := strings.Index(address, "://")
	if at < 0 {
		return ""
	}
	if end := strings.IndexAny(address[at+3:], "/?#"); end >= 0 {
		return address[:at+3+end]
	}
	return address
}
