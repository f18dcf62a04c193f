package ir

import "strings"

// SignatureMark begins a signature in a field of another vendor's dialect,
// which is wrapped:
//
//	weir.<issuer>.<signature>
//
// The client sends it back, weir sends it to its issuer only, and removes it
// from a conversation that has moved to another provider. Thinking without a
// signature has an empty one.
const SignatureMark = "weir."

// WrapSignature returns a signature with its issuer.
func WrapSignature(issuer, sig string) string { return SignatureMark + issuer + "." + sig }

// UnwrapSignature returns the issuer and the signature of a wrapped one, or s
// with native as its issuer.
func UnwrapSignature(s, native string) (issuer, sig string) {
	if rest, ok := strings.CutPrefix(s, SignatureMark); ok {
		if issuer, sig, ok := strings.Cut(rest, "."); ok {
			return issuer, sig
		}
	}
	return native, s
}
