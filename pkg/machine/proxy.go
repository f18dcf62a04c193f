package machine

import (
	"errors"
	"strings"

	"weir/pkg/credentials/oauth"
	"weir/pkg/credentials/proxydial"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

// Proxy is the HTTP CONNECT proxy that token endpoints are called through.
type Proxy struct {
	Address string        // "host:port", "" for none
	Auth    secret.Secret // "user:password", may be zero
}

// doer makes the calls of a provider's token and device endpoints: through the
// proxy of its client, else through the operator's, else directly. Where a
// proxy is named nothing goes around it. See docs/reference/spec.md, 5.5.
func (o *Object) doer(client *oauth.Provider) upstream.Doer {
	p := o.Proxy
	if client.Proxy != "" {
		p = Proxy{client.Proxy, client.ProxyAuth}
	}
	if p.Address == "" {
		return o.Do
	}
	return &proxydial.Proxy{Dialer: o.Dialer, Address: p.Address, Auth: p.Auth}
}

// proxied gives the client with the connection's own proxy, when it has one.
func (o *Object) proxied(r *request, c *connRow, client *oauth.Provider) (*oauth.Provider, error) {
	if c.Data.Proxy == "" {
		return client, nil
	}
	own := *client
	own.Proxy, own.ProxyAuth = c.Data.Proxy, secret.Secret{}
	if s := c.Secrets[store.ProxyAuth]; s != "" {
		var err error
		if own.ProxyAuth, err = o.openSecret(r, c, store.ProxyAuth, s); err != nil {
			return nil, err
		}
	}
	return &own, nil
}

// notSent gives the failure of a call of which nothing reached the token
// endpoint, or nil.
func notSent(err error) *proxydial.Failure {
	var f *proxydial.Failure
	if errors.As(err, &f) && !f.Sent {
		return f
	}
	return nil
}

// applyProxy changes the proxy of a connection by providerSpecificData.proxyUrl
// (http://user:password@host:port; null removes it), of which user and password
// are kept sealed. They were given for this proxy: another address without them
// forgets them (docs/reference/reliability.md, T14).
func (o *Object) applyProxy(in *input, c *connInput) {
	d := &c.row.Data
	if v, ok := in.text("proxyUrl", 2048); ok && in.err == nil {
		before := d.Proxy
		d.Proxy = ""
		if v != "" {
			address, auth, err := provider.ParseProxy(v, o.CanonicalURL, o.AllowPrivate, o.OwnHosts...)
			switch {
			case err != nil:
				in.fail("proxyUrl", "is refused: %s", strings.TrimPrefix(err.Error(), provider.ErrProxyURL.Error()+": "))
			case !auth.IsZero() && c.secrets[store.ProxyAuth] != "":
				in.fail("proxyUrl", "has user and password, and so has %s: give them once", store.ProxyAuth)
			case !auth.IsZero():
				c.secrets[store.ProxyAuth] = auth.Reveal()
			}
			d.Proxy = address
		}
		if _, given := c.secrets[store.ProxyAuth]; d.Proxy != before && !given {
			c.secrets[store.ProxyAuth] = ""
		}
	}
}

// checkProxy judges the proxy that a connection would have.
func checkProxy(in *input, c *connInput) {
	switch auth := c.secrets[store.ProxyAuth]; {
	case auth == "":
	case c.row.Data.Proxy == "":
		in.fail(store.ProxyAuth, "needs providerSpecificData.proxyUrl")
	default:
		if err := provider.CheckProxyAuth(auth); err != nil {
			in.fail(store.ProxyAuth, "is refused: %s", strings.TrimPrefix(err.Error(), provider.ErrProxyURL.Error()+": "))
		}
	}
}
