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
	Refusals   = ir.Refusals
	CacheMarks = ir.CacheMarks
)

// Refused returns what a server of the dialect refuses by name in its 4xx answer to the
// request sent.
func Refused(d Dialect, sent []byte, status int, code, param, message string, raw []byte) Refusals {
	return ir.Refused(d.String(), sent, status, code, param, message, raw)
}
