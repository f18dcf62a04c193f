package accounts

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/edge"
	"weir/pkg/snapshot"
)

// meaning is what a documented error of a vendor says beyond its status.
type meaning uint8

const (
	placeRefused  meaning = iota + 1 // this country, region or egress address
	contextLength                    // the request is too long for the model
	modelRetired                     // the model no longer exists
)

var meanings = [...]string{placeRefused: "place refused", contextLength: "context length", modelRetired: "model retired"}

func (m meaning) String() string { return meanings[m] }

// documented is one error as a vendor documents it: by its code, or by how the
// upstream's own error.message begins.
type documented struct {
	vendor string
	status int
	code   string
	begins string
	means  meaning
}

// documentedErrors are published in docs/reference/upstream-errors.md. It is
// the only place where a text decides; it never cools an account, refreshes a
// token, or repeats a billable creation.
var documentedErrors = [...]documented{
	{"OpenAI", 403, "unsupported_country_region_territory", "", placeRefused},
	{"Google Gemini", 400, "", "User location is not supported", placeRefused},
	{"Anthropic", 403, "", "Request not allowed", placeRefused},
	{"OpenAI", 400, "context_length_exceeded", "", contextLength},
	{"Anthropic", 400, "", "prompt is too long", contextLength},
	{"Google Gemini", 400, "", "The input token count", contextLength},
	{"OpenAI", 404, "model_not_found", "", modelRetired},
	{"Anthropic", 404, "", "model: ", modelRetired},
}

// meaningOf returns what the table says of an upstream's answer, 0 for nothing.
// raw is its body, nil for an error within an answer of 2xx.
func meaningOf(status int, code string, raw []byte) meaning {
	if status < 400 || status > 499 {
		return 0
	}
	text := ""
	if len(raw) > 0 && gjson.ValidBytes(raw) {
		for _, path := range [...]string{"error.message", "0.error.message"} {
			if m := gjson.GetBytes(raw, path); m.Type == gjson.String {
				text = m.Str
				break
			}
		}
	}
	for i := range documentedErrors {
		d := &documentedErrors[i]
		if d.status != status && !(d.means == placeRefused && d.code != "" && (status == 400 || status == 451)) {
			continue
		}
		if d.code != "" && d.code == code || d.begins != "" && strings.HasPrefix(text, d.begins) {
			return d.means
		}
	}
	return 0
}

// blockedHere reports whether an answer says that this place or egress address
// is refused, and not the account: by a documented error, by Cloudflare's
// challenge, or by a page where an API would answer with JSON.
func blockedHere(status int, h edge.Header, raw []byte, means meaning) bool {
	switch status {
	case 400, 403, 451:
	default:
		return false
	}
	if means == placeRefused || h.Get("cf-mitigated") != "" {
		return true
	}
	return status == 403 && (strings.HasPrefix(h.Get("content-type"), "text/html") || strings.HasPrefix(strings.TrimLeft(string(raw[:min(len(raw), 64)]), " \t\r\n\uFEFF"), "<"))
}

// originOf returns the scheme and host of an upstream's address.
func originOf(url string) string {
	i := strings.Index(url, "://")
	if i < 0 {
		return url
	}
	if j := strings.IndexAny(url[i+3:], "/?#"); j >= 0 {
		return url[:i+3+j]
	}
	return url
}

// Blocked reports whether the calls of a machine to a provider's address are
// passed over, because their place was refused within the last 60 s.
func Blocked(m *snapshot.Machine, provider, url string, now int64) bool {
	_, ok := m.Blocked(provider, originOf(url), now)
	return ok
}
