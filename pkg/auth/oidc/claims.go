package oidc

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"

	"github.com/tidwall/gjson"
)

const (
	skew     = 60      // seconds that clocks may differ
	freshFor = 10 * 60 // seconds after which an ID token is not that of this sign-in
	maxClaim = 256     // bytes of a sub
)

// expect is what a token must say.
type expect struct {
	Issuer, ClientID string
	Now              int64 // Unix seconds
	// Nonce is that of the sign-in; "" if the token is of no sign-in.
	Nonce string
	// AccessToken is compared with at_hash; "" without one.
	AccessToken string
	// MaxAge is how many seconds ago a token may have been issued; 0 does not limit that: a
	// proxy sends the same one until it expires.
	MaxAge int64
	Logout bool
}

// check checks the claims of a token whose signature is right. It returns them.
func (x *expect) check(t *JWS) (gjson.Result, error) {
	c := gjson.ParseBytes(t.Claims)
	if x.Issuer == "" || x.ClientID == "" || text(c, "iss") != x.Issuer {
		return c, errIssuer
	}
	if !x.audience(c) {
		return c, errAudience
	}
	if err := x.times(c); err != nil {
		return c, err
	}
	sub := member(c, "sub")
	if sub.Exists() && (sub.Type != gjson.String || len(sub.Str) > maxClaim) || sub.Str == "" && !x.Logout {
		return c, errSubject
	}
	nonce := member(c, "nonce")
	if x.Logout {
		return c, logout(c, nonce)
	}
	if x.Nonce != "" && (nonce.Type != gjson.String ||
		subtle.ConstantTimeCompare([]byte(nonce.Str), []byte(x.Nonce)) != 1) {
		return c, errNonce
	}
	if h := member(c, "at_hash"); h.Exists() && x.AccessToken != "" && h.Str != halfHash(t.alg, x.AccessToken) {
		return c, errHash
	}
	return c, nil
}

// text returns a claim that is a string, "" if it is absent or anything else.
func text(c gjson.Result, name string) string {
	if v := member(c, name); v.Type == gjson.String {
		return v.Str
	}
	return ""
}

// audience reports whether a token is meant for the client: alone, or as the authorized party.
func (x *expect) audience(c gjson.Result) bool {
	aud, azp := member(c, "aud"), member(c, "azp")
	if azp.Exists() && azp.Str != x.ClientID && x.Nonce != "" {
		return false
	}
	if aud.Type == gjson.String {
		return aud.Str == x.ClientID
	}
	if !aud.IsArray() {
		return false
	}
	all, found := aud.Array(), false
	for _, a := range all {
		found = found || a.Type == gjson.String && a.Str == x.ClientID
	}
	return found && (len(all) == 1 || azp.Str == x.ClientID)
}

// times checks exp, iat and nbf.
func (x *expect) times(c gjson.Result) error {
	exp, iat, nbf := member(c, "exp"), member(c, "iat"), member(c, "nbf")
	switch {
	case exp.Type != gjson.Number && !(x.Logout && !exp.Exists()): // it was optional in logout tokens
		return errExpired
	case exp.Exists() && exp.Num <= float64(x.Now-skew):
		return errExpired
	case iat.Type != gjson.Number:
		return errIssuedAt
	case iat.Num > float64(x.Now+skew):
		return errIssuedAt
	case x.MaxAge > 0 && iat.Num < float64(x.Now-x.MaxAge):
		return errIssuedAt
	case nbf.Exists() && (nbf.Type != gjson.Number || nbf.Num > float64(x.Now+skew)):
		return errTooEarly
	}
	return nil
}

const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// logout checks what OpenID Connect Back-Channel Logout 1.0, 2.6 asks of a token beside: an ID
// token ends no session.
func logout(c, nonce gjson.Result) error {
	if !member(member(c, "events"), logoutEvent).IsObject() || nonce.Exists() ||
		text(c, "sub") == "" && text(c, "sid") == "" || text(c, "jti") == "" {
		return errLogout
	}
	return nil
}

// halfHash returns the left half of the hash of an access token, as at_hash has it. EdDSA with
// Ed25519 hashes with SHA-512.
func halfHash(alg, token string) string {
	if alg == "EdDSA" {
		sum := sha512.Sum512([]byte(token))
		return base64.RawURLEncoding.EncodeToString(sum[:32])
	}
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
