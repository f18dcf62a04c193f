// Package oidc signs people in by OpenID Connect: it verifies ID tokens, finds the endpoints
// and keys of an identity provider, and serves the code flow with PKCE.
//
// It keeps the claims of a token, never the token. See OpenID Connect Core 1.0, RFC 7515,
// 7517, 7519, 7636, 9207 and 9700.
package oidc

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/tidwall/gjson"
)

// Verify reports whether sig is the signature of data by a public key, as in a JWS: r‖s for
// ES256. The key is a JWK with the members that its kty needs and no other; alg is RS256,
// PS256, ES256 or EdDSA, and fits the key. The platform fills it.
type Verify func(ctx context.Context, jwk []byte, alg string, data, sig []byte) (bool, error)

// Refusal is why a token or an answer is refused, as a word for the audit. It has no part of
// the token.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Text returns the reason as sentences for a person, without the last period.
func (r Refusal) Text() string {
	for _, t := range texts {
		if strings.HasPrefix(string(r), t.reason) {
			return t.text
		}
	}
	return "Start again"
}

// texts are the sentences of reasons, by the whole word or its beginning; the first one counts.
var texts = [...]struct{ reason, text string }{
	{"state_expired", "The sign-in took longer than ten minutes. Start again"},
	{"state_used", "This sign-in is finished already. Start again if you are not signed in"},
	{"state", "The sign-in was started in another browser. Start again in this one"},
	{"provider_refused", "The identity provider refused the sign-in, or it was canceled there"},
	{"callback_invalid", "The identity provider returned an incomplete answer. Start again"},
	{"issuer_address_refused", "The identity provider names an address that this gateway may not call"},
	{"issuer_unreachable", "The identity provider cannot be reached. Try again later, or sign in with a token"},
	{"issuer_answer_too_large", "The identity provider returned more than 64 KiB"},
	{"issuer_redirects", "The identity provider redirects to another address, which is not followed"},
	{"issuer_status", "The identity provider answered with an error. Its client id or secret may be wrong here"},
	{"issuer_document_invalid", "The identity provider did not return a JSON object, as OpenID Connect asks"},
	{"issuer_of_another_name", "The discovery document names another issuer. The issuer must be the same, letter by letter"},
	{"issuer_unknown", "No identity provider of this gateway has the issuer of the token"},
	{"issuer_mixed_up", "The answer came from another identity provider than the one that was asked. Start again"},
	{"passkey_expired", "Using the passkey took longer than five minutes. Start again"},
	{"passkey_used", "This sign-in is finished already. Start again if you are not signed in"},
	{"passkey_unknown", "This passkey was deleted here, or belongs to another gateway. Ask an owner for a new link"},
	{"passkey_unverified", "The passkey must ask for your fingerprint, face or PIN. Turn that on for it"},
	{"passkey_counter", "The passkey was used as often before. It may have been copied: delete it and create another"},
	{"passkey_key", "This passkey has a kind of key that is not supported: it must sign with ES256 or RS256"},
	{"passkey_taken", "This passkey is registered here already"},
	{"passkey", "The passkey is not one that this gateway can trust. Start again"},
	{"token_expired", "The token of the identity provider has expired. Compare the clocks of both"},
	{"token_issued_at", "The token of the identity provider was not issued just now. Compare the clocks of both"},
	{"token_not_yet_valid", "The token of the identity provider is not valid yet. Compare the clocks of both"},
	{"token_missing", "The identity provider returned no ID token. Its client must allow the scope openid"},
	{"token_audience", "The token of the identity provider is for another client"},
	{"token", "The token of the identity provider is not one that this gateway can trust"},
	{"too_many_groups", "You are in too many groups for the identity provider to list. Its administrator can use app roles instead"},
}

// Reasons for which a token is refused.
const (
	errForm      Refusal = "token_malformed"
	errAlgorithm Refusal = "token_algorithm"
	errHeader    Refusal = "token_header"
	errNoKey     Refusal = "token_key_unknown"
	errKeyType   Refusal = "token_key_unfit"
	errSignature Refusal = "token_signature"
	errIssuer    Refusal = "token_issuer"
	errAudience  Refusal = "token_audience"
	errExpired   Refusal = "token_expired"
	errTooEarly  Refusal = "token_not_yet_valid"
	errIssuedAt  Refusal = "token_issued_at"
	errNonce     Refusal = "token_nonce"
	errHash      Refusal = "token_hash"
	errSubject   Refusal = "token_subject"
	errLogout    Refusal = "token_not_for_logout"
)

const (
	maxToken   = 16 << 10 // bytes of a JWT
	maxKeys    = 100      // of a JWKS
	minModulus = 256      // bytes of n of an RSA key: 2048 bits
	maxModulus = 1024
)

// algorithms are those that are accepted, with the kty of their keys and the members that a
// key has then, in the order of RFC 7638, and its curve. HS256 and none are not among them.
var algorithms = [...]struct {
	name, kty, crv string
	members        []string
}{
	{"RS256", "RSA", "", []string{"e", "kty", "n"}},
	{"PS256", "RSA", "", []string{"e", "kty", "n"}},
	{"ES256", "EC", "P-256", []string{"crv", "kty", "x", "y"}},
	{"EdDSA", "OKP", "Ed25519", []string{"crv", "kty", "x"}},
}

