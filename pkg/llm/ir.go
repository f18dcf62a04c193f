package llm

import "weir/pkg/llm/ir"

// The types of the middle form that callers see.
type (
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

// The members of a set of refusals.
const (
	RefusesMaxCompletionTokens = ir.RefusesMaxCompletionTokens
	RefusesDeveloper           = ir.RefusesDeveloper
	RefusesEffort              = ir.RefusesEffort
	RefusesMaxTokens           = ir.RefusesMaxTokens
)

// DeviationsOf returns the deviations of a provider by its id. The result is
// shared and must not be changed.
func DeviationsOf(provider string) *Deviations { return ir.DeviationsOf(provider) }

// RefusalOf returns the refusal of a name, or 0.
func RefusalOf(name string) Refusals { return ir.RefusalOf(name) }

// Refused returns the refusal in a chat server's 4xx answer to the request sent,
// or 0.
func Refused(sent []byte, status int, code, param, message string, raw []byte) Refusals {
	return ir.Refused(sent, status, code, param, message, raw)
}

// DefaultOnly reports whether an error says that the model takes no value of a field but
// the default.
func DefaultOnly(code, message string) bool { return ir.DefaultOnly(code, message) }

// RefusedFields returns the paths of the fields that an upstream's answer to the
// request sent refuses by name; see Omit.
func RefusedFields(sent []byte, status int, code, param, message string, raw []byte) []string {
	return ir.RefusedFields(sent, status, code, param, message, raw)
}

// Omit returns a request without the field of a path, and reports whether it had one.
func Omit(body []byte, path string) ([]byte, bool) { return ir.Omit(body, path) }

// UserLimit returns a provider's limit for a user's id in OpenAI's dialects, in
// characters.
func UserLimit(provider string) int { return ir.UserLimit(provider) }

// ShortUser returns a user's id, or a stable hash of one over the limit.
func ShortUser(id string, limit int) string { return ir.ShortUser(id, limit) }
