package session

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/people"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// SignIn is a person who signs in by an identity provider.
type SignIn struct {
	Identity people.Identity
	Rules    []people.Rule // of the provider
	Invite   string        // the digest of an invitation's secret, "" for none
	Sid      string        // the digest of the session at the provider, "" for none
}

// Prefixes of the secrets of people, which have 256 bits.
const (
	TokenPrefix  = "wp_" // a personal sign-in token
	InvitePrefix = "wi_" // an invitation
)

// OpenPerson opens a session for a person whose identity is verified, and answers as Create. A
// person without a role and without an invitation is refused.
func (s *Sessions) OpenPerson(ctx context.Context, c *auth.Call, in *SignIn) (*httpmsg.Response, error) {
	roles, err := people.Resolve(in.Rules, in.Identity.Claims)
	if err != nil {
		return nil, noAccess(err)
	}
	return s.openPerson(ctx, c, &rpc.PersonSignIn{Identity: &in.Identity, Roles: roles, Invite: in.Invite,
		Session: rpc.SessionOpen{Sid: in.Sid}}, "")
}

// OpenBearer opens a session of a program, until a time in Unix milliseconds. text is what the
// program sends as a bearer token.
func (s *Sessions) OpenBearer(ctx context.Context, in *SignIn, until int64) (text string, v View, err error) {
	roles, err := people.Resolve(in.Rules, in.Identity.Claims)
	if err != nil {
		return "", v, noAccess(err)
	}
	t, err := s.newTicket()
	if err != nil {
		return "", v, err
	}
	row, err := rpc.Call[rpc.Session](ctx, s.Objects, rpc.RegistryID, "person.signIn", rpc.PersonSignIn{
		Identity: &in.Identity, Roles: roles, Session: rpc.SessionOpen{Digest: t.digest(), Until: until}})
	if err != nil {
		return "", v, err
	}
	return bearerPrefix + s.text(t), s.view(t, &row), nil
}

// noAccess refuses a person whose claims give no roles.
func noAccess(err error) error {
	e := apierr.New(403, "no_access", "No access: %s.", err.Error())
	e.Err = err
	return e
}

// proxied returns the session of a person whom a proxy shows; nil for none. The header is sent by a browser
// as a cookie is, so a change must come from a page of this gateway.
func (s *Sessions) proxied(ctx context.Context, r *httpmsg.Request) (*rpc.Session, error) {
	if s.Proxy == nil || r.Header.Get("authorization") != "" || r.Header.Get("x-api-key") != "" {
		return nil, nil
	}
	row, err := s.Proxy(ctx, r)
	switch {
	case err != nil || row == nil:
	case r.Method != "GET" && r.Method != "HEAD":
		err = SameOrigin(r)
	case crossSite(r):
		err = errCrossSite()
	}
	if err != nil {
		return nil, err
	}
	return row, nil
}

// NewSecret returns a secret with a prefix.
func NewSecret(random io.Reader, prefix string) (string, error) {
	var b [32]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("make a secret: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// Open opens the session of a person whose sign-in is verified, and answers as Create.
func (s *Sessions) Open(ctx context.Context, c *auth.Call, in *rpc.PersonSignIn) (*httpmsg.Response, error) {
	return s.openPerson(ctx, c, in, "")
}

// openPerson opens the session of a person. token is the new personal token, which is shown once.
func (s *Sessions) openPerson(ctx context.Context, c *auth.Call, in *rpc.PersonSignIn,
	token string) (*httpmsg.Response, error) {
	t, err := s.newTicket()
	if err != nil {
		return nil, err
	}
	s.opening(c, t, &in.Session)
	if before, ok := s.readCookie(c.Header); ok {
		if before.home == t.home {
			in.Session.Replaces = before.digest()
		} else if err := s.end(ctx, before, false); err != nil {
			return nil, err
		}
	}
	row, err := rpc.Call[rpc.Session](ctx, s.Objects, rpc.RegistryID, "person.signIn", in)
	if err != nil {
		return nil, s.refused(ctx, c.Request, err)
	}
	v := s.view(t, &row)
	v.Token = token
	resp, err := answer(v)
	if err != nil {
		return nil, err
	}
	resp.Header.Add("set-cookie", s.cookie(t))
	return resp, nil
}

// accept signs in by an invitation alone. The answer has the token of the next sign-ins.
func (s *Sessions) accept(ctx context.Context, c *auth.Call, invite, name string) (*httpmsg.Response, error) {
	token, err := NewSecret(s.Rand, TokenPrefix)
	if err != nil {
		return nil, err
	}
	return s.openPerson(ctx, c,
		&rpc.PersonSignIn{Invite: rpc.KeyDigest(invite), Name: name, NewToken: rpc.KeyDigest(token)}, token)
}

// offer returns what an invitation is for, without accepting it. It is refused and limited as accept is.
func (s *Sessions) offer(ctx context.Context, c *auth.Call, invite string) (*httpmsg.Response, error) {
	o, err := rpc.Call[rpc.InvitationOffer](ctx, s.Objects, rpc.RegistryID, "invite.show",
		map[string]string{"digest": rpc.KeyDigest(invite)})
	if err != nil {
		return nil, s.refused(ctx, c.Request, err)
	}
	return answer(o)
}

// person returns the call of a person's session to a machine.
func person(r *httpmsg.Request, row *rpc.Session, pathMachine string) (*auth.Call, error) {
	if !rpc.IsMachineID(pathMachine) {
		return nil, apierr.Invalid("", "Name the machine in the path, as in /{machineId}/api/keys.")
	}
	g := row.Person.Roles.Of(pathMachine)
	if !g.Role.Valid() {
		return nil, errNoRole()
	}
	p := &rpc.Person{ID: row.Person.ID, Name: row.Person.Name, Role: g.Role, SeenAt: row.Person.SeenAt}
	if g.Role == people.Member {
		p.Template = g.Template
	}
	return &auth.Call{Request: r, Person: p, MachineID: pathMachine}, nil
}

// errNoRole is the same for a machine that does not exist.
func errNoRole() error {
	return apierr.New(403, "no_access", "You have no access to this machine. Ask one of its owners.")
}

// signInBody is the body of POST /api/session: a token, or an invitation with a name. Preview asks what the
// invitation is for.
type signInBody struct {
	Token      string `json:"token"`
	Invitation string `json:"invitation"`
	Name       string `json:"name"`
	Preview    bool   `json:"preview"`
}

// ofPerson serves the sign-ins of people in Create; it returns false for any other.
func (s *Sessions) ofPerson(ctx context.Context, c *auth.Call, in *signInBody) (*httpmsg.Response, bool, error) {
	switch {
	case in.Preview:
		resp, err := s.offer(ctx, c, in.Invitation)
		return resp, true, err
	case strings.HasPrefix(in.Invitation, InvitePrefix):
		resp, err := s.accept(ctx, c, in.Invitation, in.Name)
		return resp, true, err
	case strings.HasPrefix(in.Token, TokenPrefix):
		resp, err := s.openPerson(ctx, c, &rpc.PersonSignIn{Token: rpc.KeyDigest(in.Token)}, "")
		return resp, true, err
	}
	return nil, false, nil
}
