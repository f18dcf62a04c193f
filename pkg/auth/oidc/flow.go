package oidc

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/people"
	"weir/pkg/wire/secret"
)

// Provider is an identity provider that people sign in with.
type Provider struct {
	ID, Issuer, ClientID string
	Kind                 string        // "" for one that people sign in at
	ClientSecret         secret.Secret // zero for a public client
	Scopes               []string      // beside openid; nil means email and profile
	Rules                []people.Rule
}

// Reasons for which a callback is refused.
const (
	errState    Refusal = "state_invalid" // of another browser, provider or gateway
	errOld      Refusal = "state_expired"
	errUsed     Refusal = "state_used"
	errQuery    Refusal = "callback_invalid"
	errMixUp    Refusal = "issuer_mixed_up"
	errDenied   Refusal = "provider_refused" // the person, or the provider
	errNoAnswer Refusal = "token_missing"
	// ErrUnknownIssuer reports a token of an issuer that is not configured.
	ErrUnknownIssuer Refusal = "issuer_unknown"
	// ErrTooManyGroups is people.ErrTooManyGroups as a reason.
	ErrTooManyGroups Refusal = "too_many_groups"
)

const flowFor = 10 * 60 // seconds

// Flow is the code flow with PKCE. Nothing of a flow is stored before it ends: its state is
// signed and belongs to the browser that keeps the ticket, and nonce and verifier are derived
// from it. So beginning sign-ins cannot fill the storage, or push out those of others.
type Flow struct {
	*Client
	KeySecret []byte // API_KEY_SECRET
	Rand      io.Reader
	// Spend stores that a state, by its digest, was used, until a time in Unix seconds. It
	// reports false if it was before.
	Spend func(ctx context.Context, digest string, until int64) (bool, error)
}

