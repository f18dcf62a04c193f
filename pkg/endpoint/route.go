package endpoint

import (
	"context"
	"strings"

	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/people"
	"weir/pkg/wire/httpmsg"
)

// Handler serves one method of a route.
type Handler = func(ctx context.Context, c *auth.Call) (*httpmsg.Response, error)

// Access says who may call a route. The zero value refuses everybody, so a
// route without one is closed.
type Access uint8

// Who may call.
const (
	Nobody   Access = iota
	Public          // no key: /health, the sign-in, static pages
	Data            // a gateway key with scope data
	Own             // as Data, with a key, which is neither counted nor limited
	Realtime        // as Data, or a client secret of the Realtime API
	List            // as Data, but open without a machine where keys are not required
	Manage          // the operator, or a key with scope manage, of the machine
	Operator        // the operator only
	Metrics         // the operator, or a key with scope metrics
)

// Cors says which cross-origin fields a route's answers carry.
// See docs/reference/spec.md, 4.13.
type Cors uint8

// The cross-origin rules.
const (
	NoCors   Cors = iota // management and pages
	OpenCors             // any origin, without credentials
	ListCors             // exactly docs/reference/spec.md, 4
)

// Route is one URL. Every /v1, /v1beta and /api route also exists under /{machineId}.
type Route struct {
	// Pattern is the path; {name} matches one segment, {name...} the rest.
	Pattern string
	Access  Access
	Dialect llm.Dialect // of its errors; the first is also that of routes other than chat
	Cors    Cors
	// Models reports a list of models: its errors are in the dialect of the caller, and a
	// failure of the list itself as docs/reference/spec.md, 2.10.
	Models  bool
	MaxBody int64 // bytes; 0 allows no body
	// Translates reports that a body may be translated, which takes more memory.
	Translates bool
	// AnyEncoding lets a body through that has a Content-Encoding: for bodies
	// that are never parsed.
	AnyEncoding bool
	// Explain lets POST /api/explain run the route's POST with a sender that does not
	// send, or else its Upgrade. The body of a POST must be JSON.
	Explain bool
	Methods []Method
	// Upgrade serves a GET that asks for a WebSocket; nil refuses it with 426. Its
	// answer has an httpmsg.Response.Upgrade, unless it is an error.
	Upgrade Handler
}

// Method is one method of a route.
type Method struct {
	Name    string
	Handler Handler
	Access  Access // where it differs from the route's
	// Role is the least role of a person who may call; "" refuses all people.
	Role people.Role
}

// Admits reports whether a person with a role on the machine may call. A viewer changes nothing,
// also not what a member may change of their own.
func (m *Method) Admits(role people.Role) bool {
	if m.Role == people.Member && role == people.Viewer && m.Name != "GET" {
		return false
	}
	return role.AtLeast(m.Role)
}

// Method returns the method of a name, or nil.
func (r *Route) Method(name string) *Method {
	for i := range r.Methods {
		if r.Methods[i].Name == name {
			return &r.Methods[i]
		}
	}
	return nil
}

// Allow lists the methods for Allow and for preflights.
func (r *Route) Allow() string {
	var b strings.Builder
	for i := range r.Methods {
		b.WriteString(r.Methods[i].Name)
		b.WriteString(", ")
	}
	b.WriteString("OPTIONS")
	return b.String()
}
