// Package session serves /api/session: people sign in to the dashboard with
// the operator's token or with a manage key, and a cookie stands for it from
// then on.
//
// The cookie has a random id of 256 bits; the object of the machine, or the registry for the operator, keeps its
// digest. A session ends 12 hours after the sign-in, when it is told to, and with the token or key that opened it.
// See docs/reference/reliability.md, T27, T31–T33.
package session

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/netip"
	"time"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/people"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// credentials is the part of auth.Authenticator used here.
type credentials interface {
	Data(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
	Realtime(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
	Key(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
	List(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
	Manage(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
	Operator(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
	Metrics(ctx context.Context, r *httpmsg.Request, pathMachine string) (*auth.Call, error)
}

// Sessions opens, checks and ends sessions.
type Sessions struct {
	Credentials credentials
	Objects     rpc.Stub
	Rand        io.Reader
	Now         func() time.Time
	// KeySecret is the worker secret API_KEY_SECRET: it checks the form of a
	// key, and makes the CSRF token of a session.
	KeySecret []byte
	// AdminToken is the SHA-256 of the worker secret ADMIN_TOKEN. The
	// operator's sessions die with it.
	AdminToken [32]byte
	// SpendCode reports whether a text is a one-time code of the operator, which
	// is invalid from then on. It may be nil.
	SpendCode func(code string) bool
	// Proxy returns the person whom a proxy in front of the gateway has signed a call for; nil for
	// none. It may be nil.
	Proxy func(ctx context.Context, r *httpmsg.Request) (*rpc.Session, error)
}

const (
	operator        = "operator"         // account of the operator token
	wrongCredential = "wrong_credential" // reason of a record
)

// View is what the dashboard knows of its session.
type View struct {
	SignedIn  bool   `json:"signedIn"`
	Operator  bool   `json:"operator"`
	MachineID string `json:"machineId,omitempty"` // of a manage key
	KeyName   string `json:"keyName,omitempty"`
	KeyID     string `json:"keyId,omitempty"` // the manage key it was opened with
	// PersonID, PersonName and Roles, by machineId or "*", are of a person.
	PersonID   string                 `json:"personId,omitempty"`
	PersonName string                 `json:"personName,omitempty"`
	Roles      map[string]people.Role `json:"roles,omitempty"`
	// Token is the personal sign-in token of someone who has accepted an invitation. It is
	// shown this once.
	Token string `json:"token,omitempty"`
	// CSRFToken goes with every mutation, in the field x-csrf-token.
	CSRFToken string `json:"csrfToken,omitempty"`
	IdleAt    int64  `json:"idleAt,omitempty"` // Unix milliseconds
	ExpiresAt int64  `json:"expiresAt,omitempty"`
}

// Create serves POST /api/session.
//
//	{"token":"…"} → 200 View, and the cookie; 401; 429 after ten wrong ones from an address
//
// The token is the operator's, a manage key, or a one-time code. Instead, {"invitation","name"} accepts an
// invitation, and {"invitation","preview":true} answers with a rpc.InvitationOffer.
func (s *Sessions) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	if err := SameOrigin(c.Request); err != nil {
		return nil, err
	}
	raw, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	var in signInBody
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if d.Decode(&in) != nil || d.More() || (in.Token == "") == (in.Invitation == "") ||
		in.Preview && in.Invitation == "" {
		return nil, apierr.Invalid("token", "The body must be {token} or {invitation, name}.")
	}
	if resp, done, err := s.ofPerson(ctx, c, &in); done {
		return resp, err
	}
	if s.SpendCode != nil && s.SpendCode(in.Token) {
		return s.open(ctx, c, operator, &auth.Call{Request: c.Request, Operator: true})
	}
	account := operator
	if k, ok := rpc.ParseKey(in.Token); ok && !k.Old() && k.CheckOK(s.KeySecret) {
		account = k.MachineID
	}
	who, err := s.judge(ctx, c.Request, account, in.Token)
	if err != nil {
		return nil, s.refused(ctx, c.Request, err)
	}
	return s.open(ctx, c, account, who)
}

// refused returns what a failed sign-in is answered with, and counts one that is refused. Valid credentials are
// never limited, so guessing locks out no one else.
func (s *Sessions) refused(ctx context.Context, r *httpmsg.Request, err error) error {
	if isRefusal(err) {
		if late := s.Failed(ctx, r, wrongCredential); late != nil {
			return late
		}
	}
	return err
}

// Failed counts a failed sign-in, and records it if a reason is given. It returns an error if the address has had
// too many.
func (s *Sessions) Failed(ctx context.Context, r *httpmsg.Request, reason string) error {
	in := rpc.SignInFailed{From: s.From(r), Reason: reason}
	if reason != "" {
		in.Network = store.NetworkOf(r.Header.Get("cf-connecting-ip"))
	}
	_, err := rpc.Call[struct{}](ctx, s.Objects, rpc.RegistryID, "session.failed", in)
	return err
}

// From returns a digest of the client's address as the platform reports it, of
// IPv6 the /64 prefix.
func (s *Sessions) From(r *httpmsg.Request) string {
	address := r.Header.Get("cf-connecting-ip")
	if ip, err := netip.ParseAddr(address); err == nil && ip.Is6() && !ip.Is4In6() {
		if p, err := ip.Prefix(64); err == nil {
			address = p.String()
		}
	}
	mac := hmac.New(sha256.New, s.KeySecret)
	mac.Write([]byte("from:" + address))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// judge authenticates a credential and returns the call of its account.
func (s *Sessions) judge(ctx context.Context, r *httpmsg.Request, account, token string) (*auth.Call, error) {
	shown := &httpmsg.Request{ID: r.ID, Path: r.Path, Header: httpmsg.Header{{Name: "authorization",
		Value: "Bearer " + token}}}
	if account == operator {
		return s.Credentials.Operator(ctx, shown, "")
	}
	return s.Credentials.Manage(ctx, shown, account)
}

func (s *Sessions) newTicket() (ticket, error) {
	id, err := NewSecret(s.Rand, "")
	return ticket{home: rpc.RegistryID, id: id}, err
}

// opening puts a ticket and the address of a call into the request for a session.
func (s *Sessions) opening(c *auth.Call, t ticket, in *rpc.SessionOpen) {
	in.Digest = t.digest()
	if in.Address = c.Header.Get("cf-connecting-ip"); in.Address != "" {
		in.From = s.From(c.Request)
	}
}

func (s *Sessions) open(ctx context.Context, c *auth.Call, account string, who *auth.Call) (*httpmsg.Response, error) {
	t, err := s.newTicket()
	if err != nil {
		return nil, err
	}
	in := rpc.SessionOpen{Bound: s.bound()}
	s.opening(c, t, &in)
	if who.Key != nil {
		t.home, in.KeyID, in.KeyDigest = who.MachineID, who.Key.ID, hex.EncodeToString(who.KeyDigest[:])
	}
	if before, ok := s.readCookie(c.Header); ok {
		if before.home == t.home {
			in.Replaces = before.digest()
		} else if err := s.end(ctx, before, false); err != nil {
			return nil, err
		}
	}
	row, err := rpc.Call[rpc.Session](ctx, s.Objects, t.home, "session.open", in)
	if err != nil {
		return nil, err
	}
	resp, err := answer(s.view(t, &row))
	if err != nil {
		return nil, err
	}
	resp.Header.Add("set-cookie", s.cookie(t))
	return resp, nil
}

// Show serves GET /api/session: who is signed in, also when no one is.
func (s *Sessions) Show(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	t, ok := s.readCookie(c.Header)
	if !ok {
		t, ok = s.readBearer(c.Header)
	}
	if crossSite(c.Request) {
		return answer(View{})
	}
	if !ok {
		row, err := s.proxied(ctx, c.Request)
		if err != nil || row == nil {
			return respond(View{}, err)
		}
		return answer(s.view(t, row))
	}
	row, err := s.check(ctx, t)
	if isRefusal(err) {
		resp, err := answer(View{})
		if err == nil {
			resp.Header.Add("set-cookie", goneCookie)
		}
		return resp, err
	}
	if err != nil {
		return nil, err
	}
	return answer(s.view(t, row))
}

// End serves DELETE /api/session: the session is over; with ?all=true every
// session of the same token or key.
func (s *Sessions) End(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	if c.Query != "" && c.Query != "all=true" {
		return nil, apierr.Invalid("all", "The only value of all is true.")
	}
	t, ok := s.readCookie(c.Header)
	if !ok {
		t, ok = s.readBearer(c.Header)
	}
	if ok {
		if err := s.checkMutation(c.Request, t); err != nil {
			return nil, err
		}
		if err := s.end(ctx, t, c.Query != ""); err != nil {
			return nil, err
		}
	}
	return &httpmsg.Response{Status: 204, Header: httpmsg.Header{{Name: "set-cookie", Value: goneCookie}}}, nil
}

func (s *Sessions) end(ctx context.Context, t ticket, all bool) error {
	_, err := rpc.Call[struct{}](ctx, s.Objects, t.home, "session.end", map[string]any{"digest": t.digest(), "all": all})
	return err
}

// check asks the object whether a session lives.
func (s *Sessions) check(ctx context.Context, t ticket) (*rpc.Session, error) {
	in := map[string]string{"digest": t.digest(), "bound": s.bound()}
	row, err := rpc.Call[*rpc.Session](ctx, s.Objects, t.home, "session.check", in)
	if err != nil {
		return nil, err
	}
	if (row.Key == nil) != (t.home == rpc.RegistryID) {
		return nil, apierr.New(401, "session_expired", "Sign in again: the session has ended.")
	}
	return row, nil
}

func (s *Sessions) view(t ticket, row *rpc.Session) View {
	v := View{SignedIn: true, Operator: row.Key == nil && row.Person == nil, CSRFToken: s.csrf(t),
		IdleAt: row.IdleAt, ExpiresAt: row.ExpiresAt}
	if p := row.Person; p != nil {
		v.PersonID, v.PersonName, v.Roles = p.ID, p.Name, map[string]people.Role{}
		for machine := range p.Roles {
			if g := p.Roles.Of(machine); g.Role.Valid() {
				v.Roles[machine] = g.Role
			}
		}
	}
	if row.Key != nil {
		v.MachineID, v.KeyName, v.KeyID = t.home, row.Key.Name, row.Key.ID
	}
	return v
}

// csrf makes the CSRF token of a session. It cannot be had from the cookie
// without the worker's secret.
func (s *Sessions) csrf(t ticket) string {
	mac := hmac.New(sha256.New, s.KeySecret)
	mac.Write([]byte("csrf:" + t.id))
	return hex.EncodeToString(mac.Sum(nil))
}

// bound is a digest of the operator's token that is fit for storage.
func (s *Sessions) bound() string {
	sum := sha256.Sum256(append([]byte("session:"), s.AdminToken[:]...))
	return hex.EncodeToString(sum[:])
}

func respond(v View, err error) (*httpmsg.Response, error) {
	if err != nil {
		return nil, err
	}
	return answer(v)
}

func answer(v any) (*httpmsg.Response, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &httpmsg.Response{
		Status: 200,
		Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}},
		Body:   stream.FromBytes(b),
	}, nil
}
