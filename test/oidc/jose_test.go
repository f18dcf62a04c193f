package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"weir/pkg/auth/oidc"
	"weir/server/jwk"
)

// TestTokensOfGoJose verifies what go-jose signs, and what it would not: both must agree.
func TestTokensOfGoJose(t *testing.T) {
	r, err1 := rsa.GenerateKey(rand.Reader, 2048)
	e, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, d, err3 := ed25519.GenerateKey(rand.Reader)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	for alg, key := range map[jose.SignatureAlgorithm]any{jose.RS256: r, jose.PS256: r, jose.ES256: e, jose.EdDSA: d} {
		private := jose.JSONWebKey{Key: key, KeyID: "k", Algorithm: string(alg), Use: "sig"}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: private}, nil)
		if err != nil {
			t.Fatal(err)
		}
		object, err := signer.Sign([]byte(`{"iss":"https://id.example","sub":"ada"}`))
		if err != nil {
			t.Fatal(err)
		}
		token, _ := object.CompactSerialize()
		set, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{private.Public()}})
		for i := range len(token) {
			changed := []byte(token)
			if i > 0 { // 0 leaves it as it is
				if changed[i] = 'A'; token[i] == 'A' {
					changed[i] = 'B'
				}
			}
			parsed, err := jose.ParseSigned(string(changed), []jose.SignatureAlgorithm{alg})
			theirs := err == nil
			if theirs {
				_, err = parsed.Verify(private.Public())
				theirs = err == nil
			}
			ours, err := oidc.Parse(string(changed))
			if err == nil {
				err = ours.Verify(context.Background(), jwk.Verify, set)
			}
			if accepted := err == nil; accepted && !theirs || theirs && i == 0 && !accepted {
				t.Errorf("%s, byte %d: weir %v, go-jose %v", alg, i, err, theirs)
			}
			if i == 0 && (err != nil || string(ours.Claims) != `{"iss":"https://id.example","sub":"ada"}`) {
				t.Errorf("%s: claims of %+v, %v", alg, ours, err)
			}
		}
	}
}
