package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"

	"weir/pkg/setup"
	"weir/pkg/v1beta"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/contentcoding"
	"weir/pkg/wire/httpmsg"
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
		return &apierr.Error{Status: 408, Type: "invalid_request_error", Message: "The request body did not arrive in time.", Err: err}
	case errors.Is(err, stream.ErrReset):
		return &apierr.Error{Status: 400, Type: "invalid_request_error", Message: "The request body broke off.", Err: err}
	case errors.Is(err, contentcoding.ErrInvalid):
		return &apierr.Error{Status: 400, Type: "invalid_request_error", Message: "The request body is not valid in its Content-Encoding. Send it again, or without compression.", Err: err}
	case errors.Is(err, contentcoding.ErrWindow):
		return &apierr.Error{Status: 413, Type: "invalid_request_error", Code: "request_too_large", Message: "Decoding the request body takes too much memory. Compress it with a window of at most 16 MiB.", Err: err}
	case errors.Is(err, upstream.ErrCanceled):
		return apierr.ClientLeft(err)
	}
	return &apierr.Error{Status: 500, Type: "server_error", Message: "Internal error.", Err: err}
}

// dialectOf returns the dialect of an error: the route's, or for a model list the
// caller's own.
func dialectOf(route *Route, r *httpmsg.Request) Dialect {
	switch d := route.Dialect; {
	case d == ModelList && r.Header.Get("anthropic-version") != "":
		return Anthropic
	case d == Gemini && v1beta.IsArray(r):
		return geminiArray
	default:
		return d
	}
}

// write makes the answer of a failure in a dialect.
func write(e *apierr.Error, d Dialect, requestID string) *httpmsg.Response {
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
	return &httpmsg.Response{Status: e.Status, Header: h, Body: stream.FromBytes(body(e, d, requestID))}
}

// documented returns the error with the page of the documentation that explains its
// code. Codes of providers have none.
func (g *Gateway) documented(e *apierr.Error, r *httpmsg.Request) *apierr.Error {
	origin := g.PublicURL
	if origin == "" {
		origin = r.Origin
	}
	if e.Code == e.VendorCode || e.Own || len(e.Body) > 0 || !setup.IsOrigin(origin) {
		return e
	}
	with := *e // the error may be shared, and is logged as it is
	with.DocURL = origin + "/docs/reference/errors#" + e.Code
	return &with
}

type openAIError struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
		DocURL  string  `json:"doc_url,omitempty"`
	} `json:"error"`
}

type anthropicError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string          `json:"type"`
		Message string          `json:"message"`
		Param   string          `json:"param,omitempty"` // of another vendor's error
		Code    string          `json:"code,omitempty"`
		Details json.RawMessage `json:"details,omitempty"`
		DocURL  string          `json:"doc_url,omitempty"`
	} `json:"error"`
	RequestID string `json:"request_id"`
}

type listError struct {
	Error struct {
		Message string `json:"message"`
		Type    string `json:"type"`
	} `json:"error"`
}

func body(e *apierr.Error, d Dialect, requestID string) []byte {
	if len(e.Body) > 0 {
		if d == geminiArray {
			return append(append([]byte{'['}, e.Body...), ']')
		}
		return e.Body
	}
	var v any
	switch {
	case d == Gemini:
		return e.AppendGemini(nil)
	case d == geminiArray:
		return append(e.AppendGemini([]byte{'['}), ']')
	case d == Anthropic:
		a := anthropicError{Type: "error", RequestID: requestID}
		a.Error.Type, a.Error.Message, a.Error.Details = apierr.MessagesType(e.Status), e.Message, json.RawMessage(e.Details)
		a.Error.DocURL = e.DocURL
		if e.Own {
			a.Error.Type, a.Error.Param, a.Error.Code = e.Type, e.Param, e.Code
		}
		v = a
	case d == ModelList && e.Status == 500:
		var l listError
		l.Error.Message, l.Error.Type = e.Message, "server_error"
		v = l
	default:
		var o openAIError
		o.Error.Message, o.Error.Type, o.Error.DocURL = e.Message, e.Type, e.DocURL
		if e.Param != "" {
			o.Error.Param = &e.Param
		}
		if e.Code != "" {
			o.Error.Code = &e.Code
		}
		v = o
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a message shows <alias>/<model> as it is written
	enc.Encode(v)            // strings and written JSON only: cannot fail
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
