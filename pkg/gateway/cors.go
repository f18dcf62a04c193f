package gateway

import (
	"weir/pkg/endpoint"
	"weir/pkg/wire/httpmsg"
)

const exposed = "x-request-id, request-id, retry-after, retry-after-ms, x-should-retry, x-weir-model, x-weir-connection-id, x-weir-attempts, x-weir-affinity, x-weir-dropped, x-weir-set, x-weir-cache-marks, x-weir-token-count, x-weir-cost, " +
	"x-ratelimit-limit-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-requests, x-ratelimit-remaining-tokens, x-ratelimit-reset-requests, x-ratelimit-reset-tokens, " +
	"anthropic-ratelimit-requests-limit, anthropic-ratelimit-requests-remaining, anthropic-ratelimit-requests-reset, anthropic-ratelimit-tokens-limit, anthropic-ratelimit-tokens-remaining, anthropic-ratelimit-tokens-reset"

// cors adds the cross-origin fields of an answer. Credentials are never
// allowed and the caller's origin is never repeated.
//
// Only a browser reads the list of exposed fields, and a browser says where it
// comes from.
func cors(h *httpmsg.Header, c endpoint.Cors, browser bool) {
	if c == endpoint.NoCors {
		return
	}
	h.Add("access-control-allow-origin", "*")
	if c == endpoint.OpenCors && browser {
		h.Add("access-control-expose-headers", exposed)
	}
}

// preflight answers an OPTIONS request: for the model list exactly what
// docs/reference/spec.md, 4 says, else the route's methods.
func preflight(route *Route) *httpmsg.Response {
	h := httpmsg.Header{{Name: "access-control-allow-origin", Value: "*"}}
	if route.Cors == endpoint.ListCors {
		h.Add("access-control-allow-methods", "GET, OPTIONS")
		h.Add("access-control-allow-headers", "*")
		return &httpmsg.Response{Status: 200, Header: h}
	}
	h.Add("access-control-allow-methods", route.Allow())
	h.Add("access-control-allow-headers", "*, Authorization") // browsers do not let * cover it
	h.Add("access-control-max-age", "86400")
	return &httpmsg.Response{Status: 204, Header: h}
}
