package llm

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// efforts in order. The budgets are a convention, no vendor's rule
// (docs/reference/api-shapes.md, 14.3).
var efforts = [...]struct {
	name    string
	budget  int64  // form A, and Gemini 2.5
	claude  string // form B
	level   string // Gemini 3
	rounded string // where only none, low, medium and high exist
}{
	{"none", 0, "low", "MINIMAL", "none"},
	{"minimal", 1024, "low", "MINIMAL", "low"},
	{"low", 1024, "low", "LOW", "low"},
	{"medium", 8192, "medium", "MEDIUM", "medium"},
	{"high", 24576, "high", "HIGH", "high"},
	{"xhigh", 32768, "xhigh", "HIGH", "high"},
	{"max", 32768, "max", "HIGH", "high"},
}

// effortIndex gives the place of a name in efforts, or -1.
func effortIndex(name string) int {
	for i := range efforts {
		if efforts[i].name == name {
			return i
		}
	}
	return -1
}

// effortOfBudget goes back from a budget.
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

// effortName is the effort that was asked, whichever way; "" when none was, or
// when the model shall decide.
func (q *request) effortName() string {
	switch {
	case q.think == thinkOff:
		return "none"
	case q.effort != "":
		return q.effort
	case q.think == thinkBudget:
		return effortOfBudget(q.budget)
	}
	return ""
}

func (q *request) setEffort(param string, v gjson.Result) error {
	name := str(v)
	if name == "default" {
		return nil
	}
	if effortIndex(name) < 0 {
		return apierr.Invalid(param, "Unknown reasoning effort.")
	}
	q.effort = name
	if name == "none" {
		q.think = thinkOff
	} else {
		q.think = thinkOn
	}
	return nil
}
