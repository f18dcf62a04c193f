package accounts

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/upstream"
	"weir/pkg/wire/vendorerror"
	"weir/pkg/wire/vendortext"
)

// meaningOf returns what the published table says about an upstream's answer, ""
// for nothing. raw is its body, nil for an error within an answer of 2xx.
func meaningOf(status int, code string, raw []byte) vendortext.Kind {
	if status < 400 || status > 499 {
		return ""
	}
	text := ""
	if len(raw) > 0 && jsonscan.Valid(raw) {
		for _, path := range [...]string{"error.message", "0.error.message"} {
			if m := gjson.GetBytes(raw, path); m.Type == gjson.String {
				text = m.Str
				break
			}
		}
	}
	if means := vendortext.Find(status, code, text); means != "" || len(raw) == 0 || !jsonscan.Valid(raw) {
		return means
	}
	v := vendorerror.Read(gjson.ParseBytes(raw))
	switch means := vendortext.Find(status, v.Reason, v.Message); means {
	case vendortext.ContextLength, vendortext.KeyRefused, vendortext.OutOfCredit, vendortext.ModelRefused:
		return means // vendors have these messages in many places
	}
	return ""
}

// StatusOf returns the status that an answer outside 2xx stands for: 401 or 402
// if the published table says that its vendor refuses a key, or has no credit left,
// with another one.
func StatusOf(status int, raw []byte) int {
	code := ""
	if jsonscan.Valid(raw) {
		code = vendorerror.Read(gjson.ParseBytes(raw)).Code
	}
	return statusOf(status, meaningOf(status, code, raw))
}

func statusOf(status int, means vendortext.Kind) int {
	switch means {
	case vendortext.KeyRefused:
		return 401
	case vendortext.OutOfCredit:
		return 402
	}
	return status
}

// ofAccount reports whether Google refuses the whole account by a 403, as Vertex AI's others
// refuse the model: by an error of its Service Infrastructure, such as SERVICE_DISABLED, or
// for lack of a permission on something that is not a model. See
// https://github.com/googleapis/googleapis/blob/master/google/api/error_reason.proto.
//
//	{"reason":"IAM_PERMISSION_DENIED","metadata":{"resource":"projects/…/publishers/google/models/…"}}
func ofAccount(raw []byte) bool {
	if !jsonscan.Valid(raw) {
		return false
	}
	v := vendorerror.Read(gjson.ParseBytes(raw))
	return v.Domain == "googleapis.com" ||
		v.Reason == "IAM_PERMISSION_DENIED" && !strings.Contains(v.Resource, "/models/")
}

// blockedHere reports whether an answer refuses this place or egress address
// rather than the account: by a documented error, by Cloudflare's challenge, or
// by a page where an API answers with JSON.
func blockedHere(status int, h httpmsg.Header, raw []byte, means vendortext.Kind) bool {
	switch status {
	case 400, 403, 451:
	default:
		return false
	}
	if means == vendortext.PlaceRefused || h.Get("cf-mitigated") != "" {
		return true
	}
	return status == 403 && (strings.HasPrefix(h.Get("content-type"), "text/html") ||
		strings.HasPrefix(strings.TrimLeft(string(raw[:min(len(raw), 64)]), " \t\r\n\uFEFF"), "<"))
}

// placeOf returns where an answer came from, which is near where the call was sent from: the
// data center that Cloudflare names at the end of cf-ray, "8f2c1d0e4b5a6978-FRA". It
// returns "" for servers that are not behind Cloudflare. See
// developers.cloudflare.com/fundamentals/reference/cloudflare-ray-id.
func placeOf(h httpmsg.Header) string {
	_, code, _ := strings.Cut(h.Get(upstream.Place), "-")
	if len(code) != 3 {
		return ""
	}
	for _, c := range code {
		if c < 'A' || c > 'Z' {
			return ""
		}
	}
	return code
}

// Blocked reports whether a machine's calls to a provider's address are skipped
// because the place was refused within the last 60 s.
func Blocked(m *snapshot.Machine, providerID, url string, now int64) bool {
	_, ok := m.Blocked(providerID, provider.Origin(url), now)
	return ok
}
