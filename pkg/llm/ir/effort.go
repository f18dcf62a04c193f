package ir

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// Efforts are the efforts in order. The budgets are a convention, not a
// vendor's rule (docs/reference/api-shapes.md, 14.3).
var Efforts = [...]struct {
	name    string
	Budget  int64  // form A, and Gemini 2.5
	claude  string // form B
	Level   string // Gemini 3
	Rounded string // where only none, low, medium and high exist
}{
	{"none", 0, "low", "MINIMAL", "none"},
	{"minimal", 1024, "low", "MINIMAL", "low"},
	{"low", 1024, "low", "LOW", "low"},
	{"medium", 8192, "medium", "MEDIUM", "medium"},
	{"high", 24576, "high", "HIGH", "high"},
	{"xhigh", 32768, "xhigh", "HIGH", "high"},
	{"max", 32768, "max", "HIGH", "high"},
}

// EffortIndex returns the index of a name in Efforts, or -1.
func EffortIndex(name string) int {
	for i := range Efforts {
		if Efforts[i].name == name {
			return i
		}
	}
	return -1
}

// effortOfBudget returns the effort of a budget.
func effortOfBudget(n int64) string {
	switch {
	case n <= 0:
		return "none"
	case n < 2048:
		return "low"
	case n < 12288:
		return "medium"
	case n < 28672:
		return "high"
	}
	return "xhigh"
}

// EffortName returns the effort that the client has set in any form; "" if it
// has set none or leaves it to the model.
func (q *Request) EffortName() string {
	switch {
	case q.Think == ThinkOff:
		return "none"
	case q.Effort != "":
		return q.Effort
	case q.Think == ThinkBudget:
		return effortOfBudget(q.ThinkBudget)
	}
	return ""
}

// SetEffort reads a reasoning effort.
func (q *Request) SetEffort(param string, v gjson.Result) error {
	name := Str(v)
	if name == "default" {
		return nil
	}
	if EffortIndex(name) < 0 {
		return apierr.Invalid(param, "%s must be none, minimal, low, medium, high, xhigh or max.", param)
	}
	q.Effort = name
	if name == "none" {
		q.Think = ThinkOff
	} else {
		q.Think = ThinkOn
	}
	return nil
}
