package accounts

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
	"weir/pkg/store"
)

// errSealed tells that a stored credential does not open: its key is gone, or
// it was changed. Other accounts are not affected.
var errSealed = errors.New("accounts: the stored credential cannot be opened")

// maxTokens bounds what is remembered of refreshed tokens.
const maxTokens = 512

type tokenKey struct{ machine, connection string }

// token is an access token newer than the snapshot's, sealed as there.
type token struct {
	sealed     store.Sealed
	generation int64
	expires    int64 // Unix milliseconds, 0 when not known
}

// current gives the newest access token known here of a connection.
func (p *Pool) current(machineID string, conn *store.Connection) token {
	snap := token{conn.Secrets[store.AccessToken], conn.TokenGeneration, conn.ExpiresAt}
	if len(p.tokens) == 0 {
		return snap
	}
	key := tokenKey{machineID, conn.ID}
	t := p.tokens[key]
	switch {
	case t == nil:
		return snap
	case t.generation <= conn.TokenGeneration:
		delete(p.tokens, key)
		return snap
	}
	return *t
}

// renewable tells whether the connection's access token can be had anew.
func renewable(conn *store.Connection) bool {
	if conn.Secrets[store.APIKey] != "" {
		return false
	}
	return conn.Secrets[store.RefreshToken] != "" || conn.Secrets[store.ServiceAccount] != ""
}

// use tells of the access token that a call presents.
type use struct {
	generation int64 // of the one presented last
	refreshed  bool  // a newer one was asked for, which a call does once
}

// open gives what the connection presents, in the clear. A token that is
// missing or past its end is renewed first.
func (p *Pool) open(ctx context.Context, machineID string, conn *store.Connection, u *use) (provider.Credential, error) {
	var cred provider.Credential
	access := p.current(machineID, conn)
	if !u.refreshed && renewable(conn) && (access.sealed == "" || access.expires > 0 && access.expires <= p.Now().UnixMilli()) {
		u.refreshed = true
		ok, wait := p.renew(ctx, machineID, conn, access.generation)
		if ok {
			access = p.current(machineID, conn)
		} else if wait > 0 && access.sealed == "" {
			return cred, &noToken{wait}
		}
	}
	u.generation = access.generation
	get := func(field string, sealed store.Sealed, to *store.Secret) (err error) {
		if sealed != "" {
			if p.Keys == nil {
				return errSealed
			}
			if *to, err = p.Keys.Open(machineID, conn.ID, field, sealed); err != nil {
				return errSealed
			}
		}
		return nil
	}
	for field, sealed := range conn.Secrets {
		var err error
		switch field {
		case store.APIKey:
			err = get(field, sealed, &cred.APIKey)
		case store.AccessKeyID:
			err = get(field, sealed, &cred.AccessKeyID)
		case store.SecretAccessKey:
			err = get(field, sealed, &cred.SecretAccessKey)
		case store.SessionToken:
			err = get(field, sealed, &cred.SessionToken)
		case store.ServiceAccount:
			err = get(field, sealed, &cred.ServiceAccount)
		}
		if err != nil {
			return cred, err
		}
	}
	return cred, get(store.AccessToken, access.sealed, &cred.AccessToken)
}

// noToken tells that an account has no access token yet and that its provider
// gives none at the moment.
type noToken struct{ wait time.Duration }

func (*noToken) Error() string { return "accounts: no access token is to be had at the moment" }

// refresh tells whether there is a newer access token than the one in use,
// which was refused. One that another call has brought meanwhile is not what
// was refused: should it be refused too, a newer one is still asked for.
func (p *Pool) refresh(ctx context.Context, machineID string, conn *store.Connection, u *use) bool {
	if p.current(machineID, conn).generation > u.generation {
		return true
	}
	if u.refreshed {
		return false
	}
	u.refreshed = true
	ok, _ := p.renew(ctx, machineID, conn, u.generation)
	return ok
}

// renew asks the object for a newer access token than the one of the
// generation had, and tells whether there is one, or else when there may be; 0
// for never. The object refreshes at most once for all who ask with the same
// generation.
//
//	refresh {connectionId, tokenGeneration} → {connection: store.Connection}
func (p *Pool) renew(ctx context.Context, machineID string, conn *store.Connection, had int64) (ok bool, wait time.Duration) {
	body, err := json.Marshal(struct {
		ConnectionID    string `json:"connectionId"`
		TokenGeneration int64  `json:"tokenGeneration"`
	}{conn.ID, had})
	if err != nil {
		return false, 0
	}
	status, answer, err := p.Object.Call(ctx, machineID, "refresh", body)
	switch {
	case err != nil || status == 503:
		return false, max(time.Duration(gjson.GetBytes(answer, "error.retryAfterMs").Int())*time.Millisecond, time.Second)
	case status != 200 || !gjson.ValidBytes(answer):
		return false, 0
	}
	got := token{
		sealed:     store.Sealed(gjson.GetBytes(answer, "connection.secrets."+store.AccessToken).Str),
		generation: gjson.GetBytes(answer, "connection.tokenGeneration").Int(),
		expires:    gjson.GetBytes(answer, "connection.expiresAt").Int(),
	}
	if got.sealed == "" || got.generation <= had {
		return false, 0
	}
	key := tokenKey{machineID, conn.ID}
	if t := p.tokens[key]; t != nil && t.generation >= got.generation {
		return true, 0 // answers may overtake each other
	}
	if p.tokens == nil {
		p.tokens = map[tokenKey]*token{}
	}
	for other := range p.tokens {
		if len(p.tokens) < maxTokens {
			break
		}
		delete(p.tokens, other) // any: it is asked for again
	}
	p.tokens[key] = &got
	return true, 0
}
