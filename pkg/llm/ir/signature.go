package ir

import "strings"

// A signature that travels in a field of another vendor's dialect is wrapped:
//
//	weir.<issuer>.<signature>
//
// so that it is known on its way back, goes to its issuer only, and can be
// taken out of a conversation that has moved to another provider. An unsigned
// thought travels with an empty signature.
const SignatureMark = "weir."

func WrapSignature(issuer, sig string) string { return SignatureMark + issuer + "." + sig }

// UnwrapSignature gives the issuer and the signature of a wrapped one, else native as
// the issuer.
func UnwrapSignature(s, native string) (issuer, sig string) {
	if rest, ok := strings.CutPrefix(s, SignatureMark); ok {
		if issuer, sig, ok := strings.Cut(rest, "."); ok {
			return issuer, sig
		}
	}
	return native, s
}
