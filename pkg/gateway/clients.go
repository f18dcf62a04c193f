package gateway

import (
	"errors"
	"fmt"
	"strings"

	"weir/pkg/catalog/refresh"
	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/tokens"
	"weir/pkg/provider"
	"weir/pkg/wire/weburl"
)

// clients reads the operator's OAuth clients, of all lists together. Each is for a
// provider that exists; baseUrl is for one that takes a base address. A row with a
// mistake is left out, and so is a list that is no array. errs name the variable, the
// row and the field; unusable has those of rows by the provider.
func (c *Config) clients() (list []oauth.Provider, unusable map[string]string, errs []error) {
	unusable = map[string]string{}
	seen := map[string]bool{}
	for i, text := range c.OAuthProviders {
		rows, err := oauth.ParseProviders(text, c.AllowPrivate)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", OAuthVariable(i), err))
		}
		for j := range rows {
			r := &rows[j]
			wrong := r.Wrong
			switch {
			case wrong != "":
			case seen[r.ID]:
				wrong = "id, which is used twice"
			default:
				wrong = c.badField(&r.Provider)
			}
			if wrong == "" {
				list = append(list, r.Provider)
			} else {
				err := fmt.Errorf("%s: row %d: bad %s", OAuthVariable(i), j+1, wrong)
				errs = append(errs, err)
				if r.ID != "" && !seen[r.ID] {
					unusable[r.ID] = err.Error()
				}
			}
			seen[r.ID] = true
		}
	}
	return list, unusable, errs
}

// badField names the first field of a client that is wrong here, or returns "".
func (c *Config) badField(p *oauth.Provider) string {
	d := provider.Lookup(p.ID)
	switch {
	case d == nil:
		return "id: there is no such provider"
	case p.BaseURL != "" && !d.Compatible && !d.Rebase:
		return "baseUrl: the provider has its own"
	case p.BaseURL != "" && provider.CheckBaseURL(p.BaseURL, c.AllowPrivate, c.ownHosts()...) != nil:
		return "baseUrl"
	case !c.callable(p.TokenURL):
		return "tokenUrl: the host is not one that may be called"
	case !c.callable(p.DeviceURL):
		return "deviceUrl: the host is not one that may be called"
	}
	if p.Proxy != "" {
		if _, _, err := provider.ParseProxy("http://"+p.Proxy, c.AllowPrivate, c.ownHosts()...); err != nil {
			return "proxy"
		}
	}
	return ""
}

// callable reports whether an endpoint's host may be called: by the policy of
// base addresses, on any port (docs/reference/reliability.md, T61). "" may not
// be called.
func (c *Config) callable(endpoint string) bool {
	_, rest, ok := strings.Cut(endpoint, "://")
	if !ok {
		return endpoint == ""
	}
	host, _, _ := strings.Cut(rest, "/")
	host, port, _ := strings.Cut(host, ":")
	var own []string
	for _, o := range c.ownHosts() {
		if name, p, ok := strings.Cut(o, ":"); !ok || p == port {
			own = append(own, name)
		}
	}
	return provider.CheckBaseURL("https://"+host+"/", c.AllowPrivate, own...) == nil
}

// proxy reads PROXY_URL.
func (c *Config) proxy() (p tokens.Proxy, err error) {
	if c.ProxyURL != "" {
		p.Address, p.Auth, err = provider.ParseProxy(c.ProxyURL, c.AllowPrivate, c.ownHosts()...)
	}
	return p, err
}

// prices returns the source of refreshed prices, or nil.
func (c *Config) prices() (*refresh.Source, error) {
	if c.PricesURL == "" {
		if c.PricesKey != "" {
			return nil, errors.New("PRICES_KEY: it is set without PRICES_URL")
		}
		return nil, nil
	}
	url, ok := weburl.Canonical(c.PricesURL)
	if !ok {
		return nil, errors.New("PRICES_URL: it must be a URL, https://prices.example.com/prices.json")
	}
	if err := provider.CheckBaseURL(url, c.AllowPrivate, c.ownHosts()...); err != nil {
		return nil, fmt.Errorf("PRICES_URL: %w", err)
	}
	source := &refresh.Source{URL: url}
	if c.PricesKey != "" {
		key, err := refresh.ParseKey(c.PricesKey)
		if err != nil {
			return nil, fmt.Errorf("PRICES_KEY: %w", err)
		}
		source.Key = key
	}
	return source, nil
}

// publicURL returns PUBLIC_URL as scheme and host: https, or http on loopback.
// "" means that it is not set.
func (c *Config) publicURL() (string, error) {
	v := strings.TrimRight(strings.TrimSpace(c.PublicURL), "/")
	if v == "" || oauth.IsOrigin(v, false) {
		return v, nil
	}
	return "", fmt.Errorf("PUBLIC_URL must be scheme and host only, https://weir.example.com")
}

// ownHosts are the hosts that no connection may point to
// (docs/reference/reliability.md, T57).
func (c *Config) ownHosts() []string {
	v, err := c.publicURL()
	_, host, ok := strings.Cut(v, "://")
	if err != nil || !ok {
		return nil
	}
	return []string{host}
}
