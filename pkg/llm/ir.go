package llm

import "weir/pkg/llm/ir"

// The types of the middle form that callers see.
type (
	Client     = ir.Client
	Options    = ir.Options
	Usage      = ir.Usage
	Estimator  = ir.Estimator
	Tools      = ir.Tools
	Settings   = ir.Settings
	Deviations = ir.Deviations
	Refusals   = ir.Refusals
	CacheMarks = ir.CacheMarks
)

// SureTokens are believed of any model, see Usage.Settle.
const SureTokens = ir.SureTokens

// DeviationsOf returns the deviations of a provider by its id. The result is
// shared and must not be changed.
func DeviationsOf(provider string) *Deviations { return ir.DeviationsOf(provider) }

// Refused returns what a server of the dialect refuses by name in its 4xx answer to the
// request sent.
func Refused(d Dialect, sent []byte, status int, code, param, message string, raw []byte) Refusals {
	return ir.Refused(d.String(), sent, status, code, param, message, raw)
}

// HasOtherForm reports whether a server that refuses a name gets another form and not a
// request without it.
func HasOtherForm(name string) bool { return ir.HasOtherForm(name) }

// OppositeForm returns the name that such a server gets if it may refuse that one too, or "".
func OppositeForm(name string) string { return ir.Opposite(name) }

// DefaultOnly reports whether an error says that the model takes no value of a field but
// the default.
func DefaultOnly(code, message string) bool { return ir.DefaultOnly(code, message) }

// Omit returns a request without the field of a path, and reports whether it had one.
func Omit(body []byte, path string) ([]byte, bool) { return ir.Omit(body, path) }

// UserLimit returns a provider's limit for a user's id in OpenAI's dialects, in
// characters.
func UserLimit(provider string) int { return ir.UserLimit(provider) }

// ShortUser returns a user's id, or a stable hash of one over the limit.
func ShortUser(id string, limit int) string { return ir.ShortUser(id, limit) }
