// Package jwk checks signatures by public keys in the form of RFC 7517, on the native platform.
package jwk

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
)

// Verify reports whether sig is a signature of data; see oidc.Verify.
func Verify(_ context.Context, jwk []byte, alg string, data, sig []byte) (bool, error) {
	var k struct{ N, E, X, Y string }
	if err := json.Unmarshal(jwk, &k); err != nil {
		return false, err
	}
	sum := sha256.Sum256(data)
	switch alg {
	case "RS256", "PS256":
		key := &rsa.PublicKey{N: number(k.N), E: int(number(k.E).Int64())}
		if alg == "RS256" {
			return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], sig) == nil, nil
		}
		return rsa.VerifyPSS(key, crypto.SHA256, sum[:], sig,
			&rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil, nil
	case "ES256":
		point := append(append([]byte{4}, octets(k.X)...), octets(k.Y)...)
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
		if err != nil || len(sig) != 64 {
			return false, nil // no point of the curve
		}
		r, s := new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])
		return ecdsa.Verify(key, sum[:], r, s), nil
	case "EdDSA":
		key := octets(k.X)
		return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, data, sig), nil
	}
	return false, nil
}

func octets(s string) []byte {
	b, _ := base64.RawURLEncoding.DecodeString(s) // checked before
	return b
}

func number(s string) *big.Int { return new(big.Int).SetBytes(octets(s)) }
