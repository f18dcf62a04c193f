package ir

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/vendortext"
)

// Refusals are the fields and roles that a server has refused by name. A field that is left
// out is "<dialect>:<path>", see Omit; what gets another form is one of OtherForms.
type Refusals []string

// OtherForms are the fields and roles of chat that a server gets in another form once it
// has refused them by name. Instead is the name that it gets; "" leaves the field out.
var OtherForms = [...]struct{ Name, Instead string }{
	{"max_completion_tokens", MaxTokensName},
	{MaxTokensName, "max_completion_tokens"},
	{"reasoning_effort", ""},
	{RoleDeveloper, "system"}, // of a message
}

// RoleDeveloper is the role that a chat server may refuse.
const RoleDeveloper = "developer"

// Has reports whether a name is among the refusals.
func (r Refusals) Has(name string) bool { return slices.Contains(r, name) }

// HasOtherForm reports whether a name is one of OtherForms.
func HasOtherForm(name string) bool {
	for i := range OtherForms {
		if OtherForms[i].Name == name {
			return true
		}
	}
	return false
}

// Opposite returns the name that a server gets for a refused one if it may refuse that one
// too, or "".
func Opposite(name string) string {
	for i := range OtherForms {
		if f := &OtherForms[i]; f.Name == name && HasOtherForm(f.Instead) {
			return f.Instead
		}
	}
	return ""
}

// Apply returns v adapted to a server with these refusals.
func (r Refusals) Apply(v *Deviations) *Deviations {
	c := *v
	if r.Has("max_completion_tokens") {
		c.MaxTokens = MaxTokensName
	} else if r.Has(MaxTokensName) {
		c.MaxTokens = ""
	}
	if r.Has(RoleDeveloper) {
		c.System = true
	}
	if r.Has("reasoning_effort") {
		c.Think = ReasoningNone
	}
	return &c
}

// Refused returns what a server of the dialect refuses by name in its 4xx answer to the
// request sent: by the error's param and code, by the entries of a pydantic error list, or
// by a text of package vendortext. At most one of OtherForms is among them, which comes first.
func Refused(dialect string, sent []byte, status int, code, param, message string, raw []byte) (names Refusals) {
	if status != 400 && status != 422 {
		return nil
	}
	if dialect == "chat" {
		if name := refusedForm(sent, code, param, message, raw); name != "" {
			names = append(names, name)
		}
	}
	for _, path := range refusedFields(sent, code, param, message, raw) {
		if dialect != "chat" || !HasOtherForm(path) {
			names = append(names, dialect+":"+path)
		}
	}
	return names
}

// refusedForm returns which of OtherForms an error of a chat server refuses, or "".
func refusedForm(sent []byte, code, param, message string, raw []byte) string {
	named := vendortext.Named(vendortext.RefusesField, message)
	for i := range OtherForms {
		name := OtherForms[i].Name
		if name == RoleDeveloper {
			if refusesDeveloper(sent, code, param, message) {
				return name
			}
			continue
		}
		if !gjson.GetBytes(sent, name).Exists() {
			continue
		}
		if param == name {
			if fieldCode(code) {
				return name
			}
			switch code {
			case "invalid_value", "unsupported_value", "invalid_type", "integer_above_max_value", "integer_below_min_value":
				continue // the field is known, its value is wrong
			}
			if OtherForms[i].Instead != "" {
				return name
			}
		}
		if extraForbidden(raw, name) || slices.ContainsFunc(named, func(n string) bool { return snake(n) == name }) {
			return name
		}
	}
	return ""
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
