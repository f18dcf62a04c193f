package gateway

import (
	"context"
	"net/url"
	"strings"
	"sync"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
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
)

// Dialect is the shape of a route's errors.
type Dialect uint8

// The dialects.
const (
	OpenAI      Dialect = iota // {"error":{message,type,param,code}}
	Anthropic                  // {"type":"error","error":{type,message},"request_id"}
	ModelList                  // as OpenAI; a failure of the list itself as docs/reference/spec.md, 2.10
	Gemini                     // {"error":{code,message,status,details}}
	geminiArray                // as Gemini, in an array: a stream without ?alt=sse
)

// Cors says which cross-origin fields a route's answers carry.
// See docs/reference/design.md, 8.
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
	Dialect Dialect
	Cors    Cors
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

	templates [variants]*httpmsg.Template // created on first use, under the table's lock
}

// Method is one method of a route.
type Method struct {
	Name    string
	Handler Handler
	Access  Access // where it differs from the route's
}

func (r *Route) method(name string) *Method {
	for i := range r.Methods {
		if r.Methods[i].Name == name {
			return &r.Methods[i]
		}
	}
	return nil
}

// allow lists the methods for Allow and for preflights.
func (r *Route) allow() string {
	var b strings.Builder
	for i := range r.Methods {
		b.WriteString(r.Methods[i].Name)
		b.WriteString(", ")
	}
	b.WriteString("OPTIONS")
	return b.String()
}

// table finds routes: by the whole path where the pattern has no parameter,
// else segment by segment in the order of registration.
type table struct {
	exact    map[string]*Route
	patterns []pattern
	none     [4]Route // of paths without a route

	mu sync.Mutex // of the templates of all routes
}

type pattern struct {
	segments []string
	route    *Route
}

func newTable(routes []Route) *table {
	t := &table{
		exact: make(map[string]*Route, len(routes)),
		none:  [...]Route{{Dialect: Anthropic, Cors: OpenCors}, {Cors: OpenCors}, {Dialect: Gemini, Cors: OpenCors}, {}},
	}
	for i := range routes {
		r := &routes[i]
		if strings.Contains(r.Pattern, "{") {
			t.patterns = append(t.patterns, pattern{strings.Split(r.Pattern[1:], "/"), r})
		} else {
			t.exact[r.Pattern] = r
		}
	}
	return t
}

// find returns the route of a path and the values of its parameters, decoded.
func (t *table) find(path string) (*Route, []string) {
	if r := t.exact[path]; r != nil {
		return r, nil
	}
	if path == "" || path[0] != '/' {
		return nil, nil
	}
	segments := strings.Split(path[1:], "/")
next:
	for i := range t.patterns {
		p := &t.patterns[i]
		var params []string
		for j, want := range p.segments {
			if strings.HasSuffix(want, "...}") {
				if j >= len(segments) {
					continue next
				}
				rest, ok := decode(strings.Join(segments[j:], "/"))
				if !ok || segments[j] == "" {
					continue next
				}
				return p.route, append(params, rest)
			}
			if j >= len(segments) {
				continue next
			}
			if want[0] == '{' {
				v, ok := decode(segments[j])
				if !ok || v == "" {
					continue next
				}
				params = append(params, v)
			} else if want != segments[j] {
				continue next
			}
		}
		if len(segments) == len(p.segments) {
			return p.route, params
		}
	}
	return nil, nil
}

func decode(s string) (string, bool) {
	if !strings.Contains(s, "%") {
		return s, true
	}
	v, err := url.PathUnescape(s)
	return v, err == nil
}

// split takes the machine off a path: "/{machineId}/v1/X" is split into the
// machine and "/v1/X"; "/v1/v1/X" is read as "/v1/X". The Gemini API is under
// /v1beta whatever its version. A path that is not canonical (empty segments, a trailing slash, encoded dots or slashes in the
// fixed part) matches no route, since routes are compared byte for byte.
func split(r *httpmsg.Request) (machine, rest string) {
	path := r.Path
	if len(path) > 17 && path[0] == '/' {
		if i := strings.IndexByte(path[1:], '/') + 1; i > 0 && rpc.IsMachineID(path[1:i]) {
			if after := path[i:]; strings.HasPrefix(after, "/v1/") || strings.HasPrefix(after, "/api/") || isGemini(after) {
				machine, path = path[1:i], after
			}
		}
	}
	if strings.HasPrefix(path, "/v1/v1/") {
		path = path[3:]
	}
	if strings.HasPrefix(path, "/v1beta/") || strings.HasPrefix(path, "/v1alpha/") || strings.HasPrefix(path, "/v1/models") {
		path = geminiPath(r, path)
	}
	return machine, path
}

// isGemini reports whether a path is of the Gemini API by its version.
func isGemini(path string) bool {
	return strings.HasPrefix(path, "/v1beta/") || strings.HasPrefix(path, "/v1alpha/")
}
