package oidc

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/people"
	"weir/pkg/wire/httpmsg"
)

// Kinds of identity providers whose tokens come with a call. The kind of an issuer at which people
// sign in is "".
const (
	CloudflareAccess = "cloudflare-access"
	GoogleIAP        = "google-iap"
	CI               = "ci" // GitHub Actions, GitLab
	// Passkey admits passkeys of people without an identity provider; see package passkey. It has no tokens.
	Passkey = "passkey"
)

// recheck is how old a token of a call may be, in seconds: a person who has left is out after
// that time.
const recheck = 12 * 3600

// proxies are the proxies that sign who calls. issuer is that of all their tokens, "" if the
// operator names it; keys is their JWKS, which may be below the issuer.
var proxies = [...]struct{ kind, header, issuer, keys string }{
	{CloudflareAccess, "cf-access-jwt-assertion", "", accessKeys},
	{GoogleIAP, "x-goog-iap-jwt-assertion", "https://cloud.google.com/iap", "https://www.gstatic.com/iap/verify/public_key-jwk"},
}

// accessKeys is where Cloudflare Access has its keys, below the address of a team.
const accessKeys = "/cdn-cgi/access/certs"

// isTeam reports whether an address is that of a team at Cloudflare Access.
func isTeam(address string) bool {
	name, ok := strings.CutPrefix(address, "https://")
	name, team := strings.CutSuffix(name, ".cloudflareaccess.com")
	return ok && team && name != "" && !strings.ContainsAny(name, "/.:@")
}

// Assertion returns the token that a proxy has added to a call, and the kind of the proxy; "" without
// one. It is not verified.
func Assertion(h httpmsg.Header) (kind, token string) {
	for i := range proxies {
		if v := h.Get(proxies[i].header); v != "" {
			return proxies[i].kind, v
		}
	}
	return "", ""
}

// IsKind reports whether a kind of provider exists.
func IsKind(kind string) bool {
	return kind == "" || kind == CI || kind == CloudflareAccess || kind == GoogleIAP || kind == Passkey
}

// CheckIssuer reports whether a provider of a kind may have an issuer. form is how a valid one looks.
func CheckIssuer(kind, issuer string) (form string, ok bool) {
	for i := range proxies {
		if p := &proxies[i]; p.kind == kind && p.issuer != "" {
			return p.issuer, issuer == p.issuer
		}
	}
	return "https://TEAM.cloudflareaccess.com", kind != CloudflareAccess || isTeam(issuer)
}

// Chosen returns the provider of a kind that verifies a token, by its iss and aud, which are not verified: the
// first one of the issuer if none has the audience, and nil without one.
func Chosen(all []*Provider, kind, token string) (chosen *Provider) {
	parts := strings.Split(token, ".")
	if len(token) > maxToken || len(parts) != 3 {
		return nil
	}
	raw, err := decode(parts[1])
	if err != nil || !isObject(raw) {
		return nil
	}
	claims := gjson.ParseBytes(raw)
	for _, p := range all {
		if p.Kind == kind && p.Issuer == text(claims, "iss") && (chosen == nil || names(member(claims, "aud"), p.ClientID)) {
			chosen = p
		}
	}
	return chosen
}

// names reports whether an audience is a client, or has it.
func names(aud gjson.Result, client string) bool {
	return slices.ContainsFunc(aud.Array(), func(a gjson.Result) bool { return a.Type == gjson.String && a.Str == client })
}

// keysOf returns where the keys of a provider are.
func (c *Client) keysOf(ctx context.Context, p *Provider) (string, error) {
	for i := range proxies {
		switch {
		case proxies[i].kind != p.Kind:
		case strings.HasPrefix(proxies[i].keys, "/"):
			return strings.TrimSuffix(p.Issuer, "/") + proxies[i].keys, nil
		default:
			return proxies[i].keys, nil
		}
	}
	m, err := c.discover(ctx, p.Issuer)
	if err != nil {
		return "", err
	}
	return m.keys, nil
}

// Bearer is the person or the CI job of a token that came with a call.
type Bearer struct {
	Identity  people.Identity
	At, Until int64 // when the token was issued and when it expires, Unix seconds
}

