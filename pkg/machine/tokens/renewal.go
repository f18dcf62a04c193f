package tokens

import (
	"context"
	"maps"
	"strings"

	"weir/pkg/credentials/gcpauth"
	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/secret"
)

// Client returns the operator's client for a provider, or nil.
func (o *Service) Client(providerID string) *oauth.Provider {
	for i := range o.OAuth {
		if o.OAuth[i].ID == providerID {
			return &o.OAuth[i]
		}
	}
	return nil
}

// tableToken returns the token endpoint that the provider table names, with the
// scope of its tokens, or "".
func tableToken(providerID string) (url, scope string) {
	d := provider.Lookup(providerID)
	if d == nil {
		return "", ""
	}
	if d.Auth.TokenURL != "" {
		return d.Auth.TokenURL, d.Auth.Scope
	}
	for _, a := range d.Auth.Alt {
		if a.TokenURL != "" {
			return a.TokenURL, a.Scope
		}
	}
	return "", ""
}

// refreshable reports whether there is a token endpoint for the credential. It
// is the operator's or the table's, never a tenant's text
// (docs/reference/reliability.md, T61).
func (o *Service) refreshable(c *store.Connection) bool {
	field, _ := renewable(c)
	if field == store.RefreshToken {
		if o.Client(c.Provider) != nil {
			return true
		}
		if o.Unusable[c.Provider] != "" { // the table's endpoint would go around its proxy
			return false
		}
	}
	url, _ := tableToken(c.Provider)
	return field != "" && url != ""
}

// refreshEvery returns the least time between two refreshes of a connection, in
// milliseconds.
func (o *Service) refreshEvery(providerID string) int64 {
	every := o.RefreshEvery
	if p := o.Client(providerID); p != nil && p.RefreshEvery > 0 {
		every = p.RefreshEvery
	}
	if every <= 0 {
		return refreshEvery
	}
	return every.Milliseconds()
}

// renewal is all that a refresh is asked with, in the clear.
type renewal struct {
	client  *oauth.Provider
	refresh secret.Secret
	key     *gcpauth.Key // of a service account, instead
	scope   string
}

// renewal opens what a connection is refreshed with. The client is the
// connection's own where it names one, else the operator's.
func (o *Service) renewal(r *storage.Call, c *storage.Connection, field string,
	sealed secret.Sealed) (*renewal, error) {
	plain, err := o.openSecret(r, c, field, sealed)
	if err != nil {
		return nil, err
	}
	url, scope := tableToken(c.Provider)
	if field == store.ServiceAccount {
		key, err := gcpauth.ParseKey(plain)
		if err != nil || o.SignRS256 == nil {
			return nil, apierr.New(409, "not_refreshable", "The key file of the account cannot be used. Add another one.")
		}
		client, err := o.Proxied(r, c, &oauth.Provider{ID: c.Provider, TokenURL: url})
		return &renewal{client: client, key: key, scope: scope}, err
	}
	client := o.Client(c.Provider)
	if client == nil {
		client = &oauth.Provider{ID: c.Provider, TokenURL: url}
	}
	if id := c.Data.Vars["clientId"]; id != "" {
		own := *client
		own.ClientID, own.ClientSecret = id, secret.Secret{}
		if s := c.Secrets[store.ClientSecret]; s != "" {
			if own.ClientSecret, err = o.openSecret(r, c, store.ClientSecret, s); err != nil {
				return nil, err
			}
		}
		own.BasicAuth = own.BasicAuth && !own.ClientSecret.IsZero()
		client = &own
	}
	client, err = o.Proxied(r, c, client)
	return &renewal{client: client, refresh: plain}, err
}

func (o *Service) openSecret(r *storage.Call, c *storage.Connection, field string,
	sealed secret.Sealed) (secret.Secret, error) {
	plain, err := o.Keyring.Open(r.ID, c.ID, field, sealed)
	if err != nil {
		e := apierr.New(503, "key_unavailable", "The stored credentials cannot be decrypted; the operator must check CREDENTIALS_KEY.")
		e.Err = err
		return plain, e
	}
	return plain, nil
}

// ask calls the token endpoint once. A failure of it is an *oauth.Failure.
func (n *renewal) ask(ctx context.Context, o *Service) (oauth.Token, error) {
	if n.key != nil {
		return gcpauth.Token(ctx, o.Doer(n.client), o.SignRS256, n.key, n.scope, n.client.TokenURL, o.Now())
	}
	return oauth.Refresh(ctx, o.Doer(n.client), n.client, n.refresh, o.Now())
}

// sealTokens puts new tokens into a connection.
func (o *Service) sealTokens(machineID string, c *storage.Connection, t *oauth.Token, now int64) error {
	secrets, last4 := map[string]secret.Sealed{}, map[string]string{}
	maps.Copy(secrets, c.Secrets)
	maps.Copy(last4, c.Last4)
	put := func(field string, v secret.Secret) error {
		if v.IsZero() {
			return nil
		}
		s, err := o.Keyring.Seal(machineID, c.ID, field, v)
		if err != nil {
			return err
		}
		secrets[field] = s
		delete(last4, field)
		if last := rpc.Last4(v.Reveal()); last != "" {
			last4[field] = last
		}
		return nil
	}
	if err := put(store.AccessToken, t.Access); err != nil {
		return err
	}
	if err := put(store.RefreshToken, t.Refresh); err != nil {
		return err
	}
	c.Secrets, c.Last4 = secrets, last4
	c.ExpiresAt = t.ExpiresAt.UnixMilli()
	c.TokenGeneration++
	c.Status, c.LastError, c.UpdatedAt = "", "", now
	return nil
}

// notRenewed begins the text of an account whose token could not be refreshed.
const notRenewed = "The access token could not be renewed: "

// FailureText is what is kept of a token endpoint's failure: no text of its
// answer and no address.
func FailureText(f *oauth.Failure) string {
	text := (&oauth.Failure{Kind: f.Kind, Status: f.Status, Code: f.Code}).Error()
	return notRenewed + strings.TrimPrefix(text, "token endpoint: ")
}
