package gateway

import (
	"errors"
	"math"
	"strconv"
	"time"

	"weir/pkg/llm"
	"weir/pkg/setup"
	"weir/pkg/v1beta"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/contentcoding"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// refusal makes an *apierr.Error of any error: what is not one is a 500 whose
// cause is only logged.
func refusal(err error) *apierr.Error {
	var e *apierr.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, stream.ErrTooLarge):
		return &apierr.Error{Status: 413, Type: "invalid_request_error", Message: "The request body is too large.", Err: err}
	case errors.Is(err, stream.ErrIdle):
		return &apierr.Error{Status: 408, Type: "invalid_request_error", Message: "The request body did not arrive in time.",
			Err: err}
	case errors.Is(err, stream.ErrReset):
		return &apierr.Error{Status: 400, Type: "invalid_request_error", Message: "The connection closed before the whole request body had arrived. Send the request again.", Err: err}
	case errors.Is(err, contentcoding.ErrInvalid):
		return &apierr.Error{Status: 400, Type: "invalid_request_error",
			Message: "The request body is not valid in its Content-Encoding. Send it again, or without compression.", Err: err}
	case errors.Is(err, contentcoding.ErrWindow):
		return &apierr.Error{Status: 413, Type: "invalid_request_error", Code: "request_too_large",
			Message: "Decoding the request body takes too much memory. Compress it with a window of at most 16 MiB.", Err: err}
	case errors.Is(err, upstream.ErrCanceled):
		return apierr.ClientLeft(err)
	}
	return &apierr.Error{Status: 500, Type: "server_error", Message: "Internal error.", Err: err}
}

// dialectOf returns the dialect of an error: the route's, or for a model list the
// caller's own.
func dialectOf(route *Route, r *httpmsg.Request) llm.Dialect {
	if route.Models && r.Header.Get("anthropic-version") != "" {
		return llm.Messages
	}
	return route.Dialect
}

// write makes the answer of a failure on a route.
func write(e *apierr.Error, route *Route, r *httpmsg.Request) *httpmsg.Response {
	h := make(httpmsg.Header, 0, 12)
	h = append(h, httpmsg.Field{Name: "content-type", Value: "application/json"})
	if e.RetryAfter > 0 {
		h = append(h,
			httpmsg.Field{Name: "retry-after", Value: strconv.FormatInt(max(1, int64(math.Ceil(e.RetryAfter.Seconds()))), 10)},
			httpmsg.Field{Name: "retry-after-ms", Value: strconv.FormatInt(max(1, int64(e.RetryAfter/time.Millisecond)), 10)})
	}
	if e.NoRetry {
		h = append(h, httpmsg.Field{Name: "x-should-retry", Value: "false"})
	}
	h = append(h, e.Header...)
	return &httpmsg.Response{Status: e.Status, Header: h, Body: stream.FromBytes(body(e, route, r))}
}

// documented returns the error with the page of the documentation that explains its
// code. Codes of providers have none.
func (g *Gateway) documented(e *apierr.Error, r *httpmsg.Request) *apierr.Error {
	origin := g.PublicURL
	if origin == "" {
		origin = r.Origin
	}
	code, vendors := e.ShownCode()
	if code == "" || vendors || e.Own || len(e.Body) > 0 || !setup.IsOrigin(origin) {
		return e
	}
	with := *e // the error may be shared, and is logged as it is
	with.DocURL = origin + "/docs/reference/errors#" + code
	return &with
}

// body returns the JSON of a failure, in an array for a client that reads one.
func body(e *apierr.Error, route *Route, r *httpmsg.Request) []byte {
	d := dialectOf(route, r)
	array := d == llm.Gemini && v1beta.IsArray(r)
	var out []byte
	if array {
		out = append(out, '[')
	}
	switch {
	case len(e.Body) > 0:
		out = append(out, e.Body...)
	case route.Models && d == route.Dialect && e.Status == 500:
		out = jsonscan.Quote(append(out, `{"error":{"message":`...), e.Message)
		out = append(out, `,"type":"server_error"}}`...)
	default:
		out = d.Client().AppendError(out, e, r.ID)
	}
	if array {
		out = append(out, ']')
	}
	return out
}