// JWS is a token in its compact form.
type JWS struct {
	alg, kid string
	Claims   []byte // a JSON object
	signed   []byte
	sig      []byte
}

// Parse takes a token apart and checks its header.
func Parse(token string) (*JWS, error) {
	parts := strings.Split(token, ".")
	if len(token) > maxToken || len(parts) != 3 {
		return nil, errForm
	}
	head, err1 := decode(parts[0])
	claims, err2 := decode(parts[1])
	sig, err3 := decode(parts[2])
	if errors.Join(err1, err2, err3) != nil || !isObject(head) || !isObject(claims) || len(sig) == 0 {
		return nil, errForm
	}
	t := &JWS{Claims: claims, sig: sig, signed: []byte(token[:len(parts[0])+1+len(parts[1])])}
	h := gjson.ParseBytes(head)
	for _, name := range [...]string{"crit", "jku", "jwk", "x5u", "b64", "zip", "enc"} {
		if member(h, name).Exists() {
			return nil, errHeader
		}
	}
	alg, kid := member(h, "alg"), member(h, "kid")
	if alg.Type != gjson.String || algorithm(alg.Str) < 0 {
		return nil, errAlgorithm
	}
	if kid.Exists() && kid.Type != gjson.String {
		return nil, errHeader
	}
	t.alg, t.kid = alg.Str, kid.Str
	return t, nil
}

func algorithm(name string) int {
	for i := range algorithms {
		if algorithms[i].name == name {
			return i
		}
	}
	return -1
}

// decode decodes base64url without padding, in its one spelling.
func decode(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, errForm
	}
	return base64.RawURLEncoding.Strict().DecodeString(s)
}

// isObject reports whether a text is a JSON object in which no name comes twice: another
// reader would take the other value.
func isObject(raw []byte) bool {
	if !gjson.ValidBytes(raw) || !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		return false
	}
	seen, once := map[string]bool{}, true
	gjson.ParseBytes(raw).ForEach(func(name, _ gjson.Result) bool {
		once = once && !seen[name.Str]
		seen[name.Str] = true
		return once
	})
	return once
}

// member returns a member of an object by its exact name, which may have any characters.
func member(object gjson.Result, name string) (found gjson.Result) {
	if !object.IsObject() {
		return found
	}
	object.ForEach(func(key, value gjson.Result) bool {
		if key.Str == name {
			found = value
		}
		return !found.Exists()
	})
	return found
}

// key returns the key of a JWKS that a token is signed by, in the form that Verify takes.
// Without a kid it is the only key that fits.
func (t *JWS) key(keys []byte) (jwk []byte, err error) {
	n := 0
	err = errNoKey
	for _, k := range member(gjson.ParseBytes(keys), "keys").Array() {
		if n++; n > maxKeys {
			break
		}
		if t.kid != "" && member(k, "kid").Str != t.kid {
			continue
		}
		plain, why := t.fit(k)
		switch {
		case why != nil && t.kid != "":
			return nil, why
		case why != nil:
		case jwk != nil: // two keys fit
			return nil, errNoKey
		default:
			jwk, err = plain, nil
		}
	}
	return jwk, err
}

// fit returns the members of a key that Verify needs, if it may verify the token's
// algorithm.
func (t *JWS) fit(k gjson.Result) ([]byte, error) {
	a := &algorithms[algorithm(t.alg)]
	if member(k, "kty").Str != a.kty || member(k, "crv").Str != a.crv ||
		member(k, "use").Exists() && member(k, "use").Str != "sig" ||
		member(k, "alg").Exists() && member(k, "alg").Str != t.alg && member(k, "alg").Str != "Ed25519" ||
		member(k, "d").Exists() || member(k, "k").Exists() {
		return nil, errKeyType
	}
	if ops := member(k, "key_ops"); ops.Exists() && !strings.Contains(ops.Raw, `"verify"`) {
		return nil, errKeyType
	}
	out := []byte{'{'}
	for _, name := range a.members {
		v := member(k, name)
		if v.Type != gjson.String || name != "kty" && name != "crv" && !fits(name, v.Str) {
			return nil, errKeyType
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, `"`+name+`":"`+v.Str+`"`...)
	}
	return append(out, '}'), nil
}

// fits reports whether a number of a key has the size that is asked of it.
func fits(name, text string) bool {
	b, err := decode(text)
	if err != nil {
		return false
	}
	switch name {
	case "n":
		return len(b) >= minModulus && len(b) <= maxModulus && b[0] != 0
	case "e":
		return len(b) >= 1 && len(b) <= 4 && b[len(b)-1]&1 == 1 && !(len(b) == 1 && b[0] == 1)
	}
	return len(b) == 32
}

// Verify checks the signature by a key of a JWKS.
func (t *JWS) Verify(ctx context.Context, verify Verify, keys []byte) error {
	jwk, err := t.key(keys)
	if err != nil {
		return err
	}
	if kind := algorithms[algorithm(t.alg)].kty; kind != "RSA" && len(t.sig) != 64 {
		return errSignature
	}
	ok, err := verify(ctx, jwk, t.alg, t.signed, t.sig)
	if err != nil {
		return err
	}
	if !ok {
		return errSignature
	}
	return nil
}
