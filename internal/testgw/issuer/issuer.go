// Package issuer is an identity provider in memory, for tests: it signs what it is told to.
package issuer

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/url"
	"strings"
	"sync"

	"weir/internal/testgw/fake"
)

// Claims are the claims of a token, or its header.
type Claims map[string]any

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// Issuer is an identity provider. The fields may be changed while it serves.
type Issuer struct {
	URL string
	Alg string // of the tokens; "" is RS256
	// User has the claims of whoever signs in, Info those that userinfo alone has.
	User, Info Claims
	// Change, if set, changes the claims and the header of an ID token.
	Change func(header, claims Claims)
	// Token, if set, replaces the ID token.
	Token func(claims Claims) string
	// Answer, if set, answers a path in another way; status -1 leaves it as it is.
	Answer func(path string) fake.Answer
	// Seen counts the requests by path.
	Seen map[string]int

	ec    *ecdsa.PrivateKey
	ed    ed25519.PrivateKey
	codes map[string]url.Values // authorizations by code
	mu    sync.Mutex
}

// New returns an identity provider at a URL.
func New(address string) *Issuer {
	ec, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, ed, err2 := ed25519.GenerateKey(rand.Reader)
	if err1 != nil || err2 != nil {
		panic("no keys")
	}
	return &Issuer{URL: address, ec: ec, ed: ed, Seen: map[string]int{}, codes: map[string]url.Values{}}
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Key returns the public key of an algorithm as a JWK; its kid is the algorithm.
func (s *Issuer) Key(alg string) Claims {
	k := Claims{"kid": alg, "use": "sig", "alg": alg}
	switch alg {
	case "ES256":
		point, _ := s.ec.PublicKey.Bytes()
		maps.Copy(k, Claims{"kty": "EC", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])})
	case "EdDSA":
		maps.Copy(k, Claims{"kty": "OKP", "crv": "Ed25519", "x": b64(s.ed.Public().(ed25519.PublicKey))})
	default:
		maps.Copy(k, Claims{"kty": "RSA", "n": b64(rsaKey().N.Bytes()), "e": b64(big.NewInt(int64(rsaKey().E)).Bytes())})
	}
	return k
}

// Keys returns the JWKS.
func (s *Issuer) Keys() string {
	var list []Claims
	for _, alg := range []string{"RS256", "PS256", "ES256", "EdDSA"} {
		list = append(list, s.Key(alg))
	}
	return text(Claims{"keys": list})
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Sign returns a token. header takes precedence over alg and kid of the algorithm.
func (s *Issuer) Sign(alg string, header, claims Claims) string {
	head := Claims{"alg": alg, "kid": alg, "typ": "JWT"}
	maps.Copy(head, header)
	signed := b64([]byte(text(head))) + "." + b64([]byte(text(claims)))
	return signed + "." + b64(s.signature(alg, []byte(signed)))
}

func (s *Issuer) signature(alg string, data []byte) (sig []byte) {
	sum := sha256.Sum256(data)
	switch alg {
	case "RS256":
		sig, _ = rsa.SignPKCS1v15(nil, rsaKey(), crypto.SHA256, sum[:])
	case "PS256":
		sig, _ = rsa.SignPSS(rand.Reader, rsaKey(), crypto.SHA256, sum[:],
			&rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	case "ES256":
		r, t, _ := ecdsa.Sign(rand.Reader, s.ec, sum[:])
		sig = append(r.FillBytes(make([]byte, 32)), t.FillBytes(make([]byte, 32))...)
	case "EdDSA":
		sig = ed25519.Sign(s.ed, data)
	case "HS256": // with the public key as the secret, as in the known attack
		mac := hmac.New(sha256.New, rsaKey().N.Bytes())
		mac.Write(data)
		sig = mac.Sum(nil)
	}
	return sig
}

// Authorize plays a person who signs in at the address of an authorization. It returns the
// query with which the browser comes back.
func (s *Issuer) Authorize(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	q := u.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	code := "code-" + q.Get("state")[:8]
	s.codes[code] = q
	return url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {s.URL}}.Encode()
}

// Reply answers a call to the identity provider; it reports false for one of another host.
func (s *Issuer) Reply(call *fake.Seen, now int64) (fake.Answer, bool) {
	path, ok := strings.CutPrefix(call.URL, s.URL)
	if !ok {
		return fake.Answer{}, false
	}
	s.mu.Lock()
	s.Seen[path]++
	s.mu.Unlock()
	if s.Answer != nil {
		if a := s.Answer(path); a.Status >= 0 {
			return a, true
		}
	}
	switch path {
	case "/.well-known/openid-configuration":
		return fake.JSON(text(Claims{"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize",
			"token_endpoint": s.URL + "/token", "jwks_uri": s.URL + "/keys", "userinfo_endpoint": s.URL + "/userinfo",
			"end_session_endpoint":                           s.URL + "/logout",
			"authorization_response_iss_parameter_supported": true})), true
	case "/keys", "/cdn-cgi/access/certs":
		return fake.JSON(s.Keys()), true
	case "/token":
		return s.token(call.Body, now), true
	case "/userinfo":
		info := Claims{}
		maps.Copy(info, s.User)
		maps.Copy(info, s.Info)
		return fake.JSON(text(info)), true
	}
	return fake.Answer{Status: 404}, true
}

// token exchanges a code, once, for the verifier that fits the challenge.
func (s *Issuer) token(body string, now int64) fake.Answer {
	form, _ := url.ParseQuery(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.codes[form.Get("code")]
	delete(s.codes, form.Get("code"))
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	if !ok || b64(sum[:]) != q.Get("code_challenge") || form.Get("redirect_uri") != q.Get("redirect_uri") ||
		form.Get("grant_type") != "authorization_code" {
		a := fake.JSON(`{"error":"invalid_grant"}`)
		a.Status = 400
		return a
	}
	claims := Claims{"iss": s.URL, "aud": q.Get("client_id"), "nonce": q.Get("nonce"), "iat": now, "exp": now + 300}
	maps.Copy(claims, s.User)
	header := Claims{}
	if s.Change != nil {
		s.Change(header, claims)
	}
	token := s.Sign(cmp.Or(s.Alg, "RS256"), header, claims)
	if s.Token != nil {
		token = s.Token(claims)
	}
	return fake.JSON(text(Claims{"id_token": token, "access_token": "access", "token_type": "Bearer", "expires_in": 300}))
}
