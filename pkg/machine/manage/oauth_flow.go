package manage

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/storage"
	"weir/pkg/machine/tokens"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/upstream"
)

// signIns returns the engine of the machine's sign-ins.
func (o *Manager) signIns(r *storage.Call) *oauth.Engine {
	return o.Engine(r, func(p *oauth.Provider, note string) (upstream.Doer, error) { return o.flowDoer(r, p, note) })
}

// flowDoer makes the calls of a flow through the proxy of the connection that
// it is for, where that has one.
func (o *Manager) flowDoer(r *storage.Call, p *oauth.Provider, note string) (upstream.Doer, error) {
	c := &change{Call: r, o: o}
	var n oauthNote
	var got *connInput
	err := json.Unmarshal([]byte(note), &n)
	if err == nil && n.ConnectionID != "" {
		got, err = c.renewed(p, n.ConnectionID)
	} else if err == nil {
		got, err = c.drafted(p, readObject(orEmpty(n.Fields), ""))
	}
	if err != nil {
		return nil, err
	}
	client, err := o.Proxied(r, &got.row, p)
	if err != nil {
		return nil, err
	}
	return o.Doer(client), nil
}

// settle keeps what a flow has come to, and makes the answer of its failure.
func (c *change) settle(err error) error {
	if err := c.Commit(); err != nil {
		return err
	}
	var f *oauth.Failure
	if !errors.As(err, &f) {
		return err
	}
	var e *apierr.Error
	if errors.As(f.Err, &e) { // the call was not made
		return e
	}
	switch n := tokens.NotSent(err); {
	case n != nil:
		e = apierr.New(503, "provider_unavailable", "The provider was not asked: %s.", n.Error())
		e.RetryAfter = time.Second
	case f.Kind == oauth.Lost:
		e = apierr.New(502, "upstream_outcome_unknown", "The provider's answer was lost. Start again.")
	case f.Kind == oauth.Transient:
		e = apierr.New(503, "provider_unavailable", "The provider gave no usable answer. Start again in a few minutes.")
		e.RetryAfter = max(f.RetryAfter, time.Second)
	case f.Kind == oauth.Reauth:
		e = apierr.New(400, "invalid_grant", "The provider no longer accepts the code. Start again.")
	case f.Kind == oauth.Denied:
		e = apierr.New(400, "access_denied", "Access was denied at the provider. Start again and allow it.")
	case f.Kind == oauth.Expired:
		e = apierr.New(400, "expired_token", "The code has expired. Start again.")
	default:
		e = apierr.New(502, "provider_refused",
			"The provider refused the OAuth client of this gateway%s. The operator must check OAUTH_PROVIDERS.",
			strings.TrimSuffix(" ("+f.Code+")", " ()"))
	}
	e.Err = errors.New(tokens.FailureText(f))
	return e
}

// applyProxy changes the proxy of a connection by providerSpecificData.proxyUrl
// (http://user:password@host:port; null removes it), of which user and password
// are kept sealed. They were given for this proxy: another address without them
// forgets them (docs/reference/reliability.md, T14).
func (o *Manager) applyProxy(in *Input, c *connInput) {
	d := &c.row.Data
	if v, ok := in.text("proxyUrl", 2048); ok && in.Err == nil {
		before := d.Proxy
		d.Proxy = ""
		if v != "" {
			address, auth, err := provider.ParseProxy(v, o.AllowPrivate, o.OwnHosts...)
			switch {
			case err != nil:
				in.fail("proxyUrl", "is refused: %s", strings.TrimPrefix(err.Error(), provider.ErrProxyURL.Error()+": "))
			case !auth.IsZero() && c.secrets[store.ProxyAuth] != "":
				in.fail("proxyUrl", "has user and password, and so has %s: send them once", store.ProxyAuth)
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
func checkProxy(in *Input, c *connInput) {
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
