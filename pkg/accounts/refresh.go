package accounts

import (
	"context"
	"encoding/json"
	"errors"

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

// open gives what the connection presents, in the clear. A token that is
// missing or past its end is renewed first, which sets refreshed.
func (p *Pool) open(ctx context.Context, machineID string, conn *store.Connection, refreshed *bool) (provider.Credential, error) {
	var cred provider.Credential
	access := p.current(machineID, conn)
	if !*refreshed && renewable(conn) && (access.sealed == "" || access.expires > 0 && access.expires <= p.Now().UnixMilli()) {
		*refreshed = true
		if p.refresh(ctx, machineID, conn) {
			access = p.current(machineID, conn)
		}
	}
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

// refresh asks the object for a newer access token than the newest known here,
// and tells whether there is one. The object refreshes at most once for all
// who ask with the same generation.
//
//	refresh {connectionId, tokenGeneration} → {connection: store.Connection}
func (p *Pool) refresh(ctx context.Context, machineID string, conn *store.Connection) bool {
	had := p.current(machineID, conn)
	body, err := json.Marshal(struct {
		ConnectionID    string `json:"connectionId"`
		TokenGeneration int64  `json:"tokenGeneration"`
	}{conn.ID, had.generation})
	if err != nil {
		return false
	}
	status, answer, err := p.Object.Call(ctx, machineID, "refresh", body)
	if err != nil || status != 200 || !gjson.ValidBytes(answer) {
		return false
	}
	got := token{
		sealed:     store.Sealed(gjson.GetBytes(answer, "connection.secrets."+store.AccessToken).Str),
		generation: gjson.GetBytes(answer, "connection.tokenGeneration").Int(),
		expires:    gjson.GetBytes(answer, "connection.expiresAt").Int(),
	}
	if got.sealed == "" || got.generation <= had.generation {
		return false
	}
	if p.tokens == nil {
		p.tokens = map[tokenKey]*token{}
	}
	for key := range p.tokens {
		if len(p.tokens) < maxTokens {
			break
		}
		delete(p.tokens, key) // any: it is asked for again
	}
	p.tokens[tokenKey{machineID, conn.ID}] = &got
	return true
}