// Bearer verifies a token of a proxy or a CI service.
func (c *Client) Bearer(ctx context.Context, p *Provider, token string) (*Bearer, error) {
	keys, err := c.keysOf(ctx, p)
	if err != nil {
		return nil, err
	}
	claims, err := c.claims(ctx, keys, token, &expect{Issuer: p.Issuer, ClientID: p.ClientID, Now: c.Now().Unix(),
		MaxAge: recheck})
	if err != nil {
		return nil, err
	}
	b := &Bearer{Identity: *identity(claims), At: member(claims, "iat").Int(), Until: member(claims, "exp").Int()}
	if p.Kind == CI {
		b.Identity.Name, b.Identity.Email = b.Identity.Subject, ""
	} else {
		b.Identity.Name = cmp.Or(b.Identity.Name, b.Identity.Email)
		b.Identity.EmailVerified, b.Identity.Claims = true, []byte(claims.Raw) // the proxy vouches for the address
	}
	return b, nil
}

// Logout verifies a logout token. It returns the id of the person, "" if it names none, and the digest of
// the session at the provider, "" if it ends all.
func (c *Client) Logout(ctx context.Context, p *Provider, token string) (person, session string, err error) {
	keys, err := c.keysOf(ctx, p)
	if err != nil {
		return "", "", err
	}
	claims, err := c.claims(ctx, keys, token, &expect{Issuer: p.Issuer, ClientID: p.ClientID, Now: c.Now().Unix(),
		MaxAge: freshFor, Logout: true})
	if err != nil {
		return "", "", err
	}
	if sub := text(claims, "sub"); sub != "" {
		person = (&people.Identity{Issuer: p.Issuer, Subject: sub}).ID()
	}
	return person, SessionOf(p.Issuer, []byte(claims.Raw)), nil
}

// SessionOf returns the digest of the session at the provider that claims name by sid, "" without one.
func SessionOf(issuer string, claims []byte) string {
	sid := text(gjson.ParseBytes(claims), "sid")
	if sid == "" {
		return ""
	}
	return (&people.Identity{Issuer: issuer, Subject: "sid " + sid}).ID()
}

// Examine asks a provider again for what weir reads of it. It returns what may keep people from
// signing in.
func (c *Client) Examine(ctx context.Context, p *Provider) (findings []string, err error) {
	if p.Kind == "" || p.Kind == CI {
		raw, err := c.fetch(ctx, discoveryOf(p.Issuer))
		if err != nil {
			return nil, err
		}
		if _, err := c.read(raw, p.Issuer); err != nil {
			return nil, err
		}
		findings = p.missing(gjson.ParseBytes(raw))
	}
	keys, err := c.keysOf(ctx, p)
	if err != nil {
		return nil, err
	}
	raw, err := c.fetch(ctx, keys)
	if err != nil {
		return nil, err
	}
	if !usable(raw) {
		findings = append(findings, "It has no key for RS256, PS256, ES256 or EdDSA.")
	}
	return findings, nil
}

// missing compares a discovery document with what a sign-in needs. A list that the document does not have says
// nothing.
func (p *Provider) missing(d gjson.Result) (findings []string) {
	lacks := func(list, value string) bool {
		l := member(d, list)
		if !l.IsArray() {
			return false
		}
		for _, v := range l.Array() {
			if v.Str == value {
				return false
			}
		}
		return true
	}
	if p.Kind == "" && lacks("response_types_supported", "code") {
		findings = append(findings, "It does not offer the code flow.")
	}
	if p.Kind == "" && lacks("code_challenge_methods_supported", "S256") {
		findings = append(findings, "It does not name PKCE with S256. Allow it for the client.")
	}
	signs := false
	for i := range algorithms {
		signs = signs || !lacks("id_token_signing_alg_values_supported", algorithms[i].name)
	}
	if !signs {
		findings = append(findings, "It signs with none of RS256, PS256, ES256 and EdDSA.")
	}
	for _, s := range p.Scopes {
		if p.Kind == "" && lacks("scopes_supported", s) {
			findings = append(findings, "It does not name the scope "+s+".")
		}
	}
	for i := range p.Rules {
		if claim := p.Rules[i].Claim[0]; lacks("claims_supported", claim) {
			findings = append(findings, "It does not name the claim "+claim+" of a rule. A mapper of the client may still add it.")
		}
	}
	return findings
}

// usable reports whether a JWKS has a key that can verify.
func usable(keys []byte) bool {
	for _, k := range member(gjson.ParseBytes(keys), "keys").Array() {
		for i := range algorithms {
			if _, err := (&JWS{alg: algorithms[i].name}).fit(k); err == nil {
				return true
			}
		}
	}
	return false
}
