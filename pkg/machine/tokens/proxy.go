package tokens

import (
	"errors"

	"weir/pkg/credentials/oauth"
	"weir/pkg/credentials/proxydial"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

// Proxy is the HTTP CONNECT proxy that token endpoints are called through.
type Proxy struct {
	Address string        // "host:port", "" for none
	Auth    secret.Secret // "user:password", may be zero
}

// Doer makes the calls of a provider's token and device endpoints: through the
// proxy of its client, else through the operator's, else directly. Where a
// proxy is named nothing goes around it. See docs/reference/spec.md, 5.5.
func (o *Service) Doer(client *oauth.Provider) upstream.Doer {
	p := o.Proxy
	if client.Proxy != "" {
		p = Proxy{client.Proxy, client.ProxyAuth}
	}
	if p.Address == "" {
		return o.Do
	}
	return &proxydial.Proxy{Dialer: o.Dialer, Address: p.Address, Auth: p.Auth}
}

// Proxied returns the client with the connection's own proxy, when it has one.
func (o *Service) Proxied(r *storage.Call, c *storage.Connection, client *oauth.Provider) (*oauth.Provider, error) {
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

// NotSent returns the failure of a call of which nothing reached the token
// endpoint, or nil.
func NotSent(err error) *proxydial.Failure {
	var f *proxydial.Failure
	if errors.As(err, &f) && !f.Sent {
		return f
	}
	return nil
}
