package llm

import "strings"

// A signature that travels in a field of another vendor's dialect is wrapped:
//
//	weir.<issuer>.<signature>
//
// so that it is known on its way back, goes to its issuer only, and can be
// taken out of a conversation that has moved to another provider. An unsigned
// thought travels with an empty signature.
const wrapMark = "weir."

func wrap(issuer, sig string) string { return wrapMark + issuer + "." + sig }

// wrapMessages is wrap for a field of the Messages dialect, where a bare
// signature is Anthropic's own.
func wrapMessages(issuer, sig string) string {
	if issuer == issuerAnthropic {
		return sig
	}
	return wrap(issuer, sig)
}

// unwrap gives the issuer and the signature of a wrapped one, else native as
// the issuer.
func unwrap(s, native string) (issuer, sig string) {
	if rest, ok := strings.CutPrefix(s, wrapMark); ok {
		if issuer, sig, ok := strings.Cut(rest, "."); ok {
			return issuer, sig
		}
	}
	return native, s
}

// formats are the names that reasoning_details uses for the issuers.
var formats = [...][2]string{
	{"anthropic", "anthropic-claude-v1"},
	{"gemini", "google-gemini-v1"},
	{"openai", "openai-responses-v1"},
	{"xai", "xai-responses-v1"},
}

func formatOf(issuer string) string {
	for i := range formats {
		if formats[i][0] == issuer {
			return formats[i][1]
		}
	}
	return issuer
}

func issuerOf(format string) string {
	for i := range formats {
		if formats[i][1] == format {
			return formats[i][0]
		}
	}
	return format
}
