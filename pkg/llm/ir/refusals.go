package ir

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/vendortext"
)

// Refusals is a set of fields and roles that a chat server has refused by name.
// It gets their older form, or for max_tokens the newer one.
type Refusals uint8

// The members of a set.
const (
	RefusesMaxCompletionTokens Refusals = 1 << iota // gets max_tokens
	RefusesDeveloper                                // gets the role system
	RefusesEffort                                   // gets no reasoning_effort
	RefusesMaxTokens                                // gets max_completion_tokens
)

// refusalNames are the names under which refusals are remembered.
var refusalNames = [...]string{"max_completion_tokens", "developer", "reasoning_effort", "max_tokens"}

// RefusalOf returns the refusal of a name, or 0.
func RefusalOf(name string) Refusals {
	for i, n := range refusalNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// Names returns the names of the set's members.
func (r Refusals) Names() (names []string) {
	for i, n := range refusalNames {
		if r&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

// Apply returns v adapted to a server with these refusals.
func (r Refusals) Apply(v *Deviations) *Deviations {
	c := *v
	if r&RefusesMaxCompletionTokens != 0 {
		c.MaxTokens = MaxTokensName
	} else if r&RefusesMaxTokens != 0 {
		c.MaxTokens = ""
	}
	if r&RefusesDeveloper != 0 {
		c.System = true
	}
	if r&RefusesEffort != 0 {
		c.Think = ReasoningNone
	}
	return &c
}

// Refused returns the refusal in a chat server's 4xx answer to the request sent:
// by the error's param and code, by the entries of a pydantic error list, or by a
// text of package vendortext. It returns at most one; a server that refuses
// several returns another error.
func Refused(sent []byte, status int, code, param, message string, raw []byte) Refusals {
	if status != 400 && status != 422 {
		return 0
	}
	named := vendortext.Named(vendortext.RefusesField, message)
	for i, name := range refusalNames {
		r := Refusals(1 << i)
		if r == RefusesDeveloper {
			if refusesDeveloper(sent, code, param, message) {
				return r
			}
			continue
		}
		if !gjson.GetBytes(sent, name).Exists() {
			continue
		}
		if param == name {
			if fieldCode(code) {
				return r
			}
			switch code {
			case "invalid_value", "unsupported_value", "invalid_type", "integer_above_max_value", "integer_below_min_value":
				continue // the field is known, its value is wrong
			}
			if r != RefusesEffort {
				return r
			}
		}
		if extraForbidden(raw, name) || slices.ContainsFunc(named, func(n string) bool { return snake(n) == name }) {
			return r
		}
	}
	return 0
}

func refusesDeveloper(sent []byte, code, param, message string) bool {
	has := false
	Each(gjson.GetBytes(sent, "messages"), func(_, m gjson.Result) bool {
		has = m.Get("role").Str == "developer"
		return !has
	})
	if !has {
		return false
	}
	// OpenAI's: param "messages[0].role", code "invalid_value" or "unsupported_value".
	if strings.HasPrefix(param, "messages") && strings.HasSuffix(param, "role") {
		return true
	}
	return vendortext.Match(vendortext.RefusesDeveloper, "", message)
}

// fieldCode reports whether an error's code says that the field of its param is not
// accepted, whatever its value.
func fieldCode(code string) bool {
	return code == "unsupported_parameter" || code == "unknown_parameter" || code == "extra_forbidden"
}

// DefaultOnly reports whether an error says that the model takes no value of the field
// of its param but the default. OpenAI's:
//
//	{"param":"temperature","code":"unsupported_value","message":"… Only the default (1) value is supported."}
func DefaultOnly(code, message string) bool {
	return code == "unsupported_value" && strings.Contains(message, "Only the default ")
}

// extraForbidden reports whether a pydantic error list in an error body names
// a top-level field.
func extraForbidden(raw []byte, name string) (named bool) {
	eachForbidden(raw, func(loc []gjson.Result) {
		named = named || len(loc) > 0 && len(loc) <= 2 && loc[len(loc)-1].Str == name
	})
	return named
}

// eachForbidden calls f with the place of each field that a pydantic error list in
// an error body names as forbidden:
//
//	{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],…}]}
func eachForbidden(raw []byte, f func(loc []gjson.Result)) {
	for _, path := range [...]string{"detail", "message.detail", "message", "error.detail", "error.message.detail"} {
		list := gjson.GetBytes(raw, path)
		if !list.IsArray() {
			continue
		}
		Each(list, func(_, e gjson.Result) bool {
			if e.Get("type").Str == "extra_forbidden" {
				f(e.Get("loc").Array())
			}
			return true
		})
	}
}
