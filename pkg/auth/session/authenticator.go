package session

import (
	"context"
	"errors"
	"sync"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/people"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// freshMs is how long ago the credential may have been shown for what cannot
// be undone, or leads out of the gateway.
const freshMs = 5 * 60 * 1000

// fresh are the routes that ask for the credential again
// (docs/reference/reliability.md, T33). The object requires it too, for keys
// with scope manage and for imports.
var fresh = [...]struct{ method, route string }{
	{"DELETE", "/api/machines/{id}"},
	{"POST", "/api/export"},
	{"GET", "/api/captures/{id}"},
	{"POST", "/api/passkeys"},
	{"POST", "/api/passkeys/challenge"},
}

// Authenticator authenticates calls, also by the cookie of a session. The cookie
// counts for management alone, and only where no token or key was sent.
type Authenticator struct {
	credentials
	Sessions *Sessions

	mu     sync.Mutex
	minute int64 // of count
	count  int   // wrong operator tokens
}

// maxNoted is the number of wrong operator tokens on calls that an isolate reports a minute.
const maxNoted = 20

// Wrap returns the authenticator of a gateway whose sessions these are.
func (s *Sessions) Wrap() *Authenticator {
	return &Authenticator{credentials: s.Credentials, Sessions: s}
}

// Manage is auth.Authenticator's, or admits the session's owner: the operator
// to the machine of the path, the holder of a key to its own.
func (a *Authenticator) Manage(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error) {
	t, row, err := a.session(ctx, r)
	if err != nil {
		return nil, err
	}
	if row == nil {
		c, err := a.credentials.Manage(ctx, r, pathMachine)
		return c, a.noted(ctx, r, err)
	}
	old := !a.lately(row)
	if row.Person != nil {
		c, err := person(r, row, pathMachine)
		if err == nil {
			c.OldSignIn = old
		}
		return c, err
	}
	if row.Key == nil {
		if !rpc.IsMachineID(pathMachine) {
			return nil, apierr.Invalid("", "Name the machine in the path, as in /{machineId}/api/keys.")
		}
		return &auth.Call{Request: r, Operator: true, MachineID: pathMachine, OldSignIn: old}, nil
	}
	if pathMachine != "" && pathMachine != t.home {
		return nil, refused()
	}
	return &auth.Call{Request: r, Key: row.Key, MachineID: t.home, OldSignIn: old}, nil
}

// lately reports whether the credential was presented in the last five minutes.
func (a *Authenticator) lately(row *rpc.Session) bool {
	return a.Sessions.Now().UnixMilli() < row.AuthAt+freshMs
}

// Operator is auth.Authenticator's, or admits the operator's session. A person has the least role
// there: the gateway admits them where a route names one.
func (a *Authenticator) Operator(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error) {
	_, row, err := a.session(ctx, r)
	if err != nil {
		return nil, err
	}
	if row == nil {
		c, err := a.credentials.Operator(ctx, r, pathMachine)
		return c, a.noted(ctx, r, err)
	}
	if row.Person != nil {
		p := &rpc.Person{ID: row.Person.ID, Name: row.Person.Name, Role: people.Member, SeenAt: row.Person.SeenAt}
		return &auth.Call{Request: r, Person: p, MachineID: pathMachine}, nil
	}
	if row.Key != nil {
		return nil, refused()
	}
	return &auth.Call{Request: r, Operator: true, MachineID: pathMachine}, nil
}

// Metrics is auth.Authenticator's.
func (a *Authenticator) Metrics(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error) {
	c, err := a.credentials.Metrics(ctx, r, pathMachine)
	return c, a.noted(ctx, r, err)
}

// noted counts and records a wrong operator token, as a sign-in with one. It returns err: the call is
// refused without the record too.
func (a *Authenticator) noted(ctx context.Context, r *httpmsg.Request, err error) error {
	if errors.Is(err, auth.ErrNotToken) && a.mayNote() {
		_ = a.Sessions.Failed(ctx, r, wrongCredential)
	}
	return err
}

// mayNote admits some records a minute: a flood of wrong tokens is no flood of calls to the registry.
func (a *Authenticator) mayNote() bool {
	minute := a.Sessions.Now().Unix() / 60
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.minute != minute {
		a.minute, a.count = minute, 0
	}
	a.count++
	return a.count <= maxNoted
}

// Refused records that the role of the person who calls does not include the call, which is refused without the
// record too.
func (a *Authenticator) Refused(ctx context.Context, c *auth.Call) {
	in := rpc.RoleRefused{Person: c.Person.ID, MachineID: c.MachineID, Route: c.Method + " " + c.Route}
	_, _ = rpc.Call[struct{}](ctx, a.Sessions.Objects, rpc.RegistryID, "role.refused", in)
}

// session returns the session of a call, of a cookie, a bearer token or a proxy's header; nil for a
// call without one.
func (a *Authenticator) session(ctx context.Context, r *httpmsg.Request) (ticket, *rpc.Session, error) {
	t, ok := a.Sessions.standsIn(r)
	read := a.Sessions.proxied
	if ok {
		read = func(ctx context.Context, r *httpmsg.Request) (*rpc.Session, error) { return a.admit(ctx, r, t) }
	}
	row, err := read(ctx, r)
	if err == nil && row != nil {
		err = a.recent(r, row)
	}
	return t, row, err
}

// standsIn returns the session that a call without another credential comes with.
func (s *Sessions) standsIn(r *httpmsg.Request) (ticket, bool) {
	if r.Header.Get("authorization") != "" || r.Header.Get("x-api-key") != "" {
		return s.readBearer(r.Header)
	}
	return s.readCookie(r.Header)
}

// admit checks where the call comes from, then the session.
func (a *Authenticator) admit(ctx context.Context, r *httpmsg.Request, t ticket) (*rpc.Session, error) {
	switch {
	case r.Method != "GET" && r.Method != "HEAD":
		if err := a.Sessions.checkMutation(r, t); err != nil {
			return nil, err
		}
	case !t.bearer && crossSite(r):
		return nil, errCrossSite()
	}
	row, err := a.Sessions.check(ctx, t)
	if err != nil {
		if isRefusal(err) {
			return nil, apierr.New(401, "session_expired", "Sign in again: the session has ended.")
		}
		return nil, err
	}
	return row, nil
}

// recent refuses what cannot be undone to a session whose sign-in is long ago.
func (a *Authenticator) recent(r *httpmsg.Request, row *rpc.Session) error {
	for _, f := range fresh {
		if f.method == r.Method && f.route == r.Route && !a.lately(row) {
			return rpc.ErrSignInAgain()
		}
	}
	return nil
}

// refused returns the refusal of a session that belongs to another machine, or to
// a key where the operator is needed.
func refused() error {
	return apierr.New(401, "invalid_api_key",
		"This session may not do this. Sign in with the operator token, or with a management key of the machine.")
}
