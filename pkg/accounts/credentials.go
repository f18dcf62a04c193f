package accounts

import (
	"context"
	"crypto/subtle"
	"fmt"

	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/upstream"
)

// Credentials opens what connections present, for calls that are no client's
// call: model lists and connection tests.
type Credentials struct{ Pool *Pool }

// Credential returns the connection's credential in the clear; an access token
// past its end is renewed first.
func (c *Credentials) Credential(ctx context.Context, m *snapshot.Machine,
	conn *store.Connection) (provider.Credential, error) {
	return c.Pool.open(ctx, m.ID, conn, new(use))
}

// Ready reports whether Credential returns without asking the object for a token.
func (c *Credentials) Ready(m *snapshot.Machine, conn *store.Connection) bool {
	return !c.Pool.expired(conn, c.Pool.current(m.ID, conn))
}

// Refreshed returns a newer credential after the upstream refused the one that
// was presented.
func (c *Credentials) Refreshed(ctx context.Context, m *snapshot.Machine, conn *store.Connection,
	presented provider.Credential) (provider.Credential, error) {
	if renewable(conn) {
		u := use{refreshed: true}
		now, err := c.Pool.open(ctx, m.ID, conn, &u)
		if err != nil || subtle.ConstantTimeCompare([]byte(now.AccessToken.Reveal()),
			[]byte(presented.AccessToken.Reveal())) == 0 {
			return now, err
		}
		if ok, _, _ := c.Pool.renew(ctx, m.ID, conn, u.generation); ok {
			return c.Pool.open(ctx, m.ID, conn, &u)
		}
	}
	return provider.Credential{}, fmt.Errorf("refresh %s: there is no newer token", conn.Provider)
}

// Sign signs a request for a credential that is not presented itself. The
// request must not change afterwards.
func (c *Credentials) Sign(req *upstream.Request, d *provider.Descriptor, conn *store.Connection,
	cred provider.Credential) error {
	return provider.Sign(req, d, nil, conn, cred, c.Pool.Now())
}
