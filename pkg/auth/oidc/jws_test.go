package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"weir/internal/testgw/issuer"
	"weir/server/jwk"
)

var verifier Verify = jwk.Verify

type claims = issuer.Claims

const now = int64(1_800_000_000)

// check verifies a token as a sign-in does.
func check(keys, token string, x expect) error {
	t, err := Parse(token)
	if err == nil {
		err = t.Verify(context.Background(), verifier, []byte(keys))
	}
	if err == nil {
		_, err = x.check(t)
	}
	return err
}

func TestVectors(t *testing.T) {
	const payload = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
	for name, v := range map[string]struct{ key, token string }{
		"RFC 7515 A.2": {`{"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp` +
			`-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63` +
			`kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhy` +
			`xXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}`,
			"eyJhbGciOiJSUzI1NiJ9." + payload + "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4B" +
				"h-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjt" +
				"QBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI" +
				"8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"},
		"RFC 7515 A.3": {`{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",` +
			`"y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`, "eyJhbGciOiJFUzI1NiJ9." + payload +
			"DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"},
	} {
		tok, err := Parse(v.token)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		keys := []byte(`{"keys":[` + v.key + `]}`)
		if err := tok.Verify(context.Background(), verifier, keys); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		tok.sig[7] ^= 1
		if err := tok.Verify(context.Background(), verifier, keys); err != errSignature {
			t.Errorf("%s with a changed signature: %v", name, err)
		}
	}
}

func TestAlgorithms(t *testing.T) {
	s := issuer.New("https://id.example")
	good := claims{"iss": s.URL, "aud": "client", "sub": "ada", "iat": now, "exp": now + 60, "nonce": "n"}
	x := expect{Issuer: s.URL, ClientID: "client", Now: now, Nonce: "n", MaxAge: freshFor}
	for _, alg := range []string{"RS256", "PS256", "ES256", "EdDSA"} {
		if err := check(s.Keys(), s.Sign(alg, nil, good), x); err != nil {
			t.Errorf("%s: %v", alg, err)
		}
		changed := s.Sign(alg, nil, good)
		head, rest, _ := strings.Cut(changed, ".")
		_, sig, _ := strings.Cut(rest, ".")
		owner := maps.Clone(good)
		owner["sub"] = "eve"
		raw, _ := json.Marshal(owner)
		if err := check(s.Keys(), head+"."+base64.RawURLEncoding.EncodeToString(raw)+"."+sig, x); err != errSignature {
			t.Errorf("%s with other claims: %v", alg, err)
		}
	}
}

