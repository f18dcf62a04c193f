package host

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
)

var errKey = errors.New("sign: the private key is invalid")

// signRS256 returns the RSASSA-PKCS1-v1_5 signature of data with SHA-256 by an RSA
// key in PKCS#8.
func signRS256(_ context.Context, pkcs8, data []byte) ([]byte, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(pkcs8)
	if err != nil {
		return nil, errKey // the parser's text may contain parts of the key
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errKey
	}
	sum := sha256.Sum256(data)
	sig, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		return nil, errKey
	}
	return sig, nil
}
