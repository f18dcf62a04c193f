package passkey

import (
	"bytes"
	"encoding/base64"
	"fmt"
)

// The two documents in DER that a passkey has: its public key, and the signatures of an EC key. Each
// has one valid encoding (X.690, 10.1), and any other is refused.

const (
	derInteger  = 0x02
	derBits     = 0x03
	derSequence = 0x30
)

// element returns the content of the element that b begins with, and what follows it.
func element(b []byte, kind byte) (content, rest []byte, ok bool) {
	if len(b) < 2 || b[0] != kind {
		return nil, nil, false
	}
	n, b := int(b[1]), b[2:]
	switch {
	case n < 0x80:
	case n == 0x81 && len(b) > 0 && b[0] >= 0x80:
		n, b = int(b[0]), b[1:]
	case n == 0x82 && len(b) > 1 && b[0] > 0:
		n, b = int(b[0])<<8|int(b[1]), b[2:]
	default:
		return nil, nil, false
	}
	if len(b) < n {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// pair returns two positive integers, big endian without leading zeros, of a sequence that is all of b.
func pair(b []byte) (first, second []byte, ok bool) {
	b, rest, ok := element(b, derSequence)
	var out [2][]byte
	for i := range out {
		var n []byte
		var is bool
		n, b, is = element(b, derInteger)
		if !is || len(n) == 0 || n[0] >= 0x80 || n[0] == 0 && (len(n) == 1 || n[1] < 0x80) {
			return nil, nil, false
		}
		out[i] = bytes.TrimLeft(n, "\x00")
	}
	return out[0], out[1], ok && len(rest) == 0 && len(b) == 0
}

// plainSignature returns the r‖s of an ECDSA-Sig-Value on P-256 (RFC 3279, 2.2.3). A signature has a
// second valid s, which no encoding can exclude; a challenge is used once, so that it leads nowhere.
func plainSignature(der []byte) ([]byte, bool) {
	r, s, ok := pair(der)
	if !ok || len(r) > 32 || len(s) > 32 {
		return nil, false
	}
	out := make([]byte, 64)
	copy(out[32-len(r):], r)
	copy(out[64-len(s):], s)
	return out, true
}

// Algorithms of COSE, RFC 9053 and 8812.
const (
	coseES256 = -7
	coseRS256 = -257
)

// The beginnings of a SubjectPublicKeyInfo: of RSA the algorithm, of EC everything before x.
var (
	headRSA = []byte{derSequence, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0}
	headEC  = []byte{derSequence, 0x59, derSequence, 0x13, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1,
		6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7, derBits, 0x42, 0, 4}
)

// publicKey returns the JWK of a SubjectPublicKeyInfo for an algorithm of COSE, and the name of the algorithm:
// P-256 (RFC 5480), or RSA of 2048 to 4096 bits (RFC 3279).
func publicKey(spki []byte, cose int) (jwk []byte, alg string, err error) {
	text := base64.RawURLEncoding.EncodeToString
	switch point, isEC := bytes.CutPrefix(spki, headEC); {
	case cose == coseES256 && isEC && len(point) == 64:
		return fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}`, text(point[:32]), text(point[32:])), "ES256", nil
	case cose == coseRS256:
		info, rest, isInfo := element(spki, derSequence)
		info, isRSA := bytes.CutPrefix(info, headRSA)
		bits, after, isBits := element(info, derBits)
		if !isInfo || !isRSA || !isBits || len(rest)+len(after) > 0 || len(bits) == 0 || bits[0] != 0 {
			return nil, "", errKey
		}
		n, e, ok := pair(bits[1:])
		if !ok || len(n) < 256 || len(n) > 512 || len(e) > 4 || e[len(e)-1]&1 == 0 || bytes.Equal(e, []byte{1}) {
			return nil, "", errKey
		}
		return fmt.Appendf(nil, `{"e":"%s","kty":"RSA","n":"%s"}`, text(e), text(n)), "RS256", nil
	}
	return nil, "", errKey
}
