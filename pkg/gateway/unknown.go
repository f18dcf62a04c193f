package gateway

import (
	"slices"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
)

// notOffered are well-known endpoints of OpenAI and Gemini that this gateway does not
// have: the first segments of a path.
var notOffered = [...]string{
	"/v1/assistants", "/v1/batches", "/v1/chatkit", "/v1/containers", "/v1/conversations", "/v1/evals",
	"/v1/files", "/v1/fine_tuning", "/v1/organization", "/v1/realtime/calls", "/v1/threads", "/v1/uploads",
	"/v1/vector_stores",
	"/v1/messages/batches",
	"/v1beta/batches", "/v1beta/cachedContents", "/v1beta/corpora", "/v1beta/fileSearchStores", "/v1beta/files",
	"/v1beta/interactions", "/v1beta/tunedModels",
	"/upload/v1beta",
}

// lacking returns the element of notOffered that a path is below, or "".
func lacking(path string) string {
	for _, prefix := range notOffered {
		if rest, ok := strings.CutPrefix(path, prefix); ok && (rest == "" || rest[0] == '/') {
			return prefix
		}
	}
	return ""
}

// noRoute returns the error for a path without a route. It depends on the request's
// line alone, so it reveals nothing about keys or machines. The path and the machine
// are those of split.
//
// An endpoint that clients know but the gateway does not have is a 501, which clients
// must not retry. Anything else is a 404, which names the route that was probably meant.
func (g *Gateway) noRoute(r *httpmsg.Request, machine, path string) *apierr.Error {
	if prefix := lacking(path); prefix != "" {
		offered := "Offered: " + strings.Join(g.table.offered(), ", ") + "."
		if strings.Contains(prefix, "/v1beta") {
			offered = "Offered of the Gemini API: /v1beta/models, and the methods of a model."
		}
		e := apierr.New(501, "not_implemented", "%s is not offered by this gateway. %s", prefix, offered)
		e.NoRetry = true
		return e
	}
	text := "No route has this path."
	if showable(path) {
		text = "No route " + safeMethod(r.Method) + " " + path + "."
	}
	if meant, machine := g.table.meant(path, machine); meant != "" {
		base := ""
		if machine != "" {
			base = "/" + machine
		}
		text += " Did you mean " + base + meant + "?"
		if strings.HasPrefix(meant, "/v1/") {
			text += " Set the base URL to " + r.Origin + base + "/v1."
		}
	}
	return apierr.New(404, "not_found", "%s", text)
}

// Limits of a path that an error repeats, in bytes. A key or another credential is
// longer than a segment may be.
const (
	maxShownPath    = 200
	maxShownSegment = 24
)

// showable reports whether an error may repeat a path: its segments are short and plain,
// so that no credential is among them.
func showable(path string) bool {
	if len(path) > maxShownPath {
		return false
	}
	for segment := range strings.SplitSeq(path, "/") {
		if len(segment) > maxShownSegment || strings.ContainsFunc(segment, func(c rune) bool {
			return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:", c))
		}) {
			return false
		}
	}
	return redact.Patterns(path) == path
}

// opened reports whether a wrong address was opened in a browser. Clients of an API
// get its errors, and so does a browser at a path of one.
func opened(r *httpmsg.Request, path string) bool {
	return r.Method == "GET" && strings.Contains(r.Header.Get("accept"), "text/html") &&
		!strings.HasPrefix(path, "/v1") && !strings.HasPrefix(path, "/api")
}

// pageNotFound returns the 404 for a browser.
func pageNotFound() *httpmsg.Response {
	return &httpmsg.Response{
		Status: 404,
		Header: httpmsg.Header{
			{Name: "content-type", Value: "text/html; charset=utf-8"},
			{Name: "content-security-policy", Value: "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
			{Name: "cache-control", Value: "no-store"},
		},
		Body: stream.FromString(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
			`<meta name="color-scheme" content="light dark"><title>Page not found – weir</title></head><body><h1>Page not found</h1>` +
			`<p>No page of this gateway has this address.</p><p><a href="/">Dashboard</a> · <a href="/docs/">Documentation</a></p></body></html>`),
	}
}

// notFound returns the 404 for a path that is not repeated.
func notFound() *apierr.Error {
	return apierr.New(404, "not_found", "No route has this path.")
}

// meant returns the route without parameters that a wrong path was probably to reach,
// and its machine, or "". These mistakes are recognized: an empty segment, a slash at
// the end, a base URL without /v1, and a base URL that is the whole URL of a route.
func (t *table) meant(path, machine string) (route, ofMachine string) {
	segments := strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
	if machine == "" && len(segments) > 0 && rpc.IsMachineID(segments[0]) {
		machine, segments = segments[0], segments[1:]
	}
	for i := range segments {
		tail := "/" + strings.Join(segments[i:], "/")
		for _, candidate := range [...]string{tail, "/v1" + tail} {
			if t.exact[candidate] != nil && (strings.HasPrefix(candidate, "/v1/") || i == 0) {
				return candidate, machine
			}
		}
	}
	return "", ""
}

// offered lists the routes under /v1 that have no parameters, sorted.
func (t *table) offered() []string {
	var out []string
	for path := range t.exact {
		if strings.HasPrefix(path, "/v1/") {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// methodNotAllowed returns the 405 of a route, which names the methods to use.
func methodNotAllowed(r *httpmsg.Request, route *Route) *apierr.Error {
	var names []string
	for i := range route.Methods {
		names = append(names, route.Methods[i].Name)
	}
	e := apierr.New(405, "method_not_allowed", "%s is not allowed for %s. Use %s.", safeMethod(r.Method), route.Pattern,
		strings.Join(names, " or "))
	e.Header = httpmsg.Header{{Name: "allow", Value: route.Allow()}}
	return e
}
