package gateway

import (
	"net/url"
	"strings"
	"sync"

	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/httpmsg"
)

// Route and Method are those of the endpoints' package.
type (
	Route  = endpoint.Route
	Method = endpoint.Method
)

// table finds routes: by the whole path where the pattern has no parameter,
// else segment by segment in the order of registration.
type table struct {
	exact    map[string]*Route
	patterns []pattern
	none     [4]Route // of paths without a route

	mu        sync.Mutex                  // of the field that follows
	templates [variants]*httpmsg.Template // created on first use
}

type pattern struct {
	segments []string
	route    *Route
}

func newTable(routes []Route) *table {
	t := &table{
		exact: make(map[string]*Route, len(routes)),
		none: [...]Route{
			{Dialect: llm.Messages, Cors: endpoint.OpenCors}, {Cors: endpoint.OpenCors},
			{Dialect: llm.Gemini, Cors: endpoint.OpenCors}, {},
		},
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
// /v1beta whatever its version. A path that is not canonical (empty segments, a trailing slash,
// encoded dots or slashes in the
// fixed part) matches no route, since routes are compared byte for byte.
func split(r *httpmsg.Request) (machine, rest string) {
	path := r.Path
	if len(path) > 17 && path[0] == '/' {
		if i := strings.IndexByte(path[1:], '/') + 1; i > 0 && rpc.IsMachineID(path[1:i]) {
			if after := path[i:]; strings.HasPrefix(after, "/v1/") || strings.HasPrefix(after, "/api/") || isGemini(after) ||
				after == "/metrics" || after == "/status" || after == "/status.json" {
				machine, path = path[1:i], after
			}
		}
	}
	if strings.HasPrefix(path, "/v1/v1/") {
		path = path[3:]
	}
	if strings.HasPrefix(path, "/v1beta/") || strings.HasPrefix(path, "/v1alpha/") ||
		strings.HasPrefix(path, "/v1/models") {
		path = geminiPath(r, path)
	}
	return machine, path
}

// isGemini reports whether a path is of the Gemini API by its version.
func isGemini(path string) bool {
	return strings.HasPrefix(path, "/v1beta/") || strings.HasPrefix(path, "/v1alpha/")
}
