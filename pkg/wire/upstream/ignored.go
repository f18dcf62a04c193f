package upstream

// ignored are fields of an upstream's answer that mean nothing to the gateway or
// hold for one connection only.
var ignored = [...]string{
	"access-control-allow-credentials", "access-control-allow-origin", "access-control-expose-headers",
	"alt-svc", "cf-cache-status", "cf-ray", "connection", "content-security-policy", "date", "etag", "keep-alive", "nel",
	"report-to", "server", "server-timing", "set-cookie", "strict-transport-security", "transfer-encoding", "vary", "via",
	"x-content-type-options", "x-envoy-upstream-service-time", "x-frame-options", "x-powered-by",
}

// Ignored returns the names, in lower case, of the header fields of an answer that
// the platform leaves out of a Response.
func Ignored() []string { return ignored[:] }

// Place is the field that names where an answer came from. It is ignored unless the
// status is 400 or above: a provider may refuse the place of the gateway.
const Place = "cf-ray"