func TestAttacksOnTokens(t *testing.T) {
	s, other := issuer.New("https://id.example"), issuer.New("https://other.example")
	good := func(set claims) claims {
		c := claims{"iss": s.URL, "aud": "client", "sub": "ada", "iat": now, "exp": now + 60, "nonce": "n"}
		maps.Copy(c, set)
		for name, v := range set {
			if v == nil {
				delete(c, name)
			}
		}
		return c
	}
	signed := func(header, set claims) string { return s.Sign("RS256", header, good(set)) }
	plain := strings.Split(signed(nil, nil), ".")
	twice := base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"a","iss":"b"}`))
	for name, a := range map[string]struct {
		token string
		want  error
	}{
		"alg none":                  {s.Sign("none", nil, good(nil)) + "AA", errAlgorithm},
		"no signature":              {plain[0] + "." + plain[1] + ".", errForm},
		"HS256 with the public key": {s.Sign("HS256", claims{"kid": "RS256"}, good(nil)), errAlgorithm},
		"alg of another case":       {signed(claims{"alg": "rs256"}, nil), errAlgorithm},
		"key of another issuer":     {other.Sign("ES256", nil, good(nil)), errSignature},
		"kid of another issuer":     {signed(claims{"kid": "theirs"}, nil), errNoKey},
		"key of another type":       {signed(claims{"kid": "ES256"}, nil), errKeyType},
		"no kid, two keys fit":      {s.Sign("RS256", claims{"kid": ""}, good(nil)), nil}, // alg of the keys tells them apart
		"jku":                       {signed(claims{"jku": "https://evil.example/keys"}, nil), errHeader},
		"jwk":                       {signed(claims{"jwk": s.Key("RS256")}, nil), errHeader},
		"x5u":                       {signed(claims{"x5u": "https://evil.example"}, nil), errHeader},
		"crit":                      {signed(claims{"crit": []string{"exp"}}, nil), errHeader},
		"two parts":                 {plain[0] + "." + plain[1], errForm},
		"padding":                   {plain[0] + "=." + plain[1] + "." + plain[2], errForm},
		"a line break":              {plain[0] + "\n." + plain[1] + "." + plain[2], errForm},
		"a name twice":              {plain[0] + "." + twice + "." + plain[2], errForm},
		"20 kB":                     {signed(nil, claims{"x": strings.Repeat("a", 20_000)}), errForm},
		"iss of another":            {signed(nil, claims{"iss": other.URL}), errIssuer},
		"iss with a slash":          {signed(nil, claims{"iss": s.URL + "/"}), errIssuer},
		"aud of another":            {signed(nil, claims{"aud": "theirs"}), errAudience},
		"no aud":                    {signed(nil, claims{"aud": nil}), errAudience},
		"several aud, no azp":       {signed(nil, claims{"aud": []string{"client", "theirs"}}), errAudience},
		"azp of another":            {signed(nil, claims{"azp": "theirs"}), errAudience},
		"aud alone in a list":       {signed(nil, claims{"aud": []string{"client"}}), nil},
		"several aud with azp":      {signed(nil, claims{"aud": []string{"client", "theirs"}, "azp": "client"}), nil},
		"expired":                   {signed(nil, claims{"exp": now - 61}), errExpired},
		"no exp":                    {signed(nil, claims{"exp": nil}), errExpired},
		"exp as text":               {signed(nil, claims{"exp": "9999999999"}), errExpired},
		"future iat":                {signed(nil, claims{"iat": now + 61}), errIssuedAt},
		"old iat":                   {signed(nil, claims{"iat": now - 601}), errIssuedAt},
		"not yet valid":             {signed(nil, claims{"nbf": now + 61}), errTooEarly},
		"no nonce":                  {signed(nil, claims{"nonce": nil}), errNonce},
		"nonce of another":          {signed(nil, claims{"nonce": "m"}), errNonce},
		"no sub":                    {signed(nil, claims{"sub": nil}), errSubject},
		"empty sub":                 {signed(nil, claims{"sub": ""}), errSubject},
		"sub as a number":           {signed(nil, claims{"sub": 7}), errSubject},
		"at_hash of another":        {signed(nil, claims{"at_hash": "AAAA"}), errHash},
		"a logout token":            {signed(nil, claims{"nonce": nil, "events": claims{logoutEvent: claims{}}}), errNonce},
		"as it should be":           {signed(nil, nil), nil},
	} {
		x := expect{Issuer: s.URL, ClientID: "client", Now: now, Nonce: "n", AccessToken: "access", MaxAge: freshFor}
		if got := check(s.Keys(), a.token, x); got != a.want {
			t.Errorf("%s: got %v, want %v", name, got, a.want)
		}
	}
}

func TestUnfitKeys(t *testing.T) {
	s := issuer.New("https://id.example")
	token := s.Sign("RS256", nil, claims{"iss": s.URL})
	for name, change := range map[string]func(k claims){
		"a private key":    func(k claims) { k["d"] = "AQAB" },
		"1024 bits":        func(k claims) { k["n"] = base64.RawURLEncoding.EncodeToString(make([]byte, 128)) },
		"an exponent of 1": func(k claims) { k["e"] = "AQ" },
		"for encryption":   func(k claims) { k["use"] = "enc" },
		"of PS256":         func(k claims) { k["alg"] = "PS256" },
		"for signing":      func(k claims) { k["key_ops"] = []string{"sign"} },
		"no n":             func(k claims) { delete(k, "n") },
	} {
		k := s.Key("RS256")
		change(k)
		raw, _ := json.Marshal(claims{"keys": []claims{k}})
		if err := check(string(raw), token, expect{}); err != errKeyType {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestLogoutTokens(t *testing.T) {
	s := issuer.New("https://id.example")
	for name, a := range map[string]struct {
		set  claims
		want error
	}{
		"of a person": {claims{"sub": "ada"}, nil}, "of a session": {claims{"sid": "s1"}, nil},
		"of nobody": {claims{}, errLogout}, "with a nonce": {claims{"sub": "ada", "nonce": "n"}, errLogout},
		"an ID token": {claims{"sub": "ada", "events": claims{}}, errLogout},
	} {
		c := claims{"iss": s.URL, "aud": "client", "iat": now, "exp": now + 60, "jti": "1",
			"events": claims{logoutEvent: claims{}}}
		maps.Copy(c, a.set)
		x := expect{Issuer: s.URL, ClientID: "client", Now: now, Logout: true, MaxAge: freshFor}
		if got := check(s.Keys(), s.Sign("ES256", nil, c), x); got != a.want {
			t.Errorf("%s: got %v, want %v", name, got, a.want)
		}
	}
}
