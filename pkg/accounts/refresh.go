package accounts

import (
	"context"
	"errors"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/secret"
)

// ErrSealed reports that a stored credential does not open: its key is gone, or
// it was changed. Other accounts are not affected.
var ErrSealed = errors.New("accounts: the stored credential cannot be opened")

// maxTokens bounds what is remembered of refreshed tokens.
const maxTokens = 512

type tokenKey struct{ machine, connection string }

// token is an access token newer than the snapshot's, sealed as there.
type token struct {
	sealed     secret.Sealed
	generation int64
	expires    int64 // Unix milliseconds, 0 when not known
	earlier    bool  // it was there before it was asked for: it may be old as well
}

// current returns the newest access token known here of a connection.
func (p *Pool) current(machineID string, conn *store.Connection) token {
	snap := token{sealed: conn.Secrets[store.AccessToken], generation: conn.TokenGeneration, expires: conn.ExpiresAt}
	p.mu.Lock()
	defer p.mu.Unlock()
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

// renewable reports whether the connection's access token can be had again.
func renewable(conn *store.Connection) bool {
	if conn.Secrets[store.APIKey] != "" {
		return false
	}
	return conn.Secrets[store.RefreshToken] != "" || conn.Secrets[store.ServiceAccount] != ""
}

// use describes the access token that a call presents.
type use struct {
	generation int64 // of the one presented last
	refreshed  bool  // a call has brought a new one, which it asks for once
	// wait is the time until the next attempt after a refresh that failed
	// temporarily; 0 after a definite answer.
	wait time.Duration
}

// open returns what the connection presents, in the clear. A token that is
// missing or past its end is renewed first.
func (p *Pool) open(ctx context.Context, machineID string, conn *store.Connection,
	u *use) (provider.Credential, error) {
	access, err := p.access(ctx, machineID, conn, u)
	if err != nil {
		return provider.Credential{}, err
	}
	return p.decrypt(machineID, conn, access)
}

// openKept is open for a call with a snapshot, which keeps the result.
func (p *Pool) openKept(ctx context.Context, m *snapshot.Machine, conn *store.Connection,
	u *use) (*snapshot.Opened, error) {
	access, err := p.access(ctx, m.ID, conn, u)
	if err != nil {
		return nil, err
	}
	if o := m.Opened(conn, access); o != nil {
		return o, nil
	}
	cred, err := p.decrypt(m.ID, conn, access)
	if err != nil {
		return nil, err
	}
	return m.Open(conn, access, cred), nil
}

// expired reports whether a token is missing or past its end, and can be renewed.
func (p *Pool) expired(conn *store.Connection, access token) bool {
	return renewable(conn) && (access.sealed == "" || access.expires > 0 && access.expires <= p.Now().UnixMilli())
}

// access returns the access token of a connection, sealed, or "" if it has none. A
// token that is missing or past its end is renewed first.
func (p *Pool) access(ctx context.Context, machineID string, conn *store.Connection, u *use) (secret.Sealed, error) {
	access := p.current(machineID, conn)
	if !u.refreshed && p.expired(conn, access) {
		u.refreshed = true
		var ok, asked bool
		ok, asked, u.wait = p.renew(ctx, machineID, conn, access.generation)
		if ok {
			access = p.current(machineID, conn)
			u.refreshed = !access.earlier
		} else if u.wait > 0 && (asked || access.sealed == "") {
			// An expired token is sent only if the object cannot be asked: it
			// may be valid for some seconds more.
			return "", &noToken{u.wait}
		}
	}
	u.generation = access.generation
	return access.sealed, nil
}

// decrypt opens the secrets of a connection, with this access token.
func (p *Pool) decrypt(machineID string, conn *store.Connection, access secret.Sealed) (provider.Credential, error) {
	var cred provider.Credential
	get := func(field string, sealed secret.Sealed, to *secret.Secret) (err error) {
		if sealed != "" {
			if p.Keys == nil {
				return ErrSealed
			}
			if *to, err = p.Keys.Open(machineID, conn.ID, field, sealed); err != nil {
				return ErrSealed
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
	return cred, get(store.AccessToken, access, &cred.AccessToken)
}

// noToken reports that an account has no access token yet and that its provider
// issues no token at the moment.
type noToken struct{ wait time.Duration }

func (*noToken) Error() string { return "accounts: there is no access token at the moment" }

// shown returns the client's error.
func (n *noToken) shown() *apierr.Error {
	e := apierr.New(503, "token_unavailable",
		"The access token of the account is being renewed, or could not be renewed. If it lasts, sign in again under Providers.")
	e.RetryAfter, e.Err = max(n.wait, time.Second), n
	return e
}

// refresh reports whether there is a newer access token than the one in use,
// which was refused. One that another call has brought meanwhile, here or in
// another instance, is not what was refused: should it be refused too, a newer one
// is still asked for.
func (p *Pool) refresh(ctx context.Context, machineID string, conn *store.Connection, u *use) bool {
	if p.current(machineID, conn).generation > u.generation {
		return true
	}
	if u.refreshed {
		return false
	}
	u.refreshed = true
	var ok bool
	ok, _, u.wait = p.renew(ctx, machineID, conn, u.generation)
	if ok {
		u.refreshed = !p.current(machineID, conn).earlier
	}
	return ok
}

// renew asks the object for a newer access token than the one of the
// generation had. ok reports whether there is one, asked whether the object
// could be asked, wait is the time until the next attempt; 0 for never. The
// object refreshes at most once for all calls with the same generation. While
// its answer is to wait, it is not asked again.
//
//	refresh {connectionId, tokenGeneration} → {connection: store.Connection}
func (p *Pool) renew(ctx context.Context, machineID string, conn *store.Connection,
	had int64) (ok, asked bool, wait time.Duration) {
	key := tokenKey{machineID, conn.ID}
	if left := p.notYet(key, had); left > 0 {
		return false, true, left
	}
	answer, err := rpc.Call[rpc.Refreshed](ctx, p.Object, machineID, "refresh", rpc.Refresh{
		ConnectionID: conn.ID, TokenGeneration: had,
	})
	switch status := rpc.Status(err); {
	case status == 0:
		return false, false, time.Second
	case status >= 500:
		wait = time.Second
		if e, ok := errors.AsType[*apierr.Error](err); ok {
			wait = max(e.RetryAfter, wait)
		}
		p.notNow(key, later{had, wait, p.Now().Add(wait)})
		return false, true, wait
	case err != nil:
		return false, true, 0
	}
	got := token{
		sealed:     answer.Connection.Secrets[store.AccessToken],
		generation: answer.Connection.TokenGeneration,
		expires:    answer.Connection.ExpiresAt,
		earlier:    answer.Earlier,
	}
	if got.sealed == "" || got.generation <= had {
		return false, true, 0
	}
	p.keep(key, &got)
	return true, true, 0
}

// keep remembers a token, unless a newer one is known: answers may overtake each other.
func (p *Pool) keep(key tokenKey, got *token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.tokens[key]; t != nil && t.generation >= got.generation {
		return
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
	p.tokens[key] = got
}

// later is the object's answer that a token cannot be refreshed yet.
type later struct {
	generation int64
	wait       time.Duration
	until      time.Time
}

// notYet returns how long the object's answer to wait still holds; 0 if it does not.
func (p *Pool) notYet(key tokenKey, generation int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, found := p.laters[key]
	if !found || l.generation != generation {
		return 0
	}
	if left := l.until.Sub(p.Now()); left > 0 && left <= l.wait {
		return left
	}
	delete(p.laters, key)
	return 0
}

// notNow notes the object's answer that a token cannot be refreshed yet.
func (p *Pool) notNow(key tokenKey, l later) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.laters == nil || len(p.laters) >= maxTokens {
		p.laters = map[tokenKey]later{}
	}
	p.laters[key] = l
}