// derive returns a value that only this gateway knows: 43 characters of base64url.
func (f *Flow) derive(what string, parts ...string) string {
	mac := hmac.New(sha256.New, f.KeySecret)
	mac.Write([]byte("oidc " + what))
	for _, p := range parts {
		fmt.Fprintf(mac, " %d:%s", len(p), p)
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Begin returns the address at which a person signs in. ticket is the secret of the browser,
// and invite the digest of an invitation or "".
func (f *Flow) Begin(ctx context.Context, p *Provider, ticket, redirectURI, invite string) (string, error) {
	m, err := f.discover(ctx, p.Issuer)
	if err != nil {
		return "", err
	}
	var b [32]byte
	if _, err := io.ReadFull(f.Rand, b[:]); err != nil {
		return "", fmt.Errorf("make a state: %w", err)
	}
	head := strings.Join([]string{base64.RawURLEncoding.EncodeToString(b[:]),
		strconv.FormatInt(f.Now().Unix(), 36), p.ID, invite}, ".")
	state := head + "." + f.derive("state", head, ticket, p.Issuer)
	scopes := p.Scopes
	if scopes == nil {
		scopes = []string{"email", "profile"}
	}
	challenge := sha256.Sum256([]byte(f.derive("verifier", state, ticket)))
	q := url.Values{
		"response_type": {"code"}, "client_id": {p.ClientID}, "redirect_uri": {redirectURI}, "state": {state},
		"scope": {strings.Join(append([]string{"openid"}, scopes...), " ")}, "nonce": {f.derive("nonce", state, ticket)},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(challenge[:])},
		"code_challenge_method": {"S256"},
	}
	join := "?"
	if strings.Contains(m.authorization, "?") {
		join = "&"
	}
	return m.authorization + join + q.Encode(), nil
}

// ProviderOf returns the id of the provider that the query of a callback names, not verified,
// and the digest of the invitation.
func ProviderOf(query string) (id, invite string) {
	q, err := url.ParseQuery(query)
	if parts := strings.Split(q.Get("state"), "."); err == nil && len(parts) == 5 {
		return parts[2], parts[3]
	}
	return "", ""
}

// Finish returns who has signed in, by the query of the callback. An error that is a Refusal
// says why the sign-in failed.
func (f *Flow) Finish(ctx context.Context, p *Provider, ticket, redirectURI, query string) (*people.Identity, error) {
	q, err := url.ParseQuery(query)
	for _, values := range q {
		if err != nil || len(values) != 1 {
			return nil, errQuery
		}
	}
	state := q.Get("state")
	if err := f.state(ctx, p, ticket, state); err != nil {
		return nil, err
	}
	if q.Has("error") {
		return nil, errDenied
	}
	m, err := f.discover(ctx, p.Issuer)
	if err != nil {
		return nil, err
	}
	if (q.Has("iss") || m.sendsIss) && q.Get("iss") != p.Issuer {
		return nil, errMixUp
	}
	if q.Get("code") == "" {
		return nil, errQuery
	}
	tokens, err := f.exchange(ctx, m, p, url.Values{"grant_type": {"authorization_code"}, "code": {q.Get("code")},
		"redirect_uri": {redirectURI}, "code_verifier": {f.derive("verifier", state, ticket)}})
	if err != nil {
		return nil, err
	}
	token, access := text(tokens, "id_token"), text(tokens, "access_token")
	if token == "" {
		return nil, errNoAnswer
	}
	claims, err := f.claims(ctx, m.keys, token, &expect{Issuer: p.Issuer, ClientID: p.ClientID, Now: f.Now().Unix(),
		Nonce: f.derive("nonce", state, ticket), AccessToken: access, MaxAge: freshFor})
	if err != nil {
		return nil, err
	}
	if m.userinfo != "" && access != "" && p.lacks(claims) {
		more, err := f.userinfo(ctx, m, access, text(claims, "sub"))
		if err != nil {
			return nil, err
		}
		claims = merge(claims, more)
	}
	return identity(claims), nil
}

// state checks that a state is of this gateway, for this browser and provider, within
// ten minutes, and spends it.
func (f *Flow) state(ctx context.Context, p *Provider, ticket, state string) error {
	at := strings.LastIndexByte(state, '.')
	parts := strings.Split(state, ".")
	if len(parts) != 5 || ticket == "" || parts[2] != p.ID ||
		!hmac.Equal([]byte(parts[4]), []byte(f.derive("state", state[:at], ticket, p.Issuer))) {
		return errState
	}
	begun, err := strconv.ParseInt(parts[1], 36, 64)
	if now := f.Now().Unix(); err != nil || now >= begun+flowFor || begun > now+skew {
		return errOld
	}
	digest := sha256.Sum256([]byte(state))
	fresh, err := f.Spend(ctx, hex.EncodeToString(digest[:]), begun+flowFor)
	if err == nil && !fresh {
		err = errUsed
	}
	return err
}

// isAbsent reports whether claims do not have a name. One that the provider has left out for its
// size is not absent, and is not asked for again.
func isAbsent(claims gjson.Result, name string) bool {
	return !member(claims, name).Exists() && !member(member(claims, "_claim_names"), name).Exists()
}

// lacks reports whether a claim is absent that a rule reads, or the person's name or address.
func (p *Provider) lacks(claims gjson.Result) bool {
	names := []string{"email", "name"}
	for i := range p.Rules {
		if path := p.Rules[i].Claim; len(path) > 0 {
			names = append(names, path[0])
		}
	}
	return slices.ContainsFunc(names, func(name string) bool { return isAbsent(claims, name) })
}

// merge returns claims with those of userinfo that are absent from them.
func merge(claims, more gjson.Result) gjson.Result {
	out := strings.TrimSpace(claims.Raw)
	out = out[:len(out)-1]
	more.ForEach(func(name, value gjson.Result) bool {
		if isAbsent(claims, name.Str) {
			out += "," + name.Raw + ":" + value.Raw
		}
		return true
	})
	return gjson.Parse(out + "}")
}

// identity returns the person of verified claims. They have iss and sub, so they are not empty. No rule
// sees an address that the provider does not call verified: anyone can enter that of another.
func identity(c gjson.Result) *people.Identity {
	verified := member(c, "email_verified")
	name := cmp.Or(text(c, "name"), text(c, "preferred_username"))
	out := &people.Identity{Issuer: text(c, "iss"), Subject: text(c, "sub"), Name: name, Email: text(c, "email"),
		EmailVerified: verified.Type == gjson.True || verified.Str == "true", Claims: []byte(c.Raw)}
	if !out.EmailVerified {
		out.Claims = without(c, "email")
	}
	return out
}

// without returns an object without a member.
func without(object gjson.Result, name string) []byte {
	out := []byte{'{'}
	object.ForEach(func(key, value gjson.Result) bool {
		if key.Str == name {
			return true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key.Raw...), ':'), value.Raw...)
		return true
	})
	return append(out, '}')
}
